#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/base/loop.hpp"
#include "lib/wire/channel.hpp"
#include "tests/glue/simulate/account.hpp"
#include "tests/glue/simulate/contact.hpp"
#include "tests/glue/simulate/sessions.hpp"
#include "tests/glue/simulate/workers.hpp"

namespace glidepod::glue::simulate {

class World;
struct Process;

// What really happened, and what glue said of it.
class Truth {
 public:
  explicit Truth(World& world)
      : account(world), contact(world), sessions(world), workers(world), world_(world) {}

  Account account;
  Contact contact;
  Sessions sessions;
  Workers workers;

  // What glue learns, when it learns it
  void handles(const wire::Frame& frame);
  void lost();        // the connection
  void terminated();  // an order to end
  // What it does
  void clears(std::uint64_t job);  // before that, or instead
  void starts(std::uint64_t job);  // a process for it
  void forked(pid_t main);
  void says(std::string_view line);
  void sends(wire::Type type, const std::string& body);
  // It has done with what it handled last.
  void handled(bool connected) const;
  void left(int code);
  // What happens to the job
  void reported_failure();
  void runs();
  void main_ended(int status);
  void may_be_unclean() { excused_ = true; }
  // glue sends a signal to a process, which may have ended since glue saw it live.
  void strikes(const Process& process, int number);
  // It looks for the processes that there are.
  void looks_for_all();
  // It sends SIGKILL to all that it has found, wherever they are below it.
  void kills_all();
  void died(const Process& process);
  // Whether its time is up: nobody is to be spared.
  bool ending() const { return open_ && cause_.has_value(); }
  bool open() const { return open_; }
  bool runs_now() const { return open_ && runs_; }
  bool runs_freely() const { return runs_now() && !suspended_; }
  // So that glue has nothing to do.
  bool runs_calmly() const;
  std::uint64_t job() const { return job_; }
  // Nothing was asked for that has not been answered.
  bool idle() const;
  bool refusing() const { return unclean_ || leaving_at_.has_value(); }

  // Beats that were not answered.
  void beat_sent(std::uint64_t number);
  // After each of glue's turns: nothing is overdue.
  void check();

 private:
  void must_end();
  void handles_signal(const wire::Signal& signal);
  // What its times allow.
  bool may_end() const;
  void take_on(std::uint64_t job);
  void sent_exited(const wire::Exited& exited);
  void sent_end(const wire::JobEnded& ended);
  void sent_failure(const wire::LaunchFailed& failed);
  void close();
  void check_pursuit(SteadyTime now);
  void check_rest(SteadyTime now);

  World& world_;
  // The job that glue has taken on
  std::uint64_t job_ = 0;
  bool open_ = false;
  bool clears_ = false;  // still
  bool of_this_agent_ = false, no_start_ = false, reported_failure_ = false, runs_ = false;
  bool started_told_ = false, exited_told_ = false, end_told_ = false, said_ = false, excused_ = false;
  bool suspended_ = false, woken_ = false;  // by glue, when its container is to end
  bool without_agent_ = false;              // glue knows that there is none, while the job ends
  bool told_ = false;                       // to end, or what else a signal may mean, by the agent
  bool termed_ = false;                     // it was sent SIGTERM
  bool killing_ = false;                    // it has begun to, after stopping
  bool unclean_ = false;                    // of whatever job: something is left
  pid_t main_ = 0;
  int last_pursued_ = 0;  // by a signal of the agent's
  std::optional<int> status_;
  SteadyTime pursued_at_{}, launched_at_, ended_at_;
  std::optional<SteadyTime> cause_;       // since then it must end
  std::map<std::uint64_t, int> answers_;  // to each launch
  std::set<std::uint64_t> only_clear_;    // those that are to start nothing
  std::map<std::uint64_t, SteadyTime> beats_;
  std::set<std::uint64_t> refused_;  // launches that may not be
  std::deque<int> signals_;          // for the main process, which has not had them
  bool goodbye_due_ = false;
  bool malformed_ = false;  // what the agent sent last
  // By glue's SIGKILL; those that died of it, and of another's.
  std::set<std::pair<pid_t, std::uint64_t>> struck_;
  std::set<pid_t> killed_;
  std::size_t killed_by_others_ = 0;
  std::optional<SteadyTime> stopping_since_;  // of this round: they are to stand still, then to die
  std::optional<SteadyTime> leaving_at_, terminated_at_;
  std::optional<Milliseconds> hurried_;  // so long after the time of grace
};

}  // namespace glidepod::glue::simulate
