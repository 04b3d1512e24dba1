#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

namespace glidepod::provisioner {

// The processor time that reading one schedd's answer may take: all of it, and what each owner's jobs may
// take of that, so that nobody's jobs keep another's from being read.
class AnswerBudget {
 public:
  // What this thread has used.
  static std::chrono::nanoseconds processor_time();
  using Clock = std::function<std::chrono::nanoseconds()>;
  explicit AnswerBudget(Clock clock = processor_time) : clock_(std::move(clock)) {}

  enum class Spent : std::uint8_t { no, by_owner, by_all };
  // Reads an ad of the owner, unless what there was for it is spent.
  Spent read(const std::string& owner, const std::function<void()>& ad);

 private:
  Clock clock_;
  std::chrono::nanoseconds all_{0};
  std::map<std::string, std::chrono::nanoseconds> owners_;
};

}  // namespace glidepod::provisioner
