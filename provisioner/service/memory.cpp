#include "provisioner/service/memory.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

constexpr int k_memory_version = 1;
constexpr std::size_t k_most_entries = 200;  // entries of a list
constexpr std::size_t k_most_read = 10000;   // of a list, and of pilots that are only counted
constexpr Seconds k_time_bucket{600};

using EventList = std::vector<Fates::Event> Fates::*;
constexpr std::pair<const char*, EventList> k_event_lists[] = {
    {"failures", &Fates::failures}, {"crashes", &Fates::crashes}, {"refusals", &Fates::refusals}};
using TimeList = std::vector<Time> Fates::*;
constexpr std::pair<const char*, TimeList> k_count_lists[] = {{"wasted", &Fates::wasted},
                                                              {"used", &Fates::used}};
using SinceList = std::map<Group, Time> History::*;
constexpr std::pair<const char*, SinceList> k_since_lists[] = {{"surplus", &History::surplus_since},
                                                               {"left", &History::left_since}};

std::int64_t unix_of(Time time) {
  return time.time_since_epoch().count();
}

// Puts what is named again and again into a list.
template <typename T>
class Places {
 public:
  std::size_t of(const T& value) {
    const auto [found, fresh] = places_.try_emplace(value, values_.size());
    if (fresh) values_.push_back(value);
    return found->second;
  }
  const std::vector<T>& values() const { return values_; }

 private:
  std::map<T, std::size_t> places_;
  std::vector<T> values_;
};

// The newest entries; each is kept with its time until they are chosen.
class Newest {
 public:
  void add(Time time, std::function<Json()> entry) { entries_.emplace_back(time, std::move(entry)); }
  Json list(std::size_t most) {
    std::ranges::stable_sort(entries_, [](const auto& a, const auto& b) { return a.first > b.first; });
    entries_.resize(std::min(entries_.size(), most));
    Json result = Json::array();
    for (const auto& entry : entries_) result.push_back(entry.second());
    return result;
  }

 private:
  std::vector<std::pair<Time, std::function<Json()>>> entries_;
};

Json written_of(const Tracker& tracker, const History& history, Time now, std::size_t most) {
  Places<Group> groups;
  Places<std::string> images;
  Json result = {{"version", k_memory_version}, {"time", unix_of(now)}, {"cycle", history.cycle}};
  std::map<std::string, Newest> lists;
  for (const auto& [key, breaker] : history.breakers)
    if (breaker.open || breaker.closed != Time{})
      lists["breakers"].add(std::max(breaker.opened, breaker.closed), [&, k = &key, b = &breaker] {
        return Json{groups.of(k->first), images.of(k->second),    b->open ? unix_of(b->opened) : 0,
                    unix_of(b->closed),  unix_of(b->next_canary), b->pause.count()};
      });
  for (const auto& [name, memory] : history.nodes)
    lists["nodes"].add(memory.since, [n = &name, m = &memory] {
      return Json{*n, unix_of(m->since), unix_of(m->until), m->pause.count(), m->failed};
    });
  for (const auto& [name, list] : k_since_lists)
    for (const auto& [group, since] : history.*list)
      lists[name].add(since, [&, g = &group, s = since] { return Json{groups.of(*g), unix_of(s)}; });
  for (const auto& [group, fates] : tracker.fates()) {
    for (const auto& [name, list] : k_event_lists)
      for (const auto& event : fates.*list)
        lists[name].add(event.outcome.at, [&, g = &group, e = &event] {
          return Json{groups.of(*g), images.of(e->image), unix_of(e->outcome.at), e->outcome.pod,
                      e->outcome.node};
        });
    for (const auto& [name, list] : k_count_lists) {
      std::map<Time, std::int64_t> buckets;
      for (const auto time : fates.*list) ++buckets[time - time.time_since_epoch() % k_time_bucket];
      for (const auto& [time, count] : buckets)
        lists[name].add(time, [&, g = &group, t = time, c = count] {
          return Json{groups.of(*g), unix_of(t), c};
        });
    }
  }
  for (auto& [name, list] : lists) result[name] = list.list(most);
  result["groups"] = Json::array();
  for (const auto& g : groups.values())
    result["groups"].push_back(
        {g.cpus, g.memory_mb, g.disk_kb, g.gpus, g.gpu_types.str(), g.disk_volumes.str(), g.labels.str()});
  result["images"] = images.values();
  return result;
}

// Reads one memory; what is of another type than it must be throws.
class Reader {
 public:
  Reader(const Json& memory, const PolicySettings& settings, Time now)
      : memory_(memory), settings_(settings), now_(now) {}

  Recalled read() {
    for (const auto& g : memory_.at("groups"))
      groups_.push_back({.cpus = whole(g.at(0)),
                         .memory_mb = whole(g.at(1)),
                         .disk_kb = whole(g.at(2)),
                         .disk_volumes = g.at(5).get<std::string>(),
                         .gpus = whole(g.at(3)),
                         .gpu_types = g.at(4).get<std::string>(),
                         .labels = g.at(6).get<std::string>()});
    result_.history.cycle = static_cast<std::uint64_t>(whole(memory_.at("cycle")));
    for (const auto& e : list("breakers")) {
      auto& breaker = result_.history.breakers[{group(e.at(0)), image(e.at(1))}];
      breaker = {.open = e.at(2) != 0,
                 .opened = past(e.at(2)),
                 .closed = past(e.at(3)),
                 .next_canary = soon(e.at(4)),
                 .pause = pause(e.at(5))};
    }
    for (const auto& e : list("nodes"))
      result_.history.nodes[e.at(0).get<std::string>()] = {
          .since = past(e.at(1)), .until = soon(e.at(2)), .pause = pause(e.at(3)), .failed = whole(e.at(4))};
    for (const auto& [name, member] : k_since_lists)
      for (const auto& e : list(name)) (result_.history.*member)[group(e.at(0))] = past(e.at(1));
    for (const auto& [name, member] : k_event_lists)
      for (const auto& e : list(name))
        (result_.fates[group(e.at(0))].*member)
            .push_back(
                {{past(e.at(2)), e.at(3).get<std::string>(), e.at(4).get<std::string>()}, image(e.at(1))});
    for (const auto& [name, member] : k_count_lists)
      for (const auto& e : list(name)) {
        const auto count = std::clamp<std::int64_t>(whole(e.at(2)), 0, left_);
        left_ -= count;
        auto& times = result_.fates[group(e.at(0))].*member;
        times.insert(times.end(), static_cast<std::size_t>(count), past(e.at(1)));
      }
    return std::move(result_);
  }

 private:
  // The library would convert a fraction, even one that no whole number can hold.
  static std::int64_t whole(const Json& number) {
    if (!number.is_number_integer()) throw std::invalid_argument("not a whole number: " + json_text(number));
    return number.get<std::int64_t>();
  }
  Json list(const char* name) const {
    auto found = memory_.value(name, Json::array());
    if (!found.is_array() || found.size() > k_most_read) throw std::length_error(name);
    return found;
  }
  const Group& group(const Json& place) const { return groups_.at(static_cast<std::size_t>(whole(place))); }
  std::string image(const Json& place) const {
    return memory_.at("images").at(static_cast<std::size_t>(whole(place))).get<std::string>();
  }
  Time past(const Json& seconds) const { return std::min(at(seconds), now_); }
  Time soon(const Json& seconds) const {
    return std::min(at(seconds), now_ + settings_.breaker_longest_pause);
  }
  static Time at(const Json& seconds) { return Time(Seconds(std::max(whole(seconds), std::int64_t{0}))); }
  Seconds pause(const Json& seconds) const {
    return std::clamp(Seconds(whole(seconds)), Seconds(0), settings_.breaker_longest_pause);
  }

  const Json& memory_;
  const PolicySettings& settings_;
  Time now_;
  std::int64_t left_ = k_most_read;  // pilots that are only counted
  std::vector<Group> groups_;
  Recalled result_;
};

}  // namespace

Json memory_json(const Tracker& tracker, const History& history, Time now) {
  for (std::size_t most = k_most_entries;; most /= 2) {
    auto result = written_of(tracker, history, now, most);
    if (most == 0 || json_text(result).size() <= k_longest_memory) return result;
  }
}

Result<Recalled> read_memory(const Json& memory, const PolicySettings& settings, Time now) {
  try {
    if (memory.at("version") != k_memory_version)
      return error("of version {}", json_text(memory.at("version")));
    return Reader(memory, settings, now).read();
  } catch (const std::exception& failure) {
    return error("malformed: {}", failure.what());
  }
}

Time time_of_memory(const Json& memory) {
  const auto time = memory.is_object() ? memory.value("time", Json()) : Json();
  return time.is_number_integer() ? Time(Seconds(time.get<std::int64_t>())) : Time{};
}

std::string annotation_of(const Json& lease, const char* name) {
  return text_of(member(member(lease, "metadata"), "annotations"), name);
}

Json memory_in(const Json& lease) {
  const auto text = annotation_of(lease, k_memory_annotation);
  return text.empty() ? Json() : json_from(text);
}

}  // namespace glidepod::provisioner
