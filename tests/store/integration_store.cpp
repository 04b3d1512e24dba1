// The real image-store on real files.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "store/layout.hpp"
#include "tests/store/folder_writer.hpp"
#include "tests/store/image_writer.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::store;
using namespace glidepod::store::written;

namespace {

const std::vector<std::string> k_reader = {STORE_PROGRAM, "layer"};

struct Ran {
  ExitStatus status;
  std::string out, err;
};

Ran convert(const std::string& file, const std::string& folder) {
  const Fd out = in_memory(""), err = in_memory("");
  auto child = Child::spawn({.argv = {STORE_PROGRAM, "convert", file, folder, "--name", "localhost/test:1"},
                             .stdout_fd = out.get(),
                             .stderr_fd = err.get()});
  REQUIRE(child);
  const auto ended = child->wait();
  REQUIRE(ended);
  const auto text = [](const Fd& fd) {
    ::lseek(fd.get(), 0, SEEK_SET);
    return read_all(fd, "output", 1 << 20).value();
  };
  return {ended->status, text(out), text(err)};
}

void write(const std::string& path, const std::string& bytes) {
  REQUIRE(replace_file(path, bytes, 0644, Durable::no));
}

std::string status_line(pid_t pid, const std::string& name) {
  for (const auto& line : split(read_file(fmt::format("/proc/{}/status", pid)).value(), '\n'))
    if (line.starts_with(name + ":")) return std::string(trim(line.substr(name.size() + 1)));
  return "";
}

// Takes the layer nowhere.
struct Nowhere : Blobs {
  std::uint64_t bytes = 0;
  Result<void> fails = {};
  Result<void> layer(std::string_view piece) override {
    bytes += piece.size();
    return fails;
  }
  Result<void> layer_ended(const Blob&) override { return {}; }
  Result<void> put(const Blob&, std::string_view) override { return {}; }
};

Result<Made> made_by(std::vector<std::string> reader, std::chrono::seconds time = std::chrono::seconds(20)) {
  Nowhere nowhere;
  return make_image(in_memory("x"), nowhere, {std::move(reader), time});
}

}  // namespace

TEST_CASE("image-store: an image as a folder that podman reads, the same each time") {
  const TemporaryFolder folder;
  const auto file = folder.path + "/app.sif";
  write(file, Sif{}.around(Squashfs::of(a_folder({{"f", a_file("content")}, {"null", a_special(device)}}))));
  const auto once = convert(file, folder.path + "/once"), again = convert(file, folder.path + "/again");
  CHECK(once.status.success());
  CHECK(once.out.starts_with("sha256:"));
  CHECK(once.out == again.out);
  CHECK(once.err.find("left out 1 devices") != std::string::npos);
  const auto index = read_file(folder.path + "/once/index.json");
  REQUIRE(index);
  CHECK(index->find("localhost/test:1") != std::string::npos);
  CHECK(index->find(trim(once.out)) != std::string::npos);
  // The manifest, the configuration and the layer.
  std::size_t blobs = 0;
  for ([[maybe_unused]] const auto& blob :
       std::filesystem::directory_iterator(folder.path + "/once/blobs/sha256"))
    ++blobs;
  CHECK(blobs == 3);
  CHECK_FALSE(std::filesystem::exists(folder.path + "/once/layer.new"));
}

TEST_CASE("image-store: a folder is read by a process that can do no more") {
  const TemporaryFolder folder;
  const auto file = folder.path + "/app";
  const std::string name(150, 'n');
  const auto records = [](const std::string& text) {
    const auto one = fmt::format(" path={}\n", text);
    return "21 hdrcharset=BINARY\n" + std::to_string(one.size() + 3) + one;
  };
  write(file, tar({{'5', "bin"},
                   {'x', "pax", records("bin/\xff" + name)},
                   {'0', "bin/short", "content"},
                   {'2', "l", "", "bin"}}));
  const auto ran = convert(file, folder.path + "/out");
  CHECK_MESSAGE(ran.status.success(), ran.err);
}

TEST_CASE("image-store: says whose fault it is, and leaves no image") {
  const TemporaryFolder folder;
  const auto file = folder.path + "/app.sif";
  write(file, "no image");
  const auto bad = convert(file, folder.path + "/out");
  CHECK(bad.status == ExitStatus::exited(3));
  CHECK(bad.err == "image-store: " + file + ": the file is no image: it is neither a SIF nor a squashfs\n");
  CHECK_FALSE(std::filesystem::exists(folder.path + "/out/index.json"));
  CHECK(convert(folder.path + "/missing", folder.path + "/out").status == ExitStatus::exited(1));
  REQUIRE(::mkfifo((folder.path + "/fifo").c_str(), 0600) == 0);
  const auto fifo = convert(folder.path + "/fifo", folder.path + "/out");
  CHECK(fifo.status == ExitStatus::exited(3));
  CHECK(fifo.err.find("no plain file") != std::string::npos);
}

TEST_CASE("image-store: an image that takes much memory to read is refused, and so is one that takes long") {
  const TemporaryFolder folder;
  const auto file = folder.path + "/app.sif";
  const auto bomb = a_file("");
  bomb->said_size = std::uint64_t{1} << 46;  // its list of blocks alone is 2 GiB
  write(file, Squashfs::of(a_folder({{"f", bomb}})));
  const auto ran = convert(file, folder.path + "/out");
  CHECK(ran.status == ExitStatus::exited(3));
  CHECK(ran.err.find("more memory than an image may take") != std::string::npos);
}

TEST_CASE("image-store: what reads the file is nobody, with nothing but its three streams") {
  // It waits with a layer that nobody takes: it does not fit into the pipe.
  std::string noise(std::size_t{4} << 20, '\0');
  std::uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const Fd file = in_memory(Squashfs::of(a_folder({{"f", a_file(noise)}})));
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const Fd null = open_file("/dev/null", O_RDWR).value();
  auto reader = Child::spawn(
      {.argv = k_reader, .stdin_fd = file.get(), .stdout_fd = to.get(), .stderr_fd = null.get()});
  REQUIRE(reader);
  to.reset();
  char byte = 0;
  REQUIRE(::read(from.get(), &byte, 1) == 1);  // it is at work
  const auto pid = reader->pid();
  CHECK(status_line(pid, "Seccomp") == "2");
  CHECK(status_line(pid, "NoNewPrivs") == "1");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    CHECK(status_line(pid, set) == "0000000000000000");
  if (::geteuid() == 0) CHECK(status_line(pid, "Uid") == "65534\t65534\t65534\t65534");
  if (::geteuid() == 0) CHECK(status_line(pid, "Groups") == "");
  std::size_t descriptors = 0;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), failed))
    descriptors += entry.path().empty() ? 0 : 1;
  CHECK(descriptors == 3);
  const auto limits = read_file(fmt::format("/proc/{}/limits", pid)).value();
  CHECK(limits.find("Max address space         268435456") != std::string::npos);
  CHECK(limits.find("Max processes             0") != std::string::npos);
  REQUIRE(reader->signal(SIGKILL));
  CHECK(reader->wait());
}

TEST_CASE("make: a reader that dies, lies or says too much") {
  const auto fault = [](const Result<Made>& made) {
    return made ? std::string("none") : made.error().message();
  };
  const auto users = [](const Result<Made>& made) {
    return !made && made.error().fact<BadImage>() != nullptr;
  };
  const auto shell = [](const char* script) { return std::vector<std::string>{"/bin/sh", "-c", script}; };
  CHECK(fault(made_by(shell("kill -SEGV $$"))).find("ended by signal 11 (SEGV") != std::string::npos);
  CHECK(users(made_by(shell("kill -SEGV $$"))));
  CHECK(users(made_by(shell("kill -SYS $$"))));
  CHECK(fault(made_by(shell("kill -XCPU $$"))) == "the image takes too long to read");
  CHECK_FALSE(users(made_by(shell("kill -KILL $$"))));  // the kernel, which has no memory left
  CHECK(fault(made_by(shell("exit 0"))) == "what was said of the layer cannot be understood");
  CHECK(fault(made_by(shell("exit 7"))) == "the process that reads the image ended with exit code 7");
  const auto told =
      made_by(shell(R"(printf '%s\n' '{"error": "no\u001b[31m\nway", "image": true}' >&2; exit 3)"));
  CHECK(users(told));
  CHECK(fault(told) == R"(no\x1b[31m\x0away)");
  CHECK(fault(made_by(shell("head -c 10000000 /dev/zero >&2; exit 0"))) ==
        "what was said of the layer cannot be understood");
  CHECK(fault(made_by({"/does/not/exist"})).find("No such file") != std::string::npos);
}

TEST_CASE("make: a reader that tells of layers' ends where none can be") {
  const auto made = [](std::string_view ends) {
    std::string script = "printf 123456; ";
    for (const auto& at : split(ends, ' '))
      script += fmt::format(R"(printf '{{"diff_id": "sha256:%064d", "ended_at": {}}}\n' 5 >&2; )", at);
    return made_by(
        {"/bin/sh", "-c", script + R"(printf 7890; printf '{"diff_id": "sha256:%064d"}\n' 7 >&2)"});
  };
  const auto good = made("6 8");
  REQUIRE_MESSAGE(good, (good ? "" : good.error().message()));
  CHECK(good->layer.below.size() == 2);
  for (const std::string ends : {"0", "8 7", "8 8", "11", "6 11", "7 6"}) {
    CAPTURE(ends);
    const auto bad = made(ends);
    REQUIRE_FALSE(bad);
    CHECK(bad.error().message() == "a layer ends where none can");
  }
}

TEST_CASE("make: a reader that does not end is ended") {
  const auto slow = made_by({"/bin/sleep", "600"}, std::chrono::seconds(0));
  REQUIRE_FALSE(slow);
  CHECK(slow.error().message() == "the image takes too long to read");
  CHECK(slow.error().fact<BadImage>() != nullptr);
}

TEST_CASE("make: a place that is full is no fault of the image") {
  Nowhere nowhere;
  nowhere.fails = Error("write the layer", ENOSPC);
  const Fd file = in_memory(Squashfs::of(a_folder({{"f", a_file("content")}})));
  const auto made = make_image(file, nowhere, {k_reader, std::chrono::seconds(20)});
  REQUIRE_FALSE(made);
  CHECK(made.error().fact<BadImage>() == nullptr);
  CHECK(made.error().message().find("No space left on device") != std::string::npos);
}
