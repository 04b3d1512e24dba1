#include "pilot-agent/core/image.hpp"

#include <doctest/doctest.h>

#include "pilot-agent/core/words.hpp"

using namespace glidepod::agent;

TEST_CASE("image: home is no job's image, whatever the job's is called") {
  CHECK(Image::home().is_home());
  CHECK(Image::home() == Image::home());
  CHECK_FALSE(Image("").is_home());
  CHECK(Image("") != Image::home());
  CHECK(Image("a:1").name() == "a:1");
  CHECK(Image("a:1") == Image("a:1"));
  CHECK(Image("a:1") != Image("a:2"));
}

TEST_CASE("image: home has the text that is asked for, and a dash in the log") {
  CHECK(Image::home().name_or("reg.example/pilot:1") == "reg.example/pilot:1");
  CHECK(Image("a:1").name_or("reg.example/pilot:1") == "a:1");
  CHECK(word(Image::home()) == "-");
  CHECK(word(Image("a:1")) == "a:1");
}
