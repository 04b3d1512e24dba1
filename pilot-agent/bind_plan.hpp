#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::agent {

// What is there in every payload container.
struct Shared {
  std::string scratch;             // the folder of the job sandboxes
  std::vector<std::string> paths;  // other paths, the same as here
};

// The links that make a job's binds (src[:dst[:options]]) true in a payload container; a bind of what is not
// there is an Error for the user. The wrapper script of HTCondor's launcher is the client's affair and
// skipped.
Result<std::vector<wire::Link>> plan_binds(const std::vector<std::string>& binds, const Shared& shared);

// Whether a path, both without "..", is the folder or below it.
bool inside(std::string_view path, std::string_view folder);

// The message to glue, but for the job's number: what the bind says, and who the caller is.
struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::string name;
};
Result<wire::Launch> plan_launch(const wire::Bind& bind, const Caller& caller, const Shared& shared);

}  // namespace glidepod::agent
