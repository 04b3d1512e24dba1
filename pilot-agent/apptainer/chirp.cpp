#include "pilot-agent/apptainer/chirp.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/job_ad.hpp"

namespace glidepod::apptainer {

namespace {

constexpr std::size_t k_longest_config = 4096;

struct Server {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string cookie;
};

// "ADDRESS PORT COOKIE", as IOProxy::init writes it.
Result<Server> parse_server(std::string_view text) {
  const auto words = split(trim(text), ' ');
  if (words.size() != 3) return error("it is not of the form ADDRESS PORT COOKIE");
  const auto port = TRY(parse_integer(words[1]));
  if (port <= 0 || port > 65535) return error("{} is not a port", port);
  Server server;
  const std::string& host = words[0];
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    server.size = sizeof v4;
    std::memcpy(&server.address, &v4, sizeof v4);
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    server.size = sizeof v6;
    std::memcpy(&server.address, &v6, sizeof v6);
  } else {
    return error("{} is no address", one_line(host, 100));
  }
  server.cookie = words[2];
  return server;
}

Result<Server> find_server(const std::string& sandbox) {
  const std::string path = sandbox + "/" + k_chirp_config;
  const Fd file = TRY(open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return Error::system("{}", path);
  if (!S_ISREG(found.st_mode)) return error("{} is no file", path);
  return parse_server(TRY(read_all(file, path, k_longest_config))).in(path);
}

// Words of Chirp end at a blank. Nothing that is told here has one.
bool is_one_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '\\'; });
}

// A word of Chirp in which blanks and backslashes stand for themselves.
std::string as_word(std::string_view text) {
  std::string word;
  for (const char c : text) word += (c == ' ' || c == '\\') ? std::string{'\\', c} : std::string{c};
  return word;
}

std::string commands(const Server& server, const wire::Ran& ran, std::string_view set_aside) {
  std::string result = fmt::format("cookie {}\n", server.cookie);
  const auto tell = [&](std::string_view name, const std::string& value) {
    if (is_one_word(value)) result += fmt::format("set_job_attr_delayed ChirpGlidepod{} {}\n", name, value);
  };
  const auto text = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) tell(name, condor::quote(value));
  };
  text("Container", ran.container);
  text("Digest", ran.digest);
  text("How", ran.how);
  if (!ran.container.empty())
    tell("BindTime", fmt::format("{:.3f}", static_cast<double>(ran.bind_microseconds) / 1e6));
  if (!set_aside.empty()) {
    result +=
        fmt::format("set_job_attr_delayed ChirpGlidepodSetAside {}\n", as_word(condor::quote(set_aside)));
    // Into the job's log, where the job may do that itself (+WantIOProxy); else the starter refuses it.
    result += fmt::format(
        "ulog {}\n",
        as_word(fmt::format("not brought back (pipes, sockets, devices or links to them): {}", set_aside)));
  }
  return result;
}

// Until the descriptor is ready, or the time is over.
Result<void> ready(const Fd& fd, short events, SteadyTime end) {
  for (;;) {
    const auto left = std::chrono::duration_cast<Milliseconds>(end - Loop::now()).count();
    if (left <= 0) return error("no answer in time");
    pollfd wanted{fd.get(), events, 0};
    const int count = ::poll(&wanted, 1, static_cast<int>(left) + 1);
    if (count > 0) return {};
    if (count < 0 && errno != EINTR) return Error::system("poll");
  }
}

}  // namespace

Result<void> tell_job_ad(const std::string& sandbox, const wire::Ran& ran, std::string_view set_aside,
                         Milliseconds limit) {
  const auto end = Loop::now() + limit;
  const Server server = TRY(find_server(sandbox));
  const Fd socket(::socket(server.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::system("socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&server.address), server.size) != 0) {
    if (errno != EINPROGRESS) return Error::system("connect");
    TRY(ready(socket, POLLOUT, end));
  }
  const std::string text = commands(server, ran, set_aside);
  // A few hundred bytes go into the socket's buffer at once, or not at all.
  if (::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    return Error::system("send");
  for (auto left = std::ranges::count(text, '\n'); left > 0;) {
    TRY(ready(socket, POLLIN, end));
    char answer[256];
    const ssize_t got = ::recv(socket.get(), answer, sizeof answer, 0);
    if (got == 0) return error("the starter closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR) return Error::system("recv");
    if (got > 0) left -= std::count(answer, answer + got, '\n');
  }
  return {};
}

}  // namespace glidepod::apptainer
