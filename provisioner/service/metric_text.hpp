#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace glidepod::provisioner {

// Prometheus' text format, appended to a text. Names are whole; labels are as they stand between the braces.

inline void metric_head(std::string& text, std::string_view name, std::string_view type,
                        std::string_view help) {
  text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <typename T>
void metric_sample(std::string& text, std::string_view name, std::string_view labels, T value) {
  const bool any = !labels.empty();
  text += fmt::format("{}{}{}{} {}\n", name, any ? "{" : "", labels, any ? "}" : "", value);
}

// Each bucket counts all below it too; count and sum are of all.
inline void metric_histogram(std::string& text, const std::string& name, std::string_view labels,
                             std::span<const double> bounds, std::span<const std::uint64_t> buckets,
                             std::uint64_t count, double sum) {
  const std::string before = labels.empty() ? std::string() : fmt::format("{},", labels);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    metric_sample(text, name + "_bucket", fmt::format("{}le=\"{}\"", before, bounds[i]), buckets[i]);
  metric_sample(text, name + "_bucket", before + "le=\"+Inf\"", count);
  metric_sample(text, name + "_sum", labels, sum);
  metric_sample(text, name + "_count", labels, count);
}

}  // namespace glidepod::provisioner
