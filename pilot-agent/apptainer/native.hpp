#pragma once

#include <span>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/condor/job_ad.hpp"

namespace glidepod::apptainer {

// The attributes of a job by which HTCondor's starter would start a program of the user's choice, or write a
// file of the user's, in the pilot container instead of the job's payload container. docs/security.md has
// what each does and where HTCondor's source says so; config.d/57-native.config keeps such jobs from
// matching.
struct NativeAttribute {
  std::string_view name;
  std::string_view harmless;  // the one value that asks for nothing, besides undefined; empty: there is none
};
std::span<const NativeAttribute> native_attributes();

// The Error of a job that may not run here says why, in one line. Looks at expressions as they stand: one
// that was undefined when the job matched may have another value when the starter looks.
Result<void> check_native(const condor::JobAttributes& job);

}  // namespace glidepod::apptainer
