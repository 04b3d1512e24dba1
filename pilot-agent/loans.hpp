#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/base/workers.hpp"
#include "pilot-agent/core/types.hpp"
#include "pilot-agent/inner_users.hpp"
#include "pilot-agent/lending.hpp"

namespace glidepod::agent {

// The users of pilot jobs' own jobs, and the folders that they have on loan while these jobs run.
class Loans {
 public:
  // returned is called each time that a folder has gone back. The loop must outlive it.
  static Result<std::unique_ptr<Loans>> create(Loop& loop, std::function<void()> returned);

  // Takes a user for the borrower and, once for each pilot job, a group for the family; busy has those that
  // are not free. Then it lends in a thread, and calls lent unless the client is gone.
  Result<Lent> lend(ClientId client, JobId pilot, Lent what, const std::set<uid_t>& busy,
                    std::function<void(const Result<void>&)> lent);
  // From now on processes of the borrower may be left, until the job is over.
  void launched(ClientId client, JobId job);
  void over(JobId job);
  // Gives back what no job was launched for.
  void forget(ClientId client);
  // Calls act now or, where the client has a folder on loan, once that is back.
  void when_returned(ClientId client, std::function<void()> act);

 private:
  struct Loan {
    Lent what;
    bool launched = false;   // a process of the borrower's may be left
    bool returning = false;  // or returned
    bool returned = false;
    std::vector<std::function<void()>> after;  // what waits for that
  };
  using Shared = std::shared_ptr<Loan>;

  explicit Loans(std::function<void()> returned) : returned_(std::move(returned)) {}
  void give_back(const Shared& loan);

  std::function<void()> returned_;
  InnerUsers users_;
  std::map<JobId, gid_t> families_;  // by pilot job
  std::map<ClientId, Shared> by_client_;
  std::map<JobId, Shared> by_job_;  // of jobs that were launched
  std::unique_ptr<Inbox> inbox_;
  Workers lender_{1};  // in order; ends before what it uses
};

}  // namespace glidepod::agent
