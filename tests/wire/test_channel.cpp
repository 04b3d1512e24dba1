#include "lib/wire/channel.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace glidepod;
using namespace glidepod::wire;

namespace {
struct Pair {
  Loop loop = Loop::create().value();
  Fd left, right;
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    left.reset(ends[0]);
    right.reset(ends[1]);
  }
};
}  // namespace

TEST_CASE("channel: messages and descriptors arrive whole and in order, however large") {
  Pair pair;
  std::vector<Frame> got;
  auto receiver =
      Channel::create(pair.loop, std::move(pair.right),
                      {[&](Frame frame) { got.push_back(std::move(frame)); }, [](const Error&) {}})
          .value();
  auto sender = Channel::create(pair.loop, std::move(pair.left), {[](Frame) {}, [](const Error&) {}}).value();
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const Fd read_end(pipe_ends[0]);
  Fd write_end(pipe_ends[1]);
  Launch launch;
  launch.argv = {std::string(3 << 20, 'x')};
  REQUIRE(sender->send(launch, {write_end.get(), write_end.get()}).ok());
  REQUIRE(sender->send(Goodbye{"done"}).ok());
  write_end.reset();
  while (got.size() < 2) REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
  CHECK(got[0].decode<Launch>().value().argv == launch.argv);
  REQUIRE(got[0].fds.size() == 2);
  CHECK(::write(got[0].fds[1].get(), "a", 1) == 1);
  char byte = 0;
  CHECK(::read(read_end.get(), &byte, 1) == 1);
  CHECK(got[1].type == Type::goodbye);
  CHECK(got[1].decode<Goodbye>().value().reason == "done");
  CHECK(got[1].fds.empty());
}

TEST_CASE("channel: signals behind a peer that does not read are left out, those that end a job last") {
  Pair pair;
  auto sender = Channel::create(pair.loop, std::move(pair.left), {[](Frame) {}, [](const Error&) {}}).value();
  CHECK(sender->unsent() == 0);
  const auto flood = [&](int number, std::size_t most) {
    std::size_t sent = 0;
    for (; takes_signal(*sender, number) && sent < 10'000'000; ++sent)
      REQUIRE(sender->send(Signal{.number = number}).ok());
    CHECK(sent > 0);
    CHECK(sender->unsent() >= most);
    CHECK(sender->unsent() < most + 100);
  };
  constexpr std::size_t k_many = std::size_t{64} << 10;
  flood(SIGCONT, k_many);
  CHECK_FALSE(takes_signal(*sender, SIGRTMIN));
  flood(SIGTERM, 2 * k_many);
  CHECK_FALSE(takes_signal(*sender, SIGINT));
  flood(SIGKILL, 16 * k_many);
  std::size_t got = 0;
  auto receiver =
      Channel::create(pair.loop, std::move(pair.right), {[&](Frame) { ++got; }, [](const Error&) {}}).value();
  while (sender->unsent() > 0) REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
  CHECK(takes_signal(*sender, SIGCONT));
  CHECK(got > 1000);
}

TEST_CASE("channel: whoever sends more than a connection takes is gone") {
  Pair pair;
  int closed = 0;
  auto receiver = Channel::create(pair.loop, std::move(pair.right),
                                  {[](Frame) { CHECK(false); }, [&](const Error&) { ++closed; }}, 1000)
                      .value();
  auto sender = Channel::create(pair.loop, std::move(pair.left), {[](Frame) {}, [](const Error&) {}}).value();
  REQUIRE(sender->send(Goodbye{std::string(1000, 'x')}).ok());
  while (closed == 0) REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
  CHECK(closed == 1);
}

TEST_CASE("channel: what is held goes in one piece, behind what could not be written before") {
  Pair pair;
  std::vector<Type> got;
  std::size_t rounds = 0;
  auto sender = Channel::create(pair.loop, std::move(pair.left), {[](Frame) {}, [](const Error&) {}}).value();
  sender->hold();
  REQUIRE(sender->send(Exited{.job = 1}).ok());
  char byte = 0;
  CHECK(::recv(pair.right.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0);
  REQUIRE(sender->send(JobEnded{.job = 1}).ok());
  REQUIRE(sender->release().ok());
  auto receiver = Channel::create(pair.loop, std::move(pair.right),
                                  {[&](Frame frame) { got.push_back(frame.type); }, [](const Error&) {}})
                      .value();
  REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
  CHECK(got == std::vector{Type::exited, Type::job_ended});
  Launch launch;
  launch.argv = {std::string(3 << 20, 'x')};
  REQUIRE(sender->send(launch).ok());
  sender->hold();
  REQUIRE(sender->send(Goodbye{"done"}, {0}).ok());
  REQUIRE(sender->send(Finish{}).ok());
  REQUIRE(sender->release().ok());
  for (; got.size() < 5 && rounds < 10000; ++rounds) REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
  CHECK(got == std::vector{Type::exited, Type::job_ended, Type::launch, Type::goodbye, Type::finish});
}

TEST_CASE("channel: a peer that does not read is not waited for for ever") {
  Pair pair;
  auto sender = Channel::create(pair.loop, std::move(pair.left), {[](Frame) {}, [](const Error&) {}}).value();
  Launch launch;
  launch.argv = {std::string(3 << 20, 'x')};
  REQUIRE(sender->send(launch).ok());
  const auto flushed = sender->flush(Milliseconds(20));
  REQUIRE_FALSE(flushed.ok());
  CHECK(flushed.error().message() == "the peer does not read");
}

TEST_CASE("channel: the end and nonsense are told once, and the handler may destroy the channel") {
  Pair pair;
  std::unique_ptr<Channel> channel;
  std::string reason = "none";
  const auto open = [&](Fd fd) {
    channel = Channel::create(pair.loop, std::move(fd),
                              {[](Frame) {},
                               [&](const Error& why) {
                                 reason = why.message();
                                 channel.reset();
                               }})
                  .value();
  };
  SUBCASE("closed") {
    open(std::move(pair.right));
    pair.left.reset();
    REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
    CHECK(reason == "");
  }
  SUBCASE("a frame longer than any") {
    open(std::move(pair.right));
    const std::string header = std::string("\xff\xff\xff\x7f", 4) + std::string(8, '\0');
    REQUIRE(::write(pair.left.get(), header.data(), header.size()) == 12);
    REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
    CHECK(reason == "malformed message");
  }
  SUBCASE("descriptors promised but not sent") {
    open(std::move(pair.right));
    const std::string header("\0\0\0\0\x01\0\0\0\x02\0\0\0", 12);
    REQUIRE(::write(pair.left.get(), header.data(), header.size()) == 12);
    REQUIRE(pair.loop.run_once(Milliseconds(1000)).ok());
    CHECK(reason == "a message came without its descriptors");
  }
  CHECK(channel == nullptr);
}
