#include "provisioner/service/fitting.hpp"

#include <algorithm>
#include <numeric>

#include "lib/base/json.hpp"

namespace glidepod::provisioner {

namespace {

// How many of these fit.
std::size_t take(Fitting& result, const std::vector<std::size_t>& order, std::size_t most,
                 const std::function<nlohmann::json(std::size_t)>& make) {
  result.entries = nlohmann::json::array();
  std::size_t size = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto entry = make(order[i]);
    if (most != k_any_size) size += json_text(entry).size() + 1;
    if (size > most) return i;
    result.entries.push_back(std::move(entry));
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
  for (const auto at : order) ranks.push_back(rank(at));
  std::ranges::stable_sort(order, {}, [&ranks](std::size_t at) { return ranks[at]; });
  const auto fit = take(result, order, most, make);
  result.left_out.assign(order.begin() + static_cast<std::ptrdiff_t>(fit), order.end());
  return result;
}

}  // namespace glidepod::provisioner
