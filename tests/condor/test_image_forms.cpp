#include "lib/condor/image_forms.hpp"

#include <doctest/doctest.h>

#include <regex>

using namespace glidepod::condor;

namespace {

bool matches(const std::string& pattern, const std::string& text) {
  return std::regex_search(text, std::regex(pattern));
}

}  // namespace

TEST_CASE("image forms: files are what HTCondor puts into the job's folder by that name") {
  for (const std::string image : {"app.sif", "./app.sif", "/home/alice/app.sif", "osdf:///ospool/x/app.sif",
                                  "https://example.org/app.sif", "file:///x/app.sif"}) {
    CAPTURE(image);
    CHECK(image_form(image) == ImageForm::file);
    CHECK(image_file_name(image) == "app.sif");
    CHECK(matches(image_file_pattern(), image));
  }
}

TEST_CASE("image forms: folders have no colon in their name") {
  for (const std::string image : {"app", "app/", "./app", "/home/alice/app//", "a/app.sif/", "app.img"}) {
    CAPTURE(image);
    CHECK(image_form(image) == ImageForm::folder);
    CHECK_FALSE(image_file_name(image).empty());
    CHECK(matches(image_file_pattern(), image));
  }
  CHECK(image_file_name("/home/alice/app//") == "app");
}

TEST_CASE("image forms: what Apptainer fetches, what is in CVMFS, and names of registries") {
  for (const std::string image :
       {"", "docker://x/app.sif", "library://x/app.sif", "shub://x/app.sif", "docker-daemon://x/app.sif",
        "/cvmfs/x/app.sif", "/cvmfs/x/app", "app.sif:1", "python:3.12", "osdf:///x/app", "docker://x"}) {
    CAPTURE(image);
    CHECK(image_form(image) == ImageForm::registry);
    CHECK_FALSE(matches(image_file_pattern(), image));
  }
  for (const std::string_view image : {std::string_view("a\0.sif", 6), std::string_view("/"),
                                       std::string_view(".."), std::string_view("a/..")})
    CHECK(image_form(image) == ImageForm::registry);
}

TEST_CASE("image forms: what a registry has as a file") {
  for (const std::string image : {"oras://x/app:1", "oras://x/app.sif"}) {
    CHECK(image_form(image) == ImageForm::artifact);
    CHECK(matches(image_file_pattern(), image));
  }
}
