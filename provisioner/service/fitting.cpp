#include "provisioner/service/fitting.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/base/json.hpp"

namespace glidepod::provisioner {

namespace {

// How many of these fit.
std::size_t take(Fitting& result, const std::vector<std::size_t>& order, std::size_t most,
                 const std::function<nlohmann::json(std::size_t)>& make) {
  auto& text = result.entries;
  text.clear();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto entry = json_text(make(order[i]));
    if (text.size() + entry.size() + 1 > most) return i;
    if (!text.empty()) text += ',';
    text += entry;
  }
  return order.size();
}

}  // namespace

Fitting fitting(std::size_t number, std::size_t most, const std::function<nlohmann::json(std::size_t)>& make,
                const std::function<std::int64_t(std::size_t)>& rank) {
  Fitting result;
  std::vector<std::size_t> order(number);
  std::iota(order.begin(), order.end(), 0);
  if (take(result, order, most, make) == number) return result;
  std::vector<std::int64_t> ranks;
  ranks.reserve(number);
  for (const auto at : order) ranks.push_back(rank(at));
  std::ranges::stable_sort(order, {}, [&ranks](std::size_t at) { return ranks[at]; });
  const auto fit = take(result, order, most, make);
  result.left_out.assign(order.begin() + static_cast<std::ptrdiff_t>(fit), order.end());
  return result;
}

}  // namespace glidepod::provisioner
