#pragma once

#include <variant>
#include <vector>

#include "pilot-agent/core/actions.hpp"

namespace glidepod::agent {

// The actions of one kind among those that are taken now; the others are gone.
template <typename T>
std::vector<T> taken(Actions& actions) {
  std::vector<T> all;
  for (const Action& action : actions.take())
    if (const T* one = std::get_if<T>(&action)) all.push_back(*one);
  return all;
}

}  // namespace glidepod::agent
