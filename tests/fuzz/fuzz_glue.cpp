#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "glue/env_scripts.hpp"
#include "glue/ipc.hpp"
#include "glue/links.hpp"
#include "glue/memory.hpp"
#include "glue/processes.hpp"
#include "glue/users.hpp"

using namespace glidepod::glue;

// The texts glue reads that a job or an image has a hand in: a process's stat line (the job names its
// processes), the image's passwd and group files, and Apptainer's there, the kernel's table of IPC objects, a
// link's path.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto stat = parse_stat(text); stat && stat->ended() && stat->threads > 1) std::abort();
  const auto half = text.substr(0, size / 2), rest = text.substr(size / 2);
  const auto line = passwd_line(half, rest, 20001, 20001, rest);
  // One line and no more, whatever the name: a second one could be another root.
  if (line && line->find('\n', line->starts_with('\n') ? 1 : 0) != line->size() - 1) std::abort();
  group_line(half, rest, 20001);
  std::size_t length = 0;
  for (const auto& entry :
       with_env_scripts({"PATH=/bin", "A=1"}, {std::string(half), std::string(rest)}).environment) {
    if (entry.find('=') == std::string::npos || entry.find('\0') != std::string::npos) std::abort();
    length += entry.size();
  }
  if (length > 2 * k_most_added + 1000) std::abort();
  ipc_ids_of(text, 29999);
  counter_in(half, rest);
  if (limit_kib_in(text) < 0) std::abort();
  for (const auto controller : {std::string_view(""), rest})
    if (const auto group = group_in(half, controller))
      if ((*group + "/").find("/../") != std::string::npos || *group == "/") std::abort();
  const std::string path(text);
  const bool dangerous =
      path == "/etc" || path.starts_with("/etc/") || (path + "/").find("/../") != std::string::npos;
  if (dangerous && check_link({path, "/glidepod/scratch/dir_1"}, "/glidepod/scratch").ok()) std::abort();
  return 0;
}
