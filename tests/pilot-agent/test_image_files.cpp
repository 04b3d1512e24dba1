#include "pilot-agent/image_files.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;
namespace fs = std::filesystem;

namespace {

const std::string k_made = "localhost/glidepod-files@sha256:" + std::string(64, 'a');

// A job's folder with an image file and an image folder, and a store that answers each question alike.
struct Files {
  TemporaryFolder folder;
  const std::string sandbox = folder.path + "/dir_1";
  Loop loop = Loop::create().value();
  Fd listener = wire::listen_at(folder.path + "/store", 0600).value();
  std::deque<std::unique_ptr<wire::Channel>> questions;
  Result<std::string> answer = k_made;
  Settings settings;
  registry::Client registry{loop, {}};
  std::vector<std::pair<std::string, Result<void>>> brought;  // image, and whether there is one
  std::unique_ptr<ImageFiles> files;

  explicit Files(bool with_store = true) {
    fs::create_directories(sandbox + "/root/bin");
    REQUIRE(replace_file(sandbox + "/app.sif", "content", 0600, Durable::no));
    REQUIRE(loop.watch(listener.get(), EPOLLIN, [this](std::uint32_t) { accept(); }));
    settings.scratch = settings.image_spool = folder.path;
    if (with_store) settings.image_store = folder.path + "/store";
    files = ImageFiles::create(loop, settings, registry, [this](const Request& of, const Result<void>& done) {
              brought.emplace_back(std::string(of.asked.name_or("")), done);
            }).value();
  }
  ~Files() { loop.forget(listener.get()); }

  void accept() {
    auto& channel = questions.emplace_back();
    channel = wire::Channel::create(
                  loop, std::move(wire::accept_from(listener).value()),
                  {[this, &channel](const wire::Frame&) { reply(*channel); }, [](const Error&) {}})
                  .value();
  }
  void reply(wire::Channel& channel) const {
    if (answer)
      (void)channel.send(wire::ImageStored{*answer});
    else
      (void)channel.send(wire::Failed{wire::Fault::user, answer.error().message()});
  }

  Request request;
  wire::Launch launch;
  Result<void> name(const std::string& image, wire::Verb verb = wire::Verb::exec) {
    static ClientId last = 0;
    request = {.client = ++last, .verb = verb, .uid = ::geteuid()};
    launch = {};
    wire::Bind bind{.verb = verb, .image = image};
    bind.work_directory = sandbox;
    return files->name(bind, request, launch);
  }
  std::string bring() {
    const auto before = brought.size();
    files->bring(request);
    for (int i = 0; i < 100 && brought.size() == before; ++i) REQUIRE(loop.run_once(std::chrono::seconds(5)));
    REQUIRE(brought.size() == before + 1);
    CHECK_FALSE(files->brings(request.client));
    return brought.back().second ? brought.back().first : brought.back().second.error().message();
  }
};

}  // namespace

TEST_CASE(
    "image files: an image of a registry has its name at once, and the store's own are nobody's to name") {
  Files files;
  REQUIRE(files.name("docker://alpine:3.19"));
  CHECK(files.request.asked.name() == "docker.io/library/alpine:3.19");
  CHECK_FALSE(files.files->brings(files.request.client));
  CHECK_FALSE(files.name("docker://" + k_made));
  CHECK_FALSE(files.files->registry_image("docker://" + k_made));
}

TEST_CASE("image files: without a store a file is no image") {
  Files files(false);
  REQUIRE_FALSE(files.name("./app.sif"));
  CHECK_FALSE(files.files->brings(files.request.client));
}

TEST_CASE("image files: what was tested starts without another question, once") {
  Files files;
  REQUIRE(files.name("./app.sif", wire::Verb::test));
  REQUIRE(files.files->brings(files.request.client));
  CHECK(files.bring() == k_made);
  REQUIRE(files.name("./app.sif"));
  CHECK(files.request.asked.name() == k_made);
  CHECK_FALSE(files.files->brings(files.request.client));
  REQUIRE(files.name("./app.sif"));
  CHECK(files.files->brings(files.request.client));
}

TEST_CASE("image files: a folder is copied, and the store asked for the copy") {
  Files files;
  REQUIRE(files.name("./root", wire::Verb::run));
  CHECK(files.request.runscript);
  CHECK(files.launch.argv == std::vector<std::string>{"runscript"});
  CHECK(files.bring() == k_made);
  CHECK(files.questions.size() == 1);
}

TEST_CASE("image files: what the store refuses is the user's, and what is not of its repository nobody's") {
  Files files;
  files.answer = error("it is encrypted");
  REQUIRE(files.name("./app.sif"));
  CHECK(files.bring().find("it is encrypted") != std::string::npos);
  CHECK(files.brought.back().second.error().fact<ImageQuestion::UsersFault>() != nullptr);
  files.answer = "registry.example/somebody/else@sha256:" + std::string(64, 'b');
  REQUIRE(files.name("./app.sif"));
  CHECK(files.bring() != *files.answer);
  CHECK_FALSE(files.brought.back().second);
  CHECK(files.brought.back().second.error().fact<ImageQuestion::UsersFault>() == nullptr);
}

TEST_CASE("image files: whoever is gone is not told") {
  Files files;
  REQUIRE(files.name("./root"));
  files.files->bring(files.request);
  files.files->forget(files.request.client);
  REQUIRE(files.name("./app.sif"));
  CHECK(files.bring() == k_made);
  CHECK(files.brought.size() == 1);
}

TEST_CASE("image files: those that are taken are not told, the others are") {
  Files files;
  std::vector<ClientId> clients;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(files.name("./app.sif"));
    files.files->bring(files.request);
    clients.push_back(files.request.client);
  }
  REQUIRE(files.name("./app.sif"));  // of which nobody has asked yet
  const auto none = files.files->take([](const Request&) { return false; });
  CHECK(none.empty());
  const auto taken = files.files->take([&](const Request& request) { return request.client == clients[0]; });
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].client == clients[0]);
  CHECK(taken[0].named == "./app.sif");
  CHECK_FALSE(files.files->brings(clients[0]));
  files.files->bring(files.request);
  for (int i = 0; i < 100 && files.brought.size() < 2; ++i)
    REQUIRE(files.loop.run_once(std::chrono::seconds(5)));
  CHECK(files.files->take([](const Request&) { return true; }).empty());
  CHECK(files.brought.size() == 2);
}

TEST_CASE("image files: what CVMFS does not have is the user's fault, a node without CVMFS is not") {
  Files files;
  files.settings.cvmfs_images = true;
  REQUIRE(files.name("/cvmfs/no.such.example/image"));
  REQUIRE(files.files->brings(files.request.client));
  CHECK(files.bring() != k_made);
  const bool users = files.brought.back().second.error().fact<ImageQuestion::UsersFault>() != nullptr;
  CHECK(users == fs::exists("/cvmfs"));
}
