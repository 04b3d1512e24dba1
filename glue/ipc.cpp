#include "glue/ipc.hpp"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "lib/base/file.hpp"

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

// In a segment's mode: removed already, and there until the last process has detached it. Not in libc's
// headers.
constexpr unsigned k_shm_dest = 01000;

// A neighbour can make the tables long, and they are read at every launch: nothing is copied.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

std::optional<unsigned> number(std::string_view word, int base = 10) {
  unsigned result = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), result, base);
  return error == std::errc() && end == word.data() + word.size() && !word.empty() ? std::optional(result)
                                                                                   : std::nullopt;
}

// A kernel without System V IPC has no tables, and nothing in them.
std::vector<int> ids_in(const Kind& kind, uid_t creator) {
  const auto table = read_file(kind.path);
  return table ? ipc_ids_of(table.value(), creator) : std::vector<int>();
}

}  // namespace

std::vector<int> ipc_ids_of(std::string_view table, uid_t creator) {
  // The columns differ among the three tables, but for the second: shmid, semid or msqid.
  constexpr int k_id = 1;
  int perms = -1, cuid = -1;
  std::string_view header = take_line(table);
  for (int column = 0; !header.empty(); ++column) {
    const std::string_view name = take_word(header);
    if (name == "perms") perms = column;
    if (name == "cuid") cuid = column;
  }
  std::vector<int> ids;
  while (!table.empty()) {
    std::string_view line = take_line(table);
    std::optional<unsigned> id, mode, made_by;
    for (int column = 0; !line.empty(); ++column) {
      const std::string_view word = take_word(line);
      if (column == k_id) id = number(word);
      if (column == perms) mode = number(word, 8);
      if (column == cuid) made_by = number(word);
    }
    if (id && mode && made_by == creator && (*mode & k_shm_dest) == 0) ids.push_back(static_cast<int>(*id));
  }
  return ids;
}

bool has_ipc(uid_t creator) {
  return std::ranges::any_of(k_kinds, [&](const Kind& kind) { return !ids_in(kind, creator).empty(); });
}

std::uint32_t remove_ipc(uid_t creator) {
  std::uint32_t removed = 0;
  for (const Kind& kind : k_kinds)
    for (const int id : ids_in(kind, creator)) removed += kind.remove(id) == 0;
  return removed;
}

}  // namespace glidepod::glue
