#include "glue/ipc.hpp"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include <algorithm>
#include <array>
#include <string>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

struct Kind {
  const char* path;
  int (*remove)(int id);
};

constexpr std::array k_kinds = {
    Kind{"/proc/sysvipc/shm", [](int id) { return ::shmctl(id, IPC_RMID, nullptr); }},
    Kind{"/proc/sysvipc/sem", [](int id) { return ::semctl(id, 0, IPC_RMID); }},
    Kind{"/proc/sysvipc/msg", [](int id) { return ::msgctl(id, IPC_RMID, nullptr); }},
};

std::vector<std::string> words(std::string_view line) {
  auto parts = split(line, ' ');
  std::erase(parts, "");
  return parts;
}

// A kernel without System V IPC has no tables, and nothing in them.
std::vector<int> ids_in(const Kind& kind, uid_t uid) {
  const auto table = read_file(kind.path);
  return table ? ipc_ids_of(table.value(), uid) : std::vector<int>();
}

}  // namespace

std::vector<int> ipc_ids_of(std::string_view table, uid_t uid) {
  const auto lines = split(table, '\n');
  const auto header = words(lines[0]);
  const auto column = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  };
  // shmid, semid or msqid is the second; the owner's column differs among the three.
  const std::size_t owner = column("uid"), creator = column("cuid");
  std::vector<int> ids;
  if (header.size() < 2 || owner == header.size() || creator == header.size()) return ids;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto row = words(lines[i]);
    if (row.size() < header.size()) continue;
    const std::string wanted = std::to_string(uid);
    const auto id = parse_integer(row[1]);
    if (id && (row[owner] == wanted || row[creator] == wanted)) ids.push_back(static_cast<int>(id.value()));
  }
  return ids;
}

bool has_ipc(uid_t uid) {
  return std::ranges::any_of(k_kinds, [&](const Kind& kind) { return !ids_in(kind, uid).empty(); });
}

std::uint32_t remove_ipc(uid_t uid) {
  std::uint32_t removed = 0;
  for (const Kind& kind : k_kinds)
    for (const int id : ids_in(kind, uid)) removed += kind.remove(id) == 0;
  return removed;
}

}  // namespace glidepod::glue
