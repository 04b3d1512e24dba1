#include "tests/glue/simulate/account.hpp"

#include <algorithm>

#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {

std::int64_t microseconds(const timeval& time) {
  return time.tv_sec * 1'000'000L + time.tv_usec;
}

std::int64_t ns(SteadyTime time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

void Account::begins() {
  user_ = system_ = max_rss_ = 0;
  removed_ = 0;
  ended_ns_ = 0;
}

void Account::starts() {
  starts_at_ = world_.now();
  removed_ = 0;
}

void Account::forked() {
  world_.check(read_at_ >= starts_at_, "the memory is read before there is a process");
  before_ = reading_;
  forked_at_ = world_.now();
}

void Account::main_ended() {
  main_ended_at_ = world_.now();
}

std::uint64_t Account::memory_read() {
  read_at_ = world_.now();
  rss_when_read_ = max_rss_;
  looked_on_ = more_to_reap_ || !world_.tree.children(Tree::k_glue).empty();
  return ++reading_;
}

void Account::reaped(const rusage& usage) {
  user_ += microseconds(usage.ru_utime);
  system_ += microseconds(usage.ru_stime);
  max_rss_ = std::max<std::int64_t>(max_rss_, usage.ru_maxrss);
}

// use_between() in ports.cpp gives both readings.
void Account::check_exited(const wire::Exited& exited) {
  world_.check(exited.memory_limit_kib == static_cast<std::int64_t>(before_) &&
                   exited.memory_peak_kib == static_cast<std::int64_t>(reading_) &&
                   exited.oom_kills == reading_ - before_,
               "the memory is that from the launch to the end");
  world_.check(read_at_ >= main_ended_at_, "the memory is read at the end");
  world_.check(exited.max_rss_kib == rss_when_read_, "the largest process is the job's largest");
  world_.check(exited.ended_ns >= ns(main_ended_at_) && exited.ended_ns <= ns(world_.now()),
               "the time of the end is that of the main process");
  ended_ns_ = exited.ended_ns;
  exited_in_ = world_.writes;
}

void Account::check_ended(const wire::JobEnded& ended, bool exited_told) const {
  world_.check(ended.user_microseconds == user_ && ended.system_microseconds == system_ &&
                   ended.max_rss_kib == max_rss_,
               "what was used is what all processes have used");
  world_.check(ended.files_removed == removed_, "as many are said to be removed as were");
  world_.check(ended.started_ns >= ns(starts_at_) && ended.started_ns <= ns(forked_at_),
               "a job has started when its process began");
  if (!exited_told) return world_.check(ended.ended_ns != 0, "what ends has a time of its end");
  world_.check(ended.ended_ns == ended_ns_, "JobEnded has Exited's time");
  world_.check(looked_on_ || exited_in_ == world_.writes,
               "where nothing is left an end is told in one piece");
}

void Account::check_beat(const wire::Beat& beat) const {
  world_.check(beat.memory_kib == used_ && used_ > used_before_, "a beat tells the memory of now");
}

}  // namespace glidepod::glue::simulate
