#pragma once

namespace glidepod {

// What a map has under a key; null: nothing.
template <typename Map, typename Key>
auto* found_in(Map& map, const Key& key) {
  const auto entry = map.find(key);
  return entry == map.end() ? nullptr : &entry->second;
}

}  // namespace glidepod
