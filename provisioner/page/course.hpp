#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// How demand and pods went over the last day, a point a minute, of each group and of all together. Job owners
// choose the groups: only so many are kept, first those that have had jobs or pods most lately. It takes at
// most k_most_groups * k_most_points * sizeof(Point), 4 MB.
class Course {
 public:
  static constexpr std::size_t k_most_groups = 64;
  static constexpr std::int64_t k_most_points = 1440;  // a day

  // What a cycle decided. A blind one leaves a gap; of the cycles of one minute the last one counts.
  void add(const Plan& plan, Time now);
  // Of the group with that hash, or of "all"; nothing where none is kept.
  //
  //   {"columns": ["unix_time", "idle", ...], "points": [[1700000000, 12, ...], ...]}
  std::optional<nlohmann::json> json(std::string_view hash) const;

 private:
  struct Point {
    std::int64_t minute = 0;  // since 1970
    std::int32_t idle = 0, waiting = 0, unmatched = 0, claimed = 0, broken = 0, wasted = 0;

    void add(const Decision& decision);
    bool something() const;
  };
  struct Line {
    std::int64_t last_minute = 0;  // with jobs or pods
    std::deque<Point> points;

    void add(Point point);
  };
  Line* line_for(const Decision& decision, std::int64_t minute);

  std::map<std::string, Line, std::less<>> lines_;  // by the group's hash
  Line all_;
};

}  // namespace glidepod::provisioner
