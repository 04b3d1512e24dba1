#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace glidepod {

using WallTime = std::chrono::system_clock::time_point;

// Reads a time in RFC 3339, as Kubernetes and podman write it: "2026-01-31T12:00:00Z", with fractions or an
// offset. Nothing if the text is no such time.
std::optional<WallTime> parse_time(const std::string& text);
// A time as text in UTC: to the second, or as Kubernetes' MicroTime.
enum class Precision : std::uint8_t { seconds, microseconds };
std::string time_text(WallTime time, Precision precision = Precision::seconds);

// A duration for people: "48 s", "5 min", "3 h".
std::string duration_text(std::int64_t seconds);

}  // namespace glidepod
