#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace glidepod::agent {

// Counts of the jobs that got a container, and of those that did not, since the agent started.
struct Binds {
  static constexpr std::array<std::string_view, 4> k_hows = {"warm", "fresh", "switched", "pulled"};
  static constexpr std::array<double, 8> k_bounds = {0.1, 0.5, 1, 2, 5, 15, 60, 300};  // seconds

  std::array<std::uint64_t, k_hows.size()> by_how{};
  std::uint64_t user = 0, infrastructure = 0, doubt = 0;  // jobs that got none, by whose fault
  std::array<std::uint64_t, k_bounds.size()> within{};    // each bound counts all below it too
  std::chrono::microseconds took{};

  void bound(std::string_view how, std::chrono::microseconds in) {
    const auto found = std::find(k_hows.begin(), k_hows.end(), how);
    if (found == k_hows.end()) return;
    ++by_how[static_cast<std::size_t>(found - k_hows.begin())];
    for (std::size_t i = 0; i < k_bounds.size(); ++i)
      if (std::chrono::duration<double>(in).count() <= k_bounds[i]) ++within[i];
    took += in;
  }
};

}  // namespace glidepod::agent
