#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"

namespace glidepod::glue {

// What Apptainer reads in an image before it starts anything, /.singularity.d/env/*.sh, in the order of their
// names. An image made of an Apptainer one has its variables there, and no others. root: the image's root
// folder.
std::vector<std::string> read_env_scripts(const Fd& root);

// The environment (entries NAME=VALUE) with what these scripts set and export. There need be no shell: each
// is read up to the first line that is more than assignments and export, with quotes, $NAME, ${NAME} and
// ${NAME:-OTHER}, ${NAME:+OTHER}, and no further. It grows by no more than k_most_added.
inline constexpr std::size_t k_most_added = std::size_t{64} * 1024;
struct FromScripts {
  std::vector<std::string> environment;
  bool whole = true;  // false: a script goes on with what takes a shell
};
FromScripts with_env_scripts(std::vector<std::string> environment, const std::vector<std::string>& scripts);

}  // namespace glidepod::glue
