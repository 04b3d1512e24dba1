#include "podhost/api/log_stream.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <httplib.h>

#include <filesystem>
#include <functional>
#include <future>

#include "lib/base/file.hpp"
#include "tests/podhost/pods.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::podhost;

namespace {

Json status_with(const char* state) {
  const Json container = {
      {"name", "pilot"}, {"restartCount", 0}, {"state", Json::object({{state, Json::object()}})}};
  return {{"phase", "Running"}, {"containerStatuses", Json::array({container})}};
}

void append(const std::string& path, const std::string& text) {
  const auto file = open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  REQUIRE(file);
  REQUIRE(write_all(*file, "2026-11-30T00:00:00.0Z stdout F " + text + "\n"));
}

// A container that runs and has written one line.
struct Scene {
  TemporaryFolder own;
  PodFiles files{own.path};
  Store store{files, 100, [](const std::string&) {}};
  std::string log = files.log_file("u-1", "pilot", 0);

  Scene() {
    REQUIRE(files.prepare());
    REQUIRE(store.create(sample_pod()));
    REQUIRE(store.set_status("u-1", status_with("running")));
    append(log, "one");
  }
  void end() { store.set_status("u-1", status_with("terminated")); }

  // What one gets who follows its log until the container ends; calls then() at each piece.
  std::string follow(const std::function<void(std::string_view)>& then) {
    const http::Connection connection;
    LogRequest request;
    request.container = "pilot";
    request.follow = true;
    httplib::Response response;
    REQUIRE(stream_log(store, files, connection, *store.find("u-1"), request, response));
    std::string got;
    httplib::DataSink sink;
    sink.write = [&](const char* data, std::size_t size) {
      got.append(data, size);
      then(std::string_view(data, size));
      return true;
    };
    sink.done = [] {};
    std::promise<void> over;
    const auto rescue = std::async(std::launch::async, [this, done = over.get_future()] {
      if (done.wait_for(std::chrono::seconds(10)) == std::future_status::timeout) end();
    });
    response.content_provider_(0, 0, sink);
    over.set_value();
    return got;
  }
};

}  // namespace

TEST_CASE("log_stream: who follows a log goes on in the file that replaces it") {
  Scene scene;
  const std::string got = scene.follow([&](std::string_view piece) {
    if (piece == "one\n") {
      append(scene.log, "rest");
      append(scene.log + ".tmp", "two");
      std::filesystem::rename(scene.log + ".tmp", scene.log);
    } else if (piece == "two\n") {
      append(scene.log, "three");
    } else if (piece == "three\n") {
      scene.end();
    }
  });
  CHECK(got == "one\nrest\ntwo\nthree\n");
}

TEST_CASE("log_stream: what was written before the end is there, also in a new file") {
  Scene scene;
  const std::string got = scene.follow([&](std::string_view piece) {
    if (piece != "one\n") return;
    append(scene.log + ".tmp", "two");
    std::filesystem::rename(scene.log + ".tmp", scene.log);
    scene.end();
  });
  CHECK(got == "one\ntwo\n");
}
