#include "tests/explore/digest.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <type_traits>

namespace glidepod::agent {

// Where the core has more than it tells. Not asked are the parts that are unused in this pod (README.md),
// counts and words for people, and what stays as it is once the pod is known.
struct Inside {
  static const auto& queue(const Core& core) { return core.queue_; }
  static const auto& health(const Core& core) { return core.health_; }
  static const auto& leftovers(const Core& core) { return core.leftovers_; }
  static const auto& left(const Core& core) { return core.leftovers_.left_; }
  static const auto& lost(const Core& core) { return core.answers_.lost_jobs.lost_; }
  static std::int64_t version(const Core& core) { return core.containers_.version_; }
  template <typename Write>
  static void references(const Core& core, Write write) {
    const References& all = core.references_;
    write(all.home_.image, all.home_.image_id, all.ids_state_, all.tags_dropped_, all.like_home_,
          all.home_names_, all.ids_, all.known_.size());
    for (const auto& [image, known] : all.known_) write(image, known.repository, known.digest);
  }
};

}  // namespace glidepod::agent

namespace glidepod::explore {

using agent::Inside;
using agent::Time;

namespace {
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = (std::rotl(a, 23) ^ b) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 29U)) * 0xbf58476d1ce4e5b9U;
  return z ^ (z >> 32U);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::copy_n(text.data(), 8, reinterpret_cast<char*>(&word));
    hash = mixed(hash, word);
  }
  std::uint64_t rest = 0;
  std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(&rest));
  return mixed(hash, rest);
}

// Numbers that only name something: the first that is met is 1, the next other one 2. There are a few of
// each.
class Names {
 public:
  std::uint64_t of(std::uint64_t id) {
    if (id == 0) return 0;
    for (std::size_t i = 0; i < count_; ++i)
      if (met_[i] == id) return i + 1;
    if (count_ == met_.size()) std::abort();
    met_[count_++] = id;
    return count_;
  }

 private:
  std::array<std::uint64_t, 64> met_{};
  std::size_t count_ = 0;
};
}  // namespace

class Digest {
 public:
  explicit Digest(const Model& model) : model_(model), core_(*model.core_) {}

  std::uint64_t value() {
    core();
    node();
    api();
    clients();
    return hash_ == 0 ? 1 : hash_;
  }

 private:
  template <typename... Values>
  void write(const Values&... values) {
    (one(values), ...);
  }
  void number(std::uint64_t value) { hash_ = mixed(hash_, value + 1); }
  template <typename T>
  void one(const T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>)
      number(static_cast<std::uint64_t>(value));
    else if constexpr (std::is_convertible_v<T, std::string_view>)
      number(hash_of(value));
    else
      compound(value);
  }
  template <typename T>
  void compound(const std::optional<T>& value) {
    number(value.has_value());
    if (value) one(*value);
  }
  template <typename A, typename B>
  void compound(const std::pair<A, B>& value) {
    write(value.first, value.second);
  }
  template <typename T>
  requires requires(const T& all) { all.begin(); }
  void compound(const T& all) {
    number(static_cast<std::uint64_t>(std::distance(all.begin(), all.end())));
    for (const auto& value : all) one(value);
  }
  // How long it is from now. Beats are due so late that it is never.
  void compound(const Time& time) {
    constexpr std::chrono::hours k_never{100};
    if (time == Time{}) return number(1);
    number(time > model_.now_ + k_never ? 2 : 4 + static_cast<std::uint64_t>((time - model_.now_).count()));
  }
  // Nothing comes of how long it was ago, beyond this.
  void past(Time time, std::chrono::seconds most) { one(std::max(time, model_.now_ - most)); }
  void compound(const agent::Image& image) { write(image.is_home(), image.name_or("")); }
  void compound(const ExitStatus& status) { write(status.how, status.number); }
  void compound(const agent::User& user) { write(user.uid, user.clearing); }
  void compound(const kube::Termination& end) {
    write(end.reason, end.message, end.exit_code);
    instance(end.container_id);
  }
  void compound(const kube::ContainerStatus& status) {
    write(status.state, status.reason, status.message, status.terminated, status.last_terminated,
          status.image_id);
    image(status.image);
    instance(status.container_id);
  }

  // "repository:tag@digest" has a made-up tag.
  void image(const std::string& name) {
    const auto at = name.find('@'), colon = name.rfind(':', at);
    if (at == std::string::npos || colon == std::string::npos) return number(hash_of(name));
    const std::string_view all = name;
    write(all.substr(0, colon), all.substr(at), nonces_.of(hash_of(name)));
  }
  void instance(std::string_view id) {
    const auto slash = id.rfind('/');
    if (slash != std::string_view::npos) id.remove_prefix(slash + 1);
    std::uint64_t value = 0;
    std::from_chars(id.data(), id.data() + id.size(), value);
    number(instances_.of(value));
  }
  void glue(std::uint64_t id) { number(glues_.of(id)); }

  void core() {
    const auto& all = core_.containers();
    for (const agent::Container& one : all) container(one);
    for (const agent::Container& one : all) {
      write(one.last_used < model_.now_);
      for (const agent::Container& other : all) write(one.last_used < other.last_used);
    }
    number(Inside::queue(core_).size());
    for (const agent::Waiting& waiting : Inside::queue(core_)) this->waiting(waiting);
    const agent::Health& health = Inside::health(core_);
    write(health.proven(), health.given_up(), health.doubts.all().size());
    for (const auto& doubt : health.doubts.all()) {
      write(doubt.image, doubt.counted, doubt.failures);
      past(doubt.until, std::chrono::seconds(0));
      past(doubt.last, std::chrono::seconds(60));
    }
    Inside::references(core_, [this](const auto&... values) { write(values...); });
    number(Inside::lost(core_).size());
    for (const auto& lost : Inside::lost(core_)) {
      write(lost.container);
      instance(lost.instance);
      request(lost.request);
      end(lost.end);
    }
    number(Inside::left(core_).size());
    for (const agent::Left& left : Inside::left(core_)) this->left(left);
    write(Inside::leftovers(core_).next_deadline(), all.known(), core_.watching());
  }

  void left(const agent::Left& left) { write(left.user, left.container, left.ended); }
  void request(const agent::Request& request) {
    write(clients_.of(request.client), request.verb, request.asked, request.owner, request.uid);
  }
  void waiting(const agent::Waiting& waiting) {
    request(waiting.request);
    write(waiting.arrived, waiting.beside);
  }
  void end(const agent::EndFacts& end) {
    write(end.exited.has_value(), end.exited_at, end.ended_at, end.goodbye_at, end.gone_at, end.given_up,
          end.sent, end.container, end.container_by);
    if (end.exited) write(end.exited->status, end.exited->oom_kills);
  }
  void job(const agent::Job& job) {
    request(job.request);
    write(jobs_.of(job.id), job.pulse.until.has_value());
    end(job.end);
  }

  void container(const agent::Container& one) {
    write(one.proven, one.told.asked, one.owner, one.spoiled, one.unclean, one.stopped, one.empty,
          one.inherited, one.shown, one.shown_before, one.shown_running, one.calm_at, one.status,
          one.learning_until, one.ran, one.named_by_id);
    image(one.told.reference);
    image(one.told.admitted);
    glue(one.glue);
    instance(one.instance);
    instance(one.last_instance);
    write(one.unlearnt.has_value());
    if (one.unlearnt) {
      instance(one.unlearnt->instance);
      write(one.unlearnt->proven);
      image(one.unlearnt->admitted);
    }
    write(one.kind());
    if (const auto* absent = std::get_if<agent::Absent>(&one.state)) write(absent->until, absent->unborn);
    if (const auto* step = std::get_if<agent::Switching>(&one.state)) switching(*step);
    if (const auto* reserved = std::get_if<agent::Reserved>(&one.state)) {
      request(reserved->request);
      write(reserved->until);
    }
    if (const agent::Job* own = one.job()) job(*own);
    if (const auto* draining = std::get_if<agent::Draining>(&one.state))
      write(draining->ended, draining->until, draining->meant);
    if (const auto* clearing = std::get_if<agent::Clearing>(&one.state)) {
      left(clearing->left);
      write(jobs_.of(clearing->id), clearing->pulse.until.has_value(), clearing->until);
    }
  }

  void switching(const agent::Switching& step) {
    write(step.asked, step.spare, step.same_image, step.deadline, step.leg, step.proof, step.answered,
          step.pull_deadline, step.trouble_since, step.unclear_until, step.mute_until, step.accused,
          step.goodbye_needed, step.by_id, step.left_id, step.alike, step.trouble.kind, step.trouble.message,
          step.trouble.back_off, step.trouble.counts);
    image(step.reference);
    write(attempts_.of(step.attempt),
          step.answered && Inside::health(core_).switched_since(step.answered_at));
    glue(step.connected);
    glue(step.before);
    instance(step.last_instance);
    write(step.waiting.has_value());
    if (step.waiting) waiting(*step.waiting);
  }

  void node() {
    for (const Model::Link& link : model_.links_) {
      write(link.box, link.instance == 0 ? 0 : instances_.of(link.instance), link.said.size());
      glue(link.id);
      for (const Model::Message& said : link.said)
        write(said.what, jobs_.of(said.job), said.status, said.memory, said.about, said.last);
    }
    for (const Model::Box& box : model_.boxes_) this->box(box);
    for (const Model::Task& task : model_.tasks_) {
      write(task.box, task.kill);
      image(task.image);
    }
    write(model_.links_.size(), model_.tasks_.size(), model_.on_node_, model_.busy_, model_.again_,
          model_.fail_pull_, model_.retry_at_, model_.late_hearing_, model_.late_task_);
  }

  void box(const Model::Box& box) {
    image(box.wanted);
    const Model::Instance& now = *box.now;
    image(now.image);
    write(instances_.of(now.id), now.content, now.running, now.shown, now.known, now.leaving, box.before,
          box.reason, box.message, box.unseen_end, box.statuses, box.late_status, box.behind,
          box.behind_known);
    if (!now.running) write(now.end, now.finished);
    // By what they are called they may come in any order.
    std::uint64_t pauses = 0;
    for (const auto& [name, pause] : box.crashes) {
      Digest one(model_);
      one.nonces_ = nonces_;
      one.image(name);
      one.write(pause.length.count(), pause.since);
      pauses += one.hash_;
    }
    write(pauses, box.pull.length.count());
    if (box.pull.length.count() > 0) {
      image(box.pull_image);
      past(box.pull.since, std::chrono::seconds(300));
    }
    for (const auto& [client, launched] : box.astray) {
      write(clients_.of(client));
      past(launched, std::chrono::seconds(21));
    }
    const Model::Glue& glue = box.glue;
    write(glue.alive, glue.said_goodbye, glue.leaving, glue.stopping, glue.told_late, glue.job.has_value());
    this->glue(glue.link);
    if (glue.job)
      write(jobs_.of(glue.job->id), glue.job->about, clients_.of(glue.job->client), glue.job->uid,
            glue.job->status);
    const bool owned = box.owner_instance == now.id;
    write(box.astray.size(), attempts_.of(box.patching), owned ? std::string_view(box.owner) : "");
  }

  void pod(const kube::Pod& pod) {
    for (const Model::Box& box : model_.boxes_) {
      image(pod.container(box.name)->image);
      write(*pod.status(box.name));
    }
  }
  void version(const kube::Pod& pod) {
    const std::int64_t is = kube::version_number(pod.resource_version), seen = Inside::version(core_);
    write(is < seen ? 0 : is == seen ? 1 : 2);
  }

  // A watch that begins at an answer may tell once more what the core has from an earlier one, and ignores.
  void news(const kube::Pod& pod) {
    this->pod(pod);
    version(pod);
  }

  void api() {
    pod(*model_.pod_);
    for (const Model::Request& one : model_.requests_) {
      write(one.box, attempts_.of(one.attempt), one.unanswered, one.late, one.taken != nullptr,
            one.order > model_.boxes_[static_cast<std::size_t>(one.box)].applied);
      image(one.image);
      if (!one.taken) continue;
      news(*one.taken);
      const auto later = [&](const PodVersion& recent) {
        return kube::version_number(recent->resource_version) >
               kube::version_number(one.taken->resource_version);
      };
      number(static_cast<std::uint64_t>(std::ranges::count_if(model_.recent_, later)));
    }
    const bool in_flight =
        std::ranges::any_of(model_.requests_, [](const auto& one) { return one.taken != nullptr; });
    if (in_flight)
      for (const PodVersion& one : model_.recent_) news(*one);
    for (const PodVersion& one : model_.stream_) news(*one);
    write(model_.requests_.size(), model_.stream_.size(), model_.watching_, model_.getting_,
          model_.late_stream_, model_.first_pod_, model_.was_before_);
  }

  void clients() {
    for (const Model::Client& one : model_.clients_) {
      write(one.stage);
      if (!one.active()) continue;
      write(clients_.of(one.id), one.launches, one.ran, one.told, one.after_goodbye, one.astray,
            one.signalled, one.held, one.end, one.cause);
    }
    write(model_.variant_.name, model_.faults_, model_.faulty_, model_.jobs_, model_.users_, model_.left_,
          model_.learnt_);
  }

  const Model& model_;
  const agent::Core& core_;
  std::uint64_t hash_ = 0;
  Names nonces_, instances_, glues_, clients_, jobs_, attempts_;
};

std::uint64_t digest_of(const Model& model) {
  return Digest(model).value();
}

}  // namespace glidepod::explore
