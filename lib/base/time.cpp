#include "lib/base/time.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

namespace glidepod {

std::optional<WallTime> parse_time(const std::string& text) {
  std::tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest) return std::nullopt;
  WallTime time = std::chrono::system_clock::from_time_t(timegm(&parts));
  if (*rest == '.') {
    std::int64_t scale = 100000000, nanoseconds = 0;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, scale /= 10) nanoseconds += (*rest - '0') * scale;
    time += std::chrono::nanoseconds(nanoseconds);
  }
  if (*rest == '+' || *rest == '-') {
    int hours = 0, minutes = 0;
    if (sscanf(rest + 1, "%2d:%2d", &hours, &minutes) == 2) {
      const auto offset = std::chrono::minutes(hours * 60 + minutes);
      time += *rest == '+' ? -offset : offset;
    }
  }
  return time;
}

std::string time_text(WallTime time, Precision precision) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t seconds = whole.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32] = {};
  const std::string date(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts));
  if (precision == Precision::seconds) return date + "Z";
  const auto micro = std::chrono::duration_cast<std::chrono::microseconds>(time - whole).count();
  return fmt::format("{}.{:06}Z", date, micro);
}

std::string duration_text(std::int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s", std::max<std::int64_t>(seconds, 0));
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h", seconds / 3600);
}

}  // namespace glidepod
