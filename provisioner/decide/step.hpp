#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace glidepod::provisioner {

// A rule of decide() that had a say in what a group gets, with the numbers of its Step. "A -> B" lowers what
// is submitted.
enum class Rule : std::uint8_t {
  law,                 // idle jobs, waiting pods that they ask for
  no_jobs,             // none is idle
  waste,               // wasted, used, A -> B
  no_node,             // seconds, A -> B; in a place: seconds
  waiting,             // pods that wait already
  without_node,        // pods; words: the places where they have none, while others may have
  free_room,           // jobs that fit into running pods, of jobs
  free_room_overdue,   // the same, and seconds: all count
  negotiation,         // the negotiator has not spoken yet
  first_pilot,         // A -> B: there is nothing to offer to the negotiator before a pilot has joined
  negotiator,          // used, of pods offered, A -> B; words: what has begun since
  node_size,           // larger than every node
  quota_size,          // larger than the quota
  not_made,            // words: why the backend can make no pod of the group
  max_pods_per_owner,  // setting, jobs that count, of idle jobs
  group_quota,         // 0 and the same; words: the accounting group
  max_submit_pods_per_cluster,  // setting, pods of the group that there are
  max_pods_per_cluster,         // setting, pods of the group that wait
  breaker_opens,                // pilots that failed, that registered
  breaker_waits,                // minutes
  breaker_pauses,               // minutes, seconds to the next try
  breaker_tries,                // minutes
  refused,                      // seconds until the API is asked again (0: one pod tries); words: its own
  quota_refused,                // the same
  ramp_up_per_group,            // A -> B, as in all to `places`
  max_idle_per_group,
  max_running_per_group,
  max_pods_per_group,
  ramp_up,
  max_idle,
  max_running,
  max_pods,  // in a place: setting, pods that it has
  max_cores,
  quota,  // in a place: nothing
  places,
  priorities,        // tenths of the best of the group's owners, and of the best of all
  avoids,            // words: nodes
  placed,            // words: how many in which places
  drained,           // seconds; words: why an operator has taken the group, or the place, out of use
  drained_nodes,     // words: nodes that an operator has
  unseen,            // seconds that the place has not answered
  waits_for_unseen,  // words: a place that nobody has seen yet; the last rule
};

struct Step {
  Rule rule = Rule::law;
  std::array<std::int64_t, 4> numbers{};
  std::string words = {};  // of others, or names
  std::string place = {};  // empty: of all together
};

// The only place where rules are put into words; text_there() leaves the place's name out.
std::string text(const Step& step);
std::string text_there(const Step& step);

// The rule as one word, for programs and files; it never changes.
std::string_view key(Rule rule);
std::optional<Rule> rule_named(std::string_view key);

}  // namespace glidepod::provisioner
