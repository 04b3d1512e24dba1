#include "store/tokens.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/http/blocking.hpp"
#include "store/digest.hpp"

namespace glidepod::store {
namespace {

constexpr std::chrono::seconds k_believed{60};
constexpr std::chrono::seconds k_refused_for{10};  // so that a flood of wrong tokens is none at the API
constexpr std::size_t k_most_known = 4096;  // of wrong tokens; of good ones there are as many as pilots
constexpr std::size_t k_most_asked = 8;
constexpr std::size_t k_longest_token = std::size_t{16} << 10;
constexpr Milliseconds k_patience{15'000};

Error not_let_in(std::string why) {
  return Error(std::move(why)).with(NotLetIn{});
}

}  // namespace

Result<Account> account_in(const std::string& answer, const std::string& audience) {
  const auto json = json_from(answer);
  const auto& status = member(json, "status");
  if (!status.is_object()) return error("the API's answer to a TokenReview cannot be understood");
  if (member(status, "authenticated") != nlohmann::json(true))
    return not_let_in("the token is not good: " + one_line(text_view(status, "error"), 200));
  const auto& audiences = member(status, "audiences");
  if (!audiences.is_array() || std::ranges::find(audiences, nlohmann::json(audience)) == audiences.end())
    return not_let_in("the token is not for the audience " + audience);
  const auto& user = member(status, "user");
  const auto words = split(text_view(user, "username"), ':');
  if (words.size() != 4 || words[0] != "system" || words[1] != "serviceaccount")
    return not_let_in("the token is no service account's");
  Account account{words[2], words[3], {}};
  const auto& pods = member(member(user, "extra"), "authentication.kubernetes.io/pod-name");
  if (pods.is_array() && pods.size() == 1 && pods[0].is_string()) account.pod = pods[0].get<std::string>();
  return account;
}

Result<Account> TokenReviews::review(const std::string& token) const {
  http::Request request;
  request.method = "POST";
  request.url = settings_.api.url + "/apis/authentication.k8s.io/v1/tokenreviews";
  request.unix_socket = settings_.api.unix_socket;
  request.ca_file = settings_.api.ca_file;
  request.timeout = k_patience;
  request.headers = {"Accept: application/json", "Content-Type: application/json"};
  if (!settings_.api.token_file.empty())
    request.authorization =
        fmt::format("Bearer {}", trim(TRY(read_file(settings_.api.token_file, k_longest_token))));
  request.body = json_text({{"apiVersion", "authentication.k8s.io/v1"},
                            {"kind", "TokenReview"},
                            {"spec", {{"token", token}, {"audiences", {settings_.audience}}}}});
  const auto answer = TRY(http::perform(std::move(request)).in("TokenReview"));
  if (const auto failure = kube::failure_in(answer)) return failure->to_error().in("TokenReview");
  auto account = TRY(account_in(answer.body, settings_.audience));
  if (std::ranges::find(settings_.accounts, account.name_space + "/" + account.name) ==
      settings_.accounts.end())
    return not_let_in(fmt::format("service account {}/{} is none of those that are let in",
                                  account.name_space, account.name));
  return account;
}

Result<Account> TokenReviews::account_of(const std::string& token) {
  if (token.empty() || token.size() > k_longest_token) return not_let_in("there is no token of a pilot");
  Digest digest;
  digest.add(token);
  const std::string key = digest.text();
  {
    const std::scoped_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(known_, [now](const auto& each) { return each.second.until <= now; });
    if (const auto found = known_.find(key); found != known_.end()) return found->second.account;
    if (asked_ == k_most_asked) return error("{} tokens are being asked after already", k_most_asked);
    ++asked_;
  }
  // Whoever is known need not wait for this answer.
  auto account = review(token);
  const bool wrong = !account && account.error().fact<NotLetIn>() != nullptr;
  const auto believed = std::chrono::steady_clock::now() + (account ? k_believed : k_refused_for);
  const std::scoped_lock lock(mutex_);
  --asked_;
  if (account || (wrong && known_.size() < k_most_known))
    known_.insert_or_assign(key, Known{account, believed});
  return account;
}

}  // namespace glidepod::store
