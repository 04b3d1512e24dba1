#pragma once

#include <string>
#include <string_view>

#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// The patterns that are taken: at most 200 lower-case letters, digits, '-', '.' (any character) and '|'
// (either side of it), and at most three of '*', '+' and '?' behind such a character. There is nothing that
// takes long to match, or that reaches beyond the pattern. HTCondor's regexp() reads it, and START of
// images/pilot/config.d has the same; a test compares the two.
inline constexpr const char* k_namespace_patterns =
    "^(?=.{1,200}$)[a-z0-9.|-]*(?:[a-z0-9.-][*+?][a-z0-9.|-]*){0,3}$";
bool is_namespace_pattern(std::string_view text);

// What a job must meet, as an expression over it.
std::string asks_for_namespace(const std::string& name_space, NamespaceMatching matching);
// The same and, beside it, jobs whose pattern is refused: what a schedd is asked for, so that these are told.
std::string asks_or_refused(const std::string& name_space, NamespaceMatching matching);

}  // namespace glidepod::provisioner
