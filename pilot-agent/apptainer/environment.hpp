#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::apptainer {

// The environment that a program in a container gets, by the rules of the real apptainer (its
// internal/pkg/util/env/create.go and docs, "Environment and Metadata"; version 1.4), in rising order:
//
//  1. The image's own variables. Only glue sees them, so the list made here is what goes over them. PATH is
//     the image's unless APPTAINERENV_PATH names one.
//  2. The caller's variables, without those that begin with APPTAINER_, SINGULARITY_, APPTAINERENV_ or
//     SINGULARITYENV_, and without PATH, HOME and LD_LIBRARY_PATH, which describe the caller's file system.
//     With a clean environment only TERM and the proxy variables pass, and LANG is C.
//  3. SINGULARITYENV_X=Y, then APPTAINERENV_X=Y, as X=Y. HTCondor hands over each of the job's variables so.
//     HOME and the *_SHELL and *_APPNAME settings of apptainer cannot be set this way.
//  4. --env-file, then --env.
//  5. SINGULARITY_APPNAME, if the caller has it or APPTAINER_APPNAME: the app of the image that is to run.
//     HTCondor hands over each of the job's variables by its own name as well.
//  6. HOME, and what tells a program that it runs in a container: APPTAINER_CONTAINER and
//  SINGULARITY_CONTAINER
//     (the image as it was named, since there is no image file), *_NAME (its last part), *_BIND, and
//     APPTAINER_COMMAND (the verb).
//
// PREPEND_PATH and APPEND_PATH (step 3) extend the image's PATH. It is known only in the container, so they
// are passed as SING_USER_DEFINED_PREPEND_PATH and SING_USER_DEFINED_APPEND_PATH, the names that the real
// apptainer gives them on the way; with APPTAINERENV_PATH they count for nothing, there as here.
struct EnvironmentRules {
  std::vector<std::string> caller;   // KEY=VALUE; others are ignored
  std::vector<std::string> files;    // the lines of every --env-file, read
  std::vector<std::string> options;  // --env
  bool clean = false;
  std::string home;
  std::string image;
  std::vector<std::string> binds;
  wire::Verb verb = wire::Verb::exec;
};

// KEY=VALUE strings, each name once, sorted by name.
std::vector<std::string> container_environment(const EnvironmentRules& rules);

// The lines NAME=VALUE of an --env-file, an "export " before them and quotes around a value taken off; blank
// lines and # comments ignored. The real apptainer lets a shell evaluate the file: a line that needs one ($,
// ` outside of single quotes, or no "=") is an error that names it.
Result<std::vector<std::string>> read_environment_text(std::string_view text, std::string_view name);

// The value of a variable in a list of KEY=VALUE strings, nullptr if it is not there.
const char* find_variable(const std::vector<std::string>& environment, std::string_view name);

std::string_view word_of(wire::Verb verb);

}  // namespace glidepod::apptainer
