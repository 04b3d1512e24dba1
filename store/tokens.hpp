#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/kube/client.hpp"

namespace glidepod::store {

// Whose a token is.
struct Account {
  std::string name_space, name;
  std::string pod;  // the pod that it was made for, if it says so
};

// The fact of an Error: the token, or whose it is, is not let in. Without it, that cannot be told now.
struct NotLetIn {};

// Knows whose tokens are. Safe from any thread; each call blocks.
struct Tokens {
  virtual ~Tokens() = default;
  virtual Result<Account> account_of(const std::string& token) = 0;
};

// By the API's TokenReview. An answer is believed for a minute. A flood of wrong tokens keeps nobody out
// whose token is known.
class TokenReviews : public Tokens {
 public:
  struct Settings {
    kube::Endpoint api;
    std::string audience;               // that tokens are to be made for
    std::vector<std::string> accounts;  // NAMESPACE/NAME of those who are let in
  };
  explicit TokenReviews(Settings settings) : settings_(std::move(settings)) {}
  Result<Account> account_of(const std::string& token) override;

 private:
  Result<Account> review(const std::string& token) const;

  Settings settings_;
  std::mutex mutex_;
  struct Known {
    Result<Account> account;
    SteadyTime until;
  };
  std::map<std::string, Known> known_;  // by the token's digest
  std::size_t asked_ = 0;               // questions under way at the API
};

// Reads the API's answer to a TokenReview.
Result<Account> account_in(const std::string& answer, const std::string& audience);

}  // namespace glidepod::store
