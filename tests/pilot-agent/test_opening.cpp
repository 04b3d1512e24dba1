#include "pilot-agent/opening.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "lib/base/file.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

// A mount that answers once a byte is written, or never.
struct Mount {
  Loop loop = Loop::create().value();
  Fd read_end, write_end;
  std::optional<Result<ImageSource>> source;
  int answers = 0;
  std::unique_ptr<Opening> opening;

  Mount() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  Result<void> open(Milliseconds patience = std::chrono::seconds(10)) {
    auto begun = Opening::begin(
        loop, patience,
        [end = std::make_shared<Fd>(::dup(read_end.get()))]() -> Result<ImageSource> {
          char byte = 0;
          if (::read(end->get(), &byte, 1) != 1) return error("it has ended");
          if (byte == 'n') return Error("open x", ENOENT);
          return ImageSource{.file = open_file("/dev/null", O_RDONLY).value()};
        },
        [this](Result<ImageSource> opened) {
          ++answers;
          source.emplace(std::move(opened));
          opening.reset();
        });
    if (!begun) return begun.error();
    opening = *std::move(begun);
    return {};
  }
  void answer(char byte) const { REQUIRE(::write(write_end.get(), &byte, 1) == 1); }
  void run() {
    for (int i = 0; i < 100 && answers == 0; ++i) REQUIRE(loop.run_once(std::chrono::seconds(5)));
    REQUIRE(answers == 1);
  }
};

}  // namespace

TEST_CASE("opening: what was opened, or why not") {
  Mount mount;
  REQUIRE(mount.open());
  mount.answer('y');
  mount.run();
  REQUIRE(*mount.source);
  CHECK((*mount.source)->file.valid());
  Mount other;
  REQUIRE(other.open());
  other.answer('n');
  other.run();
  CHECK(other.source->error().code() == ENOENT);
}

TEST_CASE("opening: the loop goes on while a mount hangs, and the question ends") {
  Mount mount;
  REQUIRE(mount.open(Milliseconds(50)));
  bool turned = false;
  mount.loop.after(Milliseconds(0), [&] { turned = true; });
  mount.run();
  CHECK(turned);
  CHECK(mount.source->error().code() == ETIMEDOUT);
  mount.answer('y');  // too late
  REQUIRE(mount.loop.run_once(Milliseconds(100)));
  CHECK(mount.answers == 1);
}

TEST_CASE("opening: a question that is taken back is not answered") {
  Mount mount;
  REQUIRE(mount.open());
  mount.opening.reset();
  mount.answer('y');
  REQUIRE(mount.loop.run_once(Milliseconds(100)));
  CHECK(mount.answers == 0);
}

TEST_CASE("opening: so many may hang, and no more") {
  Mount hangs;
  std::vector<std::unique_ptr<Opening>> all;
  Result<void> last;
  for (int i = 0; i < 100 && last; ++i) {
    last = hangs.open();
    if (hangs.opening) all.push_back(std::move(hangs.opening));
  }
  CHECK_FALSE(last);
  CHECK(last.error().code() == EAGAIN);
  CHECK(all.size() < 100);
  all.clear();
  hangs.write_end.reset();
  for (int i = 0; i < 200 && !(last = hangs.open()); ++i) ::usleep(50'000);  // until the threads have ended
  CHECK(last);
}
