#include "pilot-agent/image_store.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

void write(const std::string& path) {
  REQUIRE(replace_file(path, "content", 0600, Durable::no));
}

// A store that answers one question.
struct SmallStore {
  TemporaryFolder folder;
  std::string socket = folder.path + "/socket";
  Loop loop = Loop::create().value();
  Fd listener = wire::listen_at(socket, 0600).value();
  std::unique_ptr<wire::Channel> channel;
  std::function<void(const wire::Frame&)> asked;
  std::vector<Result<std::string>> answers;
  std::unique_ptr<ImageQuestion> question;

  SmallStore() {
    write(folder.path + "/app.sif");
    REQUIRE(loop.watch(listener.get(), EPOLLIN, [this](std::uint32_t) {
      channel =
          wire::Channel::create(loop, std::move(wire::accept_from(listener).value()),
                                {[this](const wire::Frame& frame) { asked(frame); }, [](const Error&) {}})
              .value();
    }));
  }
  ~SmallStore() { loop.forget(listener.get()); }

  Result<void> ask(Milliseconds patience = std::chrono::seconds(10)) {
    const Fd file = open_file(folder.path + "/app.sif", O_RDONLY).value();
    auto made =
        ImageQuestion::ask(loop, {socket, "alice", patience}, file, [this](const Result<std::string>& image) {
          answers.push_back(image);
          question.reset();
        });
    if (!made) return made.error();
    question = std::move(*made);
    return {};
  }
  void run() {
    for (int i = 0; i < 100 && answers.empty(); ++i) REQUIRE(loop.run_once(std::chrono::seconds(5)));
    REQUIRE(answers.size() == 1);
  }
};

}  // namespace

TEST_CASE("image store: what is taken from a mounted CVMFS, and what a rule names instead") {
  CHECK(is_cvmfs_image("/cvmfs/x.example/a", false));
  CHECK_FALSE(is_cvmfs_image("/cvmfs/x.example/a", true));
  CHECK(is_cvmfs_image("/cvmfs/x.example/.images/1/2", true));
  CHECK(is_cvmfs_image("/cvmfs/x.example/a.sif/", true));
  CHECK_FALSE(is_cvmfs_image("docker://cvmfs/x", false));
}

TEST_CASE("image store: a path in CVMFS leads through its links, and nowhere else") {
  namespace fs = std::filesystem;
  const TemporaryFolder cvmfs, elsewhere;
  fs::create_directories(cvmfs.path + "/x.example/.images/7d/image");
  fs::create_directories(cvmfs.path + "/x.example/htc");
  write(cvmfs.path + "/x.example/a.sif");
  write(elsewhere.path + "/secret");
  fs::create_symlink("/cvmfs/x.example/.images/7d/image", cvmfs.path + "/x.example/htc/rocky:9");
  fs::create_symlink("../.images/7d/image", cvmfs.path + "/x.example/htc/relative");
  fs::create_symlink(elsewhere.path, cvmfs.path + "/x.example/out");
  fs::create_symlink("/cvmfs/x.example/loop", cvmfs.path + "/x.example/loop");
  const auto opens = [&](const std::string& path) { return open_cvmfs_image(cvmfs.path, path).ok(); };
  for (const char* path : {"/cvmfs/x.example/.images/7d/image", "/cvmfs/x.example/htc/rocky:9",
                           "/cvmfs/x.example/htc/relative/", "/cvmfs/x.example/a.sif"})
    CHECK_MESSAGE(opens(path), path);
  for (const char* path :
       {"/cvmfs/", "/cvmfs/x.example", "/cvmfs//a", "/cvmfs/x.example/none", "/cvmfs/x.example/out/secret",
        "/cvmfs/x.example/loop", "/cvmfs/../etc/passwd", "/cvmfs/x.example/../../etc/passwd"})
    CHECK_FALSE_MESSAGE(opens(path), path);
}

TEST_CASE("image store: a broken mount of CVMFS is the node's fault, a wrong name is not") {
  for (const int code : {EIO, ENOTCONN, ESTALE, ENODEV, ETIMEDOUT, EHOSTDOWN, EMFILE, ENFILE, ENOMEM})
    CHECK_MESSAGE(is_of_node(Error("open x", code)), code);
  for (const int code : {0, ENOENT, ENOTDIR, EACCES, ELOOP, EXDEV})
    CHECK_FALSE_MESSAGE(is_of_node(Error("open x", code)), code);
}

TEST_CASE("image store: the file is a plain one of the job's user, in its folder") {
  const TemporaryFolder scratch, elsewhere;
  const std::string sandbox = scratch.path + "/dir_1";
  std::filesystem::create_directory(sandbox);
  write(sandbox + "/app.sif");
  const auto open = [&](const std::string& folder, const std::string& name, uid_t user = ::geteuid()) {
    const auto file = open_image_file(scratch.path, folder, name, user);
    return file ? std::string("opened") : file.error().message();
  };
  CHECK(open(sandbox, "app.sif") == "opened");
  CHECK(open(sandbox, "app.sif", ::geteuid() + 1).find("belongs to user") != std::string::npos);
  CHECK(open(sandbox, "none.sif").find("No such file") != std::string::npos);
  CHECK(open("", "app.sif").find("no folder") != std::string::npos);
  CHECK(open(elsewhere.path, "app.sif").find("no folder") != std::string::npos);
  write(elsewhere.path + "/secret.sif");
  REQUIRE(::symlink((elsewhere.path + "/secret.sif").c_str(), (sandbox + "/link.sif").c_str()) == 0);
  CHECK(open(sandbox, "link.sif").find("open link.sif") != std::string::npos);
  REQUIRE(::symlink(elsewhere.path.c_str(), (scratch.path + "/dir_2").c_str()) == 0);
  CHECK(open(scratch.path + "/dir_2", "secret.sif").find("open the job's folder") != std::string::npos);
  REQUIRE(::mkfifo((sandbox + "/fifo.sif").c_str(), 0600) == 0);
  CHECK(open(sandbox, "fifo.sif").find("no plain file") != std::string::npos);
  std::filesystem::create_directory(sandbox + "/folder.sif");
  CHECK(open(sandbox, "folder.sif").find("no plain file") != std::string::npos);
}

TEST_CASE("image store: a folder is one of the job's user, in its folder") {
  namespace fs = std::filesystem;
  const TemporaryFolder scratch, elsewhere;
  const std::string sandbox = scratch.path + "/dir_1";
  for (const auto& path : {sandbox, sandbox + "/app", scratch.path + "/dir_2", scratch.path + "/dir_2/app",
                           elsewhere.path + "/app"})
    fs::create_directory(path);
  write(sandbox + "/file");
  fs::create_symlink(elsewhere.path + "/app", sandbox + "/link");
  fs::create_symlink(elsewhere.path, sandbox + "/way");
  fs::create_symlink(elsewhere.path, scratch.path + "/dir_3");
  REQUIRE(::mkfifo((sandbox + "/fifo").c_str(), 0600) == 0);
  const auto open = [&](const std::string& folder, const std::string& name, uid_t user = ::geteuid()) {
    const auto found = open_image_folder(scratch.path, folder, name, user);
    return found ? std::string("opened") : found.error().message();
  };
  CHECK(open(sandbox, "app") == "opened");
  CHECK(open(sandbox, "app", ::geteuid() + 1).find("belongs to user") != std::string::npos);
  for (const char* name : {"file", "link", "fifo"})
    CHECK_MESSAGE(open(sandbox, name).find("is no folder") != std::string::npos, name);
  for (const char* name : {"none", "way/app", "../dir_2/app"})
    CHECK_MESSAGE(open(sandbox, name).starts_with("open "), name);
  for (const auto& folder : {std::string(), elsewhere.path, scratch.path + "/../" + elsewhere.path})
    CHECK_MESSAGE(open(folder, "app") != "opened", folder);
  CHECK(open(scratch.path + "/dir_3", "app").find("open the job's folder") != std::string::npos);
}

TEST_CASE("image store: what is spooled has no name, and is root's alone") {
  const TemporaryFolder folder;
  const Fd file = spool_file(folder.path).value();
  REQUIRE(write_all(file, "content"));
  struct stat info {};
  REQUIRE(::fstat(file.get(), &info) == 0);
  CHECK(info.st_nlink == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(std::filesystem::is_empty(folder.path));
  const auto none = spool_file(folder.path + "/none");
  REQUIRE_FALSE(none);
  CHECK(none.error().message().starts_with("room for an image: "));
  CHECK(none.error().code() == ENOENT);
}

TEST_CASE("image store: nobody names another one's file by what was made of it") {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  const auto refused = [&](const std::string& image,
                           const std::string& repository = "localhost/glidepod-files") {
    return !refuse_stored(image, repository);
  };
  CHECK(refused("localhost/glidepod-files" + digest));
  CHECK(refused("localhost/glidepod-files:x" + digest));
  CHECK(refused("localhost/glidepod-files:latest"));
  CHECK(refused("docker.io/library/files:1", "files"));
  CHECK_FALSE(refused("localhost/glidepod-files2" + digest));
  CHECK_FALSE(refused("docker.io/library/alpine:3"));
}

TEST_CASE("image store: an answer is a digest in the store's own repository") {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  CHECK(check_stored("localhost/glidepod-files" + digest, "localhost/glidepod-files"));
  for (const auto& image :
       {"localhost/other" + digest, std::string("localhost/glidepod-files:1"), std::string()})
    CHECK_FALSE(check_stored(image, "localhost/glidepod-files"));
}

TEST_CASE("image store: a question brings the file, and the answer the image") {
  SmallStore store;
  std::string text, owner;
  store.asked = [&](const wire::Frame& frame) {
    owner = frame.decode<wire::StoreImage>()->owner;
    REQUIRE(frame.fds.size() == 1);
    text = read_all(frame.fds[0], "file", 100).value();
    (void)store.channel->send(wire::ImageStored{"localhost/x@sha256:1"});
  };
  REQUIRE(store.ask());
  store.run();
  CHECK(text == "content");
  CHECK(owner == "alice");
  REQUIRE(store.answers[0]);
  CHECK(*store.answers[0] == "localhost/x@sha256:1");
}

TEST_CASE("image store: whose fault it is that there is no image") {
  for (const auto fault : {wire::Fault::user, wire::Fault::infrastructure}) {
    SmallStore store;
    store.asked = [&](const wire::Frame&) { (void)store.channel->send(wire::Failed{fault, "no\nway"}); };
    REQUIRE(store.ask());
    store.run();
    REQUIRE_FALSE(store.answers[0]);
    const auto& why = store.answers[0].error();
    CHECK((why.fact<ImageQuestion::UsersFault>() != nullptr) == (fault == wire::Fault::user));
    CHECK(why.message().find("no") != std::string::npos);
    CHECK(why.message().find('\n') == std::string::npos);
  }
}

TEST_CASE("image store: one that ends, is slow, talks nonsense or is not there is no fault of the user") {
  const auto answer = [](SmallStore& store) {
    store.run();
    REQUIRE_FALSE(store.answers[0]);
    CHECK(store.answers[0].error().fact<ImageQuestion::UsersFault>() == nullptr);
    return store.answers[0].error().message();
  };
  SmallStore ends;
  ends.asked = [&](const wire::Frame&) { ends.channel.reset(); };
  REQUIRE(ends.ask());
  CHECK(answer(ends) == "the image store has ended without an answer");
  SmallStore slow;
  slow.asked = [](const wire::Frame&) {};
  REQUIRE(slow.ask(Milliseconds(20)));
  CHECK(answer(slow) == "the image store does not answer");
  SmallStore odd;
  odd.asked = [&](const wire::Frame&) { (void)odd.channel->send(wire::Entered{}); };
  REQUIRE(odd.ask());
  CHECK(answer(odd) == "the image store's answer cannot be understood");
  SmallStore gone;
  gone.socket += "-not-there";
  const auto asked = gone.ask();
  REQUIRE_FALSE(asked);
  CHECK(asked.error().message().starts_with("the image store: "));
}
