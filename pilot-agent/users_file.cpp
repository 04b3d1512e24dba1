#include "pilot-agent/users_file.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::agent {

namespace {
constexpr std::string_view k_clearing = "clearing";

Result<std::set<User>> parse(std::string_view text) {
  std::set<User> users;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const auto words = split(line, ' ');
    const bool clearing = words.size() == 3 && words[2] == k_clearing;
    if (words.size() != 2 && !clearing) return Error("a line is not `UID GID` or `UID GID clearing`");
    const auto uid = TRY(parse_integer(words[0])), gid = TRY(parse_integer(words[1]));
    // What is root's is nobody's leavings.
    if (uid < 1 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX)
      return Error("a line has a number that no job's user or group has");
    users.insert({static_cast<uid_t>(uid), static_cast<gid_t>(gid), clearing});
  }
  return users;
}
}  // namespace

std::set<User> UsersFile::read() const {
  const auto text = read_file(path_, 1 << 20);
  if (!text && text.error().code() == ENOENT) return {};
  auto users = text ? parse(text.value()) : text.error();
  if (users) return std::move(users.value());
  spdlog::warn("event=earlier_users_unknown file={} reason=\"{}\"", path_, users.error().message());
  return {};
}

void UsersFile::keep(std::set<User> users) {
  if (users == kept_) return;
  std::string text;
  for (const User& user : users)
    text += fmt::format("{} {}{}{}\n", user.uid, user.gid, user.clearing ? " " : "",
                        user.clearing ? k_clearing : "");
  kept_ = std::move(users);
  if (const auto written = replace_file(path_, text, 0600, Durable::no); !written)
    spdlog::warn("event=users_not_kept file={} reason=\"{}\"", path_, written.error().message());
}

}  // namespace glidepod::agent
