#include "pilot-agent/core/likely.hpp"

#include <algorithm>
#include <cmath>

namespace glidepod::agent {

namespace {

constexpr double k_fades = 0.995;  // each new job multiplies the weights of all before it by this
constexpr double k_queued = 10;    // waiting jobs together weigh as much as this many jobs that just ran here
constexpr double k_trouble = 0.005;  // a renewal must be worth this share of all weight

bool serves(const Free& one, const Lately::One& wanted) {
  return one.ready && one.image == wanted.image && (one.owner.empty() || one.owner == wanted.owner);
}

// For each image and owner: how many containers serve it now.
std::vector<int> served(std::span<const Lately::One> lately, std::span<const Free> free) {
  std::vector<int> result;
  for (const auto& wanted : lately)
    result.push_back(static_cast<int>(
        std::ranges::count_if(free, [&wanted](const Free& one) { return serves(one, wanted); })));
  return result;
}

// What the last of `count` containers of one image is worth.
double worth(const Lately::One& wanted, int count) {
  return std::ldexp(wanted.weight, -count);
}

double loss(std::span<const Lately::One> lately, const std::vector<int>& counts, const Free& one) {
  double result = 0;
  for (std::size_t i = 0; i < lately.size(); ++i)
    if (serves(one, lately[i])) result += worth(lately[i], counts[i]);
  return result;
}

// What one more container of this image is worth beside the others.
double gain(std::span<const Lately::One> lately, const std::vector<int>& counts, const Image& image) {
  double result = 0;
  for (std::size_t i = 0; i < lately.size(); ++i)
    if (lately[i].image == image) result += worth(lately[i], counts[i] + 1);
  return result;
}

}  // namespace

void Lately::ran(const Image& image, const std::string& owner) {
  for (auto& one : all_) one.weight *= k_fades;
  const auto is_it = [&](const One& one) { return one.image == image && one.owner == owner; };
  if (const auto found = std::ranges::find_if(all_, is_it); found != all_.end()) {
    found->weight += 1;
    return;
  }
  if (all_.size() >= k_most) all_.erase(std::ranges::min_element(all_, {}, &One::weight));
  all_.push_back({image, owner, 1});
}

std::vector<Lately::One> with_queued(std::span<const Lately::One> lately,
                                     std::span<const QueuedImage> queued) {
  std::vector<Lately::One> result(lately.begin(), lately.end());
  double all = 1000;
  double shares = 0;
  for (const auto& one : queued) shares += one.share;
  all = std::max(all, shares);
  for (const auto& [image, share] : queued) result.push_back({image, {}, k_queued * share / all});
  return result;
}

std::optional<Renewal> likeliest(std::span<const Lately::One> lately, std::span<const Free> free,
                                 const std::function<bool(const Image&)>& may_have) {
  const auto counts = served(lately, free);
  std::vector<double> losses;
  for (const Free& one : free) losses.push_back(loss(lately, counts, one));
  double all = 0;
  for (const auto& wanted : lately) all += wanted.weight;
  std::optional<Renewal> best;
  double most = k_trouble * all;
  std::vector<Image> tried;
  for (const auto& candidate : lately) {
    if (std::ranges::find(tried, candidate.image) != tried.end()) continue;
    tried.push_back(candidate.image);
    if (!may_have(candidate.image)) continue;
    // Also in the place of one that has the image already: making it anew gains less for its owner, whose
    // next job may come meanwhile, than it takes.
    const double gained = gain(lately, counts, candidate.image);
    for (std::size_t at = 0; at < free.size(); ++at) {
      if (free[at].stays) continue;
      const double worth_it = gained - losses[at];
      if (worth_it <= most) continue;
      most = worth_it;
      best = Renewal{at, candidate.image};
    }
  }
  return best;
}

std::size_t least_wanted(std::span<const Lately::One> lately, std::span<const Free> free) {
  const auto counts = served(lately, free);
  std::size_t result = 0;
  double least = loss(lately, counts, free[0]);
  for (std::size_t i = 1; i < free.size(); ++i)
    if (const double one = loss(lately, counts, free[i]); one < least) {
      least = one;
      result = i;
    }
  return result;
}

}  // namespace glidepod::agent
