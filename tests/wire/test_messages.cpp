#include "lib/wire/messages.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::wire;

namespace {
template <typename Message>
std::string bytes_of(const Message& message) {
  Writer writer;
  fields(writer, message);
  return writer.take();
}
template <typename Message>
Result<Message> read(std::string_view bytes) {
  Message message;
  Reader reader(bytes);
  fields(reader, message);
  auto done = reader.finish();
  if (!done) return done.error();
  return message;
}
Launch sample() {
  Launch launch;
  launch.job = 7;
  launch.argv = {"/bin/echo", "", std::string("\xff\0\n", 3)};
  launch.environment = {"A=1"};
  launch.groups = {30001, 5};
  launch.limits = {{4, 0, ~0ULL}};
  launch.links = {{"/srv", "/glidepod/scratch/dir_1"}};
  launch.umask = 077;
  launch.about = "job=1.0";
  return launch;
}
}  // namespace

TEST_CASE("messages: every field survives, bytes included") {
  const auto copy = read<Launch>(bytes_of(sample())).value();
  CHECK(copy.argv == sample().argv);
  CHECK(copy.groups == sample().groups);
  CHECK(copy.limits.at(0).hard == ~0ULL);
  CHECK(copy.links.at(0).target == "/glidepod/scratch/dir_1");
  CHECK(copy.umask == 077);
  CHECK(copy.about == "job=1.0");

  JobEnded ended;
  ended.status = ExitStatus::signaled(11, true);
  ended.started_ns = -1;
  CHECK(read<JobEnded>(bytes_of(ended)).value().status == ended.status);
  CHECK(read<JobEnded>(bytes_of(ended)).value().started_ns == -1);

  const Exited exited{7, ExitStatus::exited(85), 12, 3, 4, 5};
  const auto read_back = read<Exited>(bytes_of(exited)).value();
  CHECK(read_back.status == ExitStatus::exited(85));
  CHECK(read_back.ended_ns == 12);
  CHECK(read_back.oom_kills == 3);
  CHECK(read_back.memory_limit_kib == 4);
  CHECK(read_back.memory_peak_kib == 5);
  const auto beat = read<Beat>(bytes_of(Beat{9, 1024, 77, false})).value();
  CHECK(beat.number == 9);
  CHECK(beat.memory_kib == 1024);
  CHECK(beat.disk_kib == 77);
  CHECK_FALSE(beat.disk_complete);
}

TEST_CASE("messages: a session's request survives, for the agent and for glue") {
  SessionRequest request;
  request.command = "echo \xff; exit 3";
  request.environment = {"TERM=xterm"};
  request.terminal = true;
  request.modes = std::string("\0\1", 2);
  request.rows = 24;
  request.columns = 65535;
  const auto enter =
      read<Enter>(bytes_of(Enter{.what = Enter::What::watch, .sandbox = "/s", .request = request}));
  CHECK(enter.value().protocol == k_protocol);
  CHECK(enter.value().what == Enter::What::watch);
  CHECK(enter.value().sandbox == "/s");
  const std::string bytes = bytes_of(OpenSession{7, 8, request});
  const auto open = read<OpenSession>(bytes).value();
  CHECK(open.job == 7);
  CHECK(open.session == 8);
  CHECK(open.request.command == request.command);
  CHECK(open.request.environment == request.environment);
  CHECK(open.request.terminal);
  CHECK(open.request.modes == request.modes);
  CHECK(open.request.rows == 24);
  CHECK(open.request.columns == 65535);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(read<OpenSession>(bytes.substr(0, length)).ok());
  CHECK(read<SessionEnded>(bytes_of(SessionEnded{7, 8, ExitStatus::signaled(9)})).value().status ==
        ExitStatus::signaled(9));
}

TEST_CASE("messages: every truncation and every surplus is refused") {
  const std::string bytes = bytes_of(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(read<Launch>(bytes.substr(0, length)).ok());
  CHECK_FALSE(read<Launch>(bytes + "x").ok());
}

TEST_CASE("messages: a length that lies does not reserve memory") {
  CHECK_FALSE(read<Goodbye>(std::string("\xff\xff\xff\xff", 4)).ok());
  std::string bytes = bytes_of(sample());
  bytes[8] = bytes[9] = bytes[10] = bytes[11] = '\xff';  // argv's count
  CHECK_FALSE(read<Launch>(bytes).ok());
}
