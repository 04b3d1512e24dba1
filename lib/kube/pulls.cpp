#include "lib/kube/pulls.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/kube/image_reference.hpp"

namespace glidepod::kube {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_longest_ask = 64, k_longest_reason = 64, k_longest_message = 1000;
// Room for the longest possible names, each with a message whose every letter is escaped.
constexpr std::size_t k_longest_text = k_most_wanted * 8192;
constexpr std::array<std::string_view, 4> k_states = {"pulling", "ready", "failed", "lost"};

bool good_ask(std::string_view ask) {
  return !ask.empty() && ask.size() <= k_longest_ask && std::ranges::all_of(ask, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::optional<WantedImage> wanted_in(const Json& object) {
  WantedImage wanted{text_of(object, "image"), text_of(object, "ask")};
  if (!good_ask(wanted.ask) || !ImageReference::parse(wanted.image)) return std::nullopt;
  return wanted;
}

std::optional<PulledImage> pulled_in(const Json& object) {
  auto wanted = wanted_in(object);
  if (!wanted) return std::nullopt;
  const auto state = std::ranges::find(k_states, text_of(object, "state"));
  if (state == k_states.end()) return std::nullopt;
  return PulledImage{*std::move(wanted), static_cast<PulledImage::State>(state - k_states.begin()),
                     one_line(text_of(object, "reason"), k_longest_reason),
                     one_line(text_of(object, "message"), k_longest_message)};
}

std::optional<LikelyImage> likely_in(const Json& object) {
  const auto reference = ImageReference::parse(text_of(object, "image"));
  const Json& share = member(object, "share");
  if (!reference || !share.is_number_integer()) return std::nullopt;
  const auto number = share.get<std::int64_t>();
  if (number < 1 || number > 1000) return std::nullopt;
  return LikelyImage{reference->full_name(), static_cast<int>(number)};
}

template <typename T, typename Read>
std::vector<T> read_list(std::string_view text, Read read) {
  std::vector<T> result;
  if (text.size() > k_longest_text) return result;
  const Json list = json_from(text);
  if (!list.is_array()) return result;
  for (std::size_t i = 0; i < std::min(list.size(), k_most_wanted); ++i)
    if (auto one = read(list[i])) result.push_back(*std::move(one));
  return result;
}

}  // namespace

std::string wanted_text(const std::vector<WantedImage>& wanted) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(wanted.size(), k_most_wanted); ++i)
    list.push_back({{"image", wanted[i].image}, {"ask", wanted[i].ask}});
  return json_text(list);
}

std::string likely_text(const std::vector<LikelyImage>& likely) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(likely.size(), k_most_wanted); ++i)
    list.push_back({{"image", likely[i].image}, {"share", likely[i].share}});
  return json_text(list);
}

std::vector<LikelyImage> read_likely(std::string_view text) {
  return read_list<LikelyImage>(text, likely_in);
}

std::string pulled_text(const std::vector<PulledImage>& pulled) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(pulled.size(), k_most_wanted); ++i) {
    const auto& [wanted, state, reason, message] = pulled[i];
    Json one = {{"image", wanted.image},
                {"ask", wanted.ask},
                {"state", k_states.at(static_cast<std::size_t>(state))}};
    if (!reason.empty()) one["reason"] = one_line(reason, k_longest_reason);
    if (!message.empty()) one["message"] = one_line(message, k_longest_message);
    list.push_back(std::move(one));
  }
  return json_text(list);
}

std::vector<WantedImage> read_wanted(std::string_view text) {
  return read_list<WantedImage>(text, wanted_in);
}

std::vector<PulledImage> read_pulled(std::string_view text) {
  return read_list<PulledImage>(text, pulled_in);
}

}  // namespace glidepod::kube
