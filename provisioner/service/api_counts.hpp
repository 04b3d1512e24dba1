#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace glidepod::provisioner {

// How many observations were at most so long, in Prometheus' way: each bound counts all below it too.
struct Histogram {
  static constexpr std::array<double, 10> k_bounds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60};
  std::array<std::uint64_t, k_bounds.size()> buckets{};
  std::uint64_t count = 0;
  double sum = 0;  // seconds

  void add(double seconds);
};

// What was asked of an API, and how it answered.
struct ApiCounts {
  // By method and HTTP status; 0 is no whole answer.
  std::map<std::pair<std::string, int>, std::uint64_t> requests;
  std::map<std::string, Histogram> seconds;  // by method

  void add(std::string_view method, int status, std::chrono::duration<double> took);
  // For a client; this must outlive it.
  std::function<void(const std::string&, int, std::chrono::duration<double>)> observer() {
    return [this](const std::string& method, int status, std::chrono::duration<double> took) {
      add(method, status, took);
    };
  }
};

}  // namespace glidepod::provisioner
