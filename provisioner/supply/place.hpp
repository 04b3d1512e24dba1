#pragma once

#include <string>
#include <string_view>

namespace glidepod::provisioner {

// What is of a named place, a cluster or namespace beside others ([k8s:NAME]), has the place's name and a
// slash in front of its own name, so that pods and nodes of the same name are told apart. Neither of them has
// a slash itself; those of the only place are called as they are.
inline std::string in_place(std::string_view place, std::string_view name) {
  return place.empty() ? std::string(name) : std::string(place) + '/' + std::string(name);
}
// Empty: it is of the only one; a name that an API should not have is no place's.
inline std::string_view place_of(std::string_view name) {
  const auto end = name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-");
  return end == std::string_view::npos || name[end] != '/' ? std::string_view() : name.substr(0, end);
}
inline std::string_view without_place(std::string_view name) {
  const auto place = place_of(name);
  return place.empty() ? name : name.substr(place.size() + 1);
}

}  // namespace glidepod::provisioner
