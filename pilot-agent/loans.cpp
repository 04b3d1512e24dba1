#include "pilot-agent/loans.hpp"

#include "lib/base/log.hpp"

namespace glidepod::agent {

Result<std::unique_ptr<Loans>> Loans::create(Loop& loop, std::function<void()> returned) {
  std::unique_ptr<Loans> loans(new Loans(std::move(returned)));
  loans->inbox_ = TRY(Inbox::create(loop));
  return loans;
}

Result<Lent> Loans::lend(ClientId client, JobId pilot, Lent what, const std::set<uid_t>& busy,
                         std::function<void(const Result<void>&)> lent) {
  if (!families_.contains(pilot)) families_[pilot] = TRY(users_.take(busy));
  what.family = families_.at(pilot);
  what.borrower = TRY(users_.take(busy));
  const auto loan = std::make_shared<Loan>();
  loan->what = what;
  by_client_[client] = loan;
  lender_.run([this, client, loan, lent = std::move(lent)] {
    const auto done = glidepod::agent::lend(loan->what);
    inbox_->post([this, client, lent, done] {
      if (by_client_.contains(client)) lent(done);
    });
  });
  return what;
}

void Loans::launched(ClientId client, JobId job) {
  const auto found = by_client_.find(client);
  if (found == by_client_.end()) return;
  found->second->launched = true;
  by_job_[job] = found->second;
}

void Loans::over(JobId job) {
  if (const auto family = families_.extract(job)) users_.give_back(family.mapped());
  if (const auto loan = by_job_.extract(job)) give_back(loan.mapped());
}

void Loans::forget(ClientId client) {
  const auto loan = by_client_.extract(client);
  if (loan && !loan.mapped()->launched) give_back(loan.mapped());
}

void Loans::when_returned(ClientId client, std::function<void()> act) {
  const auto found = by_client_.find(client);
  if (found == by_client_.end() || found->second->returned) return act();
  found->second->after.push_back(std::move(act));
  if (!found->second->launched) give_back(found->second);
}

void Loans::give_back(const Shared& loan) {
  if (std::exchange(loan->returning, true)) return;
  lender_.run([this, loan] {
    const auto taken = take_back(loan->what);
    inbox_->post([this, loan, taken] {
      if (!taken)
        spdlog::warn("event=not_taken_back folder={} reason={}", quoted(loan->what.folder),
                     quoted(taken.error().message()));
      loan->returned = true;
      users_.give_back(loan->what.borrower);
      for (const auto& act : std::exchange(loan->after, {})) act();
      returned_();
    });
  });
}

}  // namespace glidepod::agent
