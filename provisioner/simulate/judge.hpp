#pragma once

#include <map>
#include <string>
#include <vector>

#include "provisioner/simulate/simulate.hpp"

namespace glidepod::provisioner {

// How good the decisions of a simulation were, in a few numbers.
struct Judgement {
  // Of the time that pods held a node, the part without a job.
  double waste = 0;
  // Jain's index (R. Jain et al., DEC-TR-301, 1984) over owners of what each had of its max-min fair share of
  // the pods with a job: 1 if all had the same part. Of all the time, and of the worst hour.
  double fairness = 1, worst_hour = 1;
  // The owner who had least of the fair share.
  std::string last_owner;
  double last_share = 1;
  // Turns of a group's pods from more to fewer, or back, by more than ten and half of their mean, while the
  // scenario's jobs come as before; but for the first one, which serves what has gathered.
  std::int64_t swings = 0;
  std::string last_swing;  // "13:20 in 1;4096;8000000;;0;;"
  // Pods that never had a job: taken back, or ended by themselves; and all that were made.
  std::int64_t taken_back = 0, ended_unused = 0, submitted = 0;
};

// Watches a simulation as its OnPlan.
class Judge {
 public:
  explicit Judge(const Scenario& scenario);
  void operator()(const Demand& demand, const Supply& supply, const Plan& plan);
  Judgement judgement(const std::vector<Sample>& samples) const;

 private:
  struct Share {
    double had = 0, fair = 0;
  };
  using Shares = std::map<std::string, Share>;
  // The turns of a number that goes up and down.
  struct Course {
    double least = 0, most = 0, sum = 0;
    std::int64_t points = 0;
    int direction = 0;
    std::int64_t turns = 0;
    // Whether it has turned again.
    bool swings(double now);
  };
  static double jain(const Shares& shares);
  void share_out(const Demand& demand, const Supply& supply);
  bool steady() const;

  const Scenario& scenario_;
  Seconds now_{0};
  double held_ = 0, worked_ = 0;  // pods, summed over cycles
  Shares shares_, of_hour_;
  double worst_hour_ = 1;
  std::map<Group, Course> courses_;
  std::int64_t swings_ = 0, taken_back_ = 0;
  std::string last_swing_;
};

// The numbers as a line.
std::string to_text(const Judgement& judgement);

}  // namespace glidepod::provisioner
