#include "tests/explore/search.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>

namespace glidepod::explore {

namespace {
constexpr std::size_t k_arena = std::size_t{64} << 20;
constexpr int k_compared_steps = 3;
constexpr std::size_t k_most_samples = 20'000;
constexpr int k_most_steps_to_rest = 1000;

class Locked {
 public:
  explicit Locked(std::atomic_flag& lock) : lock_(lock) {
    while (lock_.test_and_set(std::memory_order_acquire)) {
    }
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { lock_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& lock_;
};

void copy(const Path& path, Shared::Slot& slot) {
  slot.length = static_cast<std::uint32_t>(std::min(path.size(), std::size(slot.path)));
  std::copy_n(path.begin(), slot.length, slot.path);
}

// The first thing that can happen, of what is no fault; none if the pod is at rest.
const Choice* first_of(const std::vector<Choice>& choices) {
  const auto found = std::ranges::find_if(choices, [](const Choice& one) { return !one.is_fault(); });
  return found == choices.end() ? nullptr : &*found;
}

// When nothing can happen any more: two more jobs, in one order of events.
void end_well(Model& model) {
  model.check_rest();
  model.begin_finals();
  for (int i = 0; i < k_most_steps_to_rest && model.verdict().empty(); ++i) {
    const Choice* next = first_of(model.choices());
    if (next == nullptr) return model.check_rest();
    model.apply(Choice(*next));
  }
  model.check_rest();
}
}  // namespace

std::string text_of(const Path& path) {
  std::string text;
  for (const std::uint8_t choice : path) text += (text.empty() ? "" : ".") + std::to_string(choice);
  return text;
}

Search::Search(const Variant& variant, int faults, const Limits& limits, Table& table, Shared& shared)
    : limits_(limits), table_(table), shared_(shared) {
  arena::open(k_arena);
  const arena::Scope scope;
  model_ = new Model(variant, faults, false);
}

void Search::work() {
  arena::save(root_);
  Path work;
  while (take(work)) explore(work);
  shared_.steps += count_;
}

// Waits until there is work; false if all processes wait.
bool Search::take(Path& work) {
  ++shared_.idle;
  while (!shared_.stop) {
    {
      const Locked locked(shared_.lock);
      if (shared_.has_work) {
        shared_.has_work = false;
        work.assign(shared_.work.path, shared_.work.path + shared_.work.length);
        --shared_.idle;
        return true;
      }
      if (shared_.idle == limits_.processes) return false;
    }
    ::usleep(200);
  }
  return false;
}

// Gives away the part of the tree that is nearest to its root.
void Search::share() {
  const Locked locked(shared_.lock);
  if (shared_.has_work) return;
  Path path = base_;
  for (std::size_t i = 0; i < depth_; ++i) {
    Node& node = *nodes_[i];
    if (node.next < node.choices.size()) {
      path.push_back(static_cast<std::uint8_t>(node.next++));
      if (path.size() > std::size(shared_.work.path)) return;
      copy(path, shared_.work);
      shared_.has_work = true;
      return;
    }
    path.push_back(static_cast<std::uint8_t>(node.taken));
  }
}

Path Search::path() const {
  Path path = base_;
  for (std::size_t i = 0; i < depth_; ++i) path.push_back(static_cast<std::uint8_t>(nodes_[i]->taken));
  return path;
}

void Search::fail(const std::string& verdict) {
  const Locked locked(shared_.lock);
  shared_.stop = true;
  if (shared_.failed) return;
  shared_.failed = true;
  copy(path(), shared_.failure);
  std::copy_n(verdict.begin(), std::min(verdict.size(), std::size(shared_.verdict) - 1), shared_.verdict);
}

void Search::step(std::size_t choice) {
  const arena::Scope scope;
  const Choice next = model_->choices()[choice];
  model_->apply(next);
}

void Search::explore(const Path& from) {
  base_ = from;
  depth_ = 0;
  on_path_.clear();
  arena::restore(root_);
  for (const std::uint8_t choice : from) step(choice);
  enter();
  std::size_t loaded = depth_;
  while (depth_ > 0 && !shared_.stop) {
    Node& node = *nodes_[depth_ - 1];
    if (node.next == node.choices.size()) {
      on_path_.erase(node.digest);
      --depth_;
      continue;
    }
    if (loaded != depth_) arena::restore(node.saved);
    node.taken = node.next++;
    const Choice choice = node.choices[node.taken];
    {
      const arena::Scope scope;
      model_->apply(choice);
    }
    const std::size_t before = depth_;
    enter();
    loaded = depth_ > before ? depth_ : 0;
    if (++count_ % 256 != 0) continue;
    shared_.steps += count_;
    count_ = 0;
    if (shared_.states >= limits_.states || Clock::now() >= limits_.end) shared_.stop = true;
    if (shared_.idle > 0) share();
  }
}

// The model is in a state that was reached by path().
void Search::enter() {
  if (!model_->verdict().empty()) return fail(std::string(model_->verdict()));
  const std::uint64_t digest = digest_of(*model_);
  if (!table_.insert(digest)) {
    if (const auto found = on_path_.find(digest); found != on_path_.end()) check_cycle(found->second);
    if (digest % limits_.compare_one_in == 0) compare(digest);
    return;
  }
  ++shared_.states;
  if (digest % limits_.compare_one_in == 0 && samples_.size() < k_most_samples) samples_[digest] = path();
  if (nodes_.size() == depth_) nodes_.push_back(std::make_unique<Node>());
  Node& node = *nodes_[depth_];
  {
    const arena::Scope scope;
    model_->choices();
  }
  arena::save(node.saved);
  {
    const auto& choices = model_->choices();
    node.choices.assign(choices.begin(), choices.end());
  }
  node.next = 0;
  node.digest = digest;
  if (first_of(node.choices) == nullptr) {
    ++shared_.rests;
    std::string verdict;
    {
      const arena::Scope scope;
      end_well(*model_);
    }
    if (!model_->verdict().empty()) return fail(std::string(model_->verdict()));
    arena::restore(node.saved);
  }
  on_path_[digest] = depth_;
  ++depth_;
  if (depth_ + base_.size() > shared_.deepest) shared_.deepest = depth_ + base_.size();
}

// What leads back to where it began, though nobody does anything, never ends.
void Search::check_cycle(std::size_t first) {
  for (std::size_t i = first; i < depth_; ++i) {
    const Node& node = *nodes_[i];
    const Choice& choice = node.choices[node.taken];
    if (choice.is_fault() || choice.kind == Kind::ask || choice.kind == Kind::ends) return;
    const auto other = [](const Choice& one) { return !one.is_fault() && one.kind != Kind::time; };
    if (choice.kind == Kind::time && std::ranges::any_of(node.choices, other)) return;
  }
  fail("a pod comes to rest: it goes round for ever");
}

// Whether what follows is the same as after the first path that led to this digest.
void Search::compare(std::uint64_t digest) {
  const auto sample = samples_.find(digest);
  if (sample == samples_.end()) return;
  const Path mine = path();
  const Path other = std::exchange(sample->second, {});
  samples_.erase(sample);
  arena::Saved here, a, b;
  arena::save(here);
  arena::restore(root_);
  for (const std::uint8_t choice : other) step(choice);
  arena::save(b);
  arena::restore(root_);
  for (const std::uint8_t choice : mine) step(choice);
  arena::save(a);
  if (!alike(a, b, k_compared_steps))
    fail("two states that count as one go on alike: not after" + difference_ + "; the other is " +
         text_of(other));
  ++shared_.compared;
  arena::restore(here);
}

bool Search::alike(const arena::Saved& a, const arena::Saved& b, int steps) {
  const auto load = [this](const arena::Saved& saved) {
    arena::restore(saved);
    const arena::Scope scope;
    model_->choices();
  };
  load(b);
  const std::vector<Choice> others(model_->choices());
  const std::uint64_t digest = digest_of(*model_);
  const bool fine = model_->verdict().empty();
  load(a);
  const std::vector<Choice> choices(model_->choices());
  if (choices != others || digest != digest_of(*model_) || fine != model_->verdict().empty()) return false;
  if (steps == 0 || !fine) return true;
  arena::Saved next_a, next_b;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    arena::restore(b);
    step(i);
    arena::save(next_b);
    arena::restore(a);
    step(i);
    arena::save(next_a);
    if (alike(next_a, next_b, steps - 1)) continue;
    difference_ =
        fmt::format(" {} {} {}{}", name_of(choices[i].kind), choices[i].a, choices[i].b, difference_);
    return false;
  }
  return true;
}

namespace {
// Of wishes, those that can be; then whatever comes first, until the pod is at rest.
Replayed attempt(const Variant& variant, int faults, const std::vector<Choice>& wishes) {
  Replayed result;
  Model model(variant, faults, false);
  for (const Choice& wish : wishes) {
    if (!model.verdict().empty()) break;
    const auto& choices = model.choices();
    const auto found = std::ranges::find_if(choices, [&](const Choice& one) {
      return one.kind == wish.kind && one.a == wish.a && one.b == wish.b;
    });
    if (found == choices.end()) continue;
    result.path.push_back(static_cast<std::uint8_t>(found - choices.begin()));
    result.choices.push_back(*found);
    model.apply(Choice(*found));
  }
  if (model.verdict().empty() && first_of(model.choices()) == nullptr) end_well(model);
  result.verdict = model.verdict();
  return result;
}

std::string property_of(const std::string& verdict) {
  return verdict.substr(0, verdict.find(": "));
}
}  // namespace

Replayed replay(const Variant& variant, int faults, const Path& path, bool tell) {
  Replayed result;
  Model model(variant, faults, tell);
  for (const std::uint8_t index : path) {
    const auto& choices = model.choices();
    if (index >= choices.size()) break;
    result.path.push_back(index);
    result.choices.push_back(choices[index]);
    model.apply(Choice(choices[index]));
    if (!model.verdict().empty()) break;
  }
  if (model.verdict().empty() && first_of(model.choices()) == nullptr) end_well(model);
  result.verdict = model.verdict();
  return result;
}

Replayed shortened(const Variant& variant, int faults, const Path& path) {
  Replayed best = replay(variant, faults, path, false);
  const std::string property = property_of(best.verdict);
  if (property.empty()) return best;
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (std::size_t length = std::max<std::size_t>(best.choices.size() / 4, 1); length > 0; length /= 2) {
      for (std::size_t at = 0; at + length <= best.choices.size();) {
        std::vector<Choice> wishes = best.choices;
        wishes.erase(wishes.begin() + static_cast<std::ptrdiff_t>(at),
                     wishes.begin() + static_cast<std::ptrdiff_t>(at + length));
        Replayed next = attempt(variant, faults, wishes);
        if (property_of(next.verdict) == property && next.path.size() < best.path.size()) {
          best = std::move(next);
          shorter = true;
        } else {
          ++at;
        }
      }
    }
  }
  return best;
}

}  // namespace glidepod::explore
