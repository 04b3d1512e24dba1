#include "tests/simulate/properties.hpp"

#include <algorithm>
#include <csignal>

#include "lib/kube/image_reference.hpp"
#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using agent::ClientId;
using wire::Fault;

// Its launch clears.
void Properties::runs_as(uid_t uid) {
  left_.erase(uid);
  for (const Box& box : world_.kubelet.boxes())
    if (box.glue && box.glue->clears(uid))
      broken("no job begins while what its user left is removed elsewhere", std::to_string(uid));
}

void Properties::clears(uid_t uid) {
  for (const Box& box : world_.kubelet.boxes())
    if (box.glue && box.glue->alive() && box.glue->uid() == uid)
      broken("nothing is removed of a user who has a job", std::to_string(uid));
}

void Properties::broken(std::string_view property, std::string_view about) {
  world_.say("BROKEN: {}: {}", property, about);
  if (!verdict_.empty()) return;
  verdict_ = property;
  about_ = about;
}

void Properties::patched(const Box& box, const std::string& image) {
  const Weather& weather = world_.weather;
  const bool hasty = weather.policy.bind_deadline < agent::Policy().bind_deadline;
  if (weather.provisioner && weather.calm() && !hasty && world_.images.never_there(image))
    broken("a container is not touched for an image that a puller cannot have", box.name + " " + image);
  // Before the status names the pilot's own image, home has but its plain name.
  if (home_told_)
    young_.erase(box.name);
  else
    young_.insert(box.name);
  if (!box.now) return;
  leaving_.insert(box.now->id);
  if (shown_.contains(box.now->id)) known_.insert(box.now->id);
}

void Properties::behind(const Box& box, std::uint64_t same) {
  // The pilot's own image is known as soon as its name is; another only by its digest, and if it ran before.
  const std::string& image = world_.api.pod()->container(box.name)->image;
  const auto wanted = kube::ImageReference::parse(image);
  const bool differs = image != box.now->image && known_.contains(same) && wanted &&
                       !wanted->digest.empty() && !world_.weather.bare_ids;
  const bool home = box.now->content == Images::k_home && home_told_;
  alike_[box.now->id].known = world_.weather.ids_told && (home || differs);
}

void Properties::told(const kube::Pod& pod) {
  if (Api::version(pod) < version_) return;
  version_ = Api::version(pod);
  home_told_ |= pod.status("pilot") != nullptr;
  for (const Box& box : world_.kubelet.boxes()) {
    const kube::ContainerStatus* status = pod.status(box.name);
    if (!box.now || !box.glue || status == nullptr) continue;
    const std::uint64_t id = box.now->id;
    if (!agent::is_of(*status, std::to_string(id)) || box.glue->link() == 0) continue;
    shown_.insert(id);
    if (!leaving_.contains(id)) learnt_.insert(box.now->image);
    const auto alike = alike_.find(id);
    if (alike == alike_.end() || !alike->second.known) continue;
    for (const auto& [client, launched] : alike->second.clients)
      if (!world_.starters.client(client).answered && !world_.starters.client(client).gone &&
          world_.now() < launched + 2 * world_.weather.policy.status_patience)
        broken("a job in what ran before is killed as soon as the status shows it", std::to_string(client));
  }
}

void Properties::agent_died() {
  failures_ = 0;
  version_ = 0;
  home_told_ = false;
  learnt_.clear();
  shown_.clear();
  known_.clear();
  leaving_.clear();
  alike_.clear();
}

void Properties::launch(ClientId id) {
  if (++world_.starters.client(id).launches > 1)
    broken("a client gets at most one launch", std::to_string(id));
  const Client& client = world_.starters.client(id);
  if (client.request.verb == wire::Verb::test) broken("a test launches nothing", std::to_string(id));
  if (client.outer != 0 && world_.starters.client(client.outer).told)
    broken("a pilot job that has ended starts nothing", std::to_string(id));
}

void Properties::launched(const Box& box, ClientId id) {
  Client& client = world_.starters.client(id);
  const agent::Request& request = client.request;
  client.ran = true;
  world_.say("job: of client {} runs in {}, content {}", id, box.name, box.now->content);
  Last& last = owners_[box.name];
  const bool same = last.instance == box.now->id;
  if (request.any_image) {
    if (same) broken("a probe never runs in somebody's container", box.name);
    return;
  }
  const kube::Amount& has = box.in_force.limit;
  if (has.memory < request.slot_size.memory)
    broken("a job has its slot's memory", fmt::format("client {} in {}", id, box.name));
  const bool asked = world_.weather.resize_served && request.slot_size.memory > 0;
  const bool hasty = world_.weather.policy.bind_deadline < agent::Policy().bind_deadline;
  if (asked && world_.weather.calm() && !hasty && world_.weather.silent_streams == 0 &&
      has != request.slot_size)
    broken("where nothing goes wrong, a job has its slot's size",
           fmt::format("client {} in {}", id, box.name));
  const bool means = world_.images.means(client.image(), box.now->content);
  const auto alike = alike_.find(box.now->id);
  client.astray = !means;
  if (!means && alike != alike_.end())
    alike->second.clients[id] = world_.now();
  else if (!means)
    broken("a job runs only in what its image names",
           fmt::format("client {} asked for {} and got content {} ({}) in {}", id, client.image(),
                       box.now->content, box.now->image, box.name));
  if (same && last.owner != request.owner)
    broken("a warm container is never another owner's",
           fmt::format("{} of {} for {}", box.name, last.owner, request.owner));
  if (same && world_.weather.policy.reuse == agent::Policy::Reuse::never)
    broken("with reuse never, a container has one job", box.name);
  last = {box.now->id, request.owner};
}

// As many as the pod was made with, and never more.
void Properties::sized(const kube::Pod& pod) {
  kube::Size all;
  for (const kube::ContainerSpec& one : pod.containers) {
    all.request = {all.request.cpu + one.size.request.cpu, all.request.memory + one.size.request.memory};
    all.limit = {all.limit.cpu + one.size.limit.cpu, all.limit.memory + one.size.limit.memory};
    if (one.size.request.cpu > one.size.limit.cpu || one.size.request.memory > one.size.limit.memory)
      broken("a request is within its limit", one.name);
  }
  const kube::Size& room = *pod.payload_size;
  if (all.request.cpu > room.request.cpu || all.request.memory > room.request.memory ||
      all.limit.cpu > room.limit.cpu || all.limit.memory > room.limit.memory)
    broken("containers never have more than their pod", "");
}

// Once glue has said what is in use, the agent must know.
void Properties::asked(const Box& box, const kube::Size& size) {
  const bool lowered = size.limit.memory < world_.api.pod()->container(box.name)->size.limit.memory;
  if (lowered && box.glue && box.glue->told_used() && box.glue->used_kib() > size.limit.memory / 1024)
    broken("no limit below what is in use is asked for", box.name);
}

void Properties::resized(const Box& box) {
  const ClientId id = box.glue->client();
  if (id != 0 && box.in_force.limit.memory < world_.starters.client(id).request.slot_size.memory)
    broken("a job's container is never made smaller than its slot", box.name);
}

void Properties::launch_failed(ClientId id) {
  world_.starters.client(id).blamed = true;
}

void Properties::ended(ClientId id, ExitStatus status, std::string_view cause, bool after_goodbye) {
  Client& client = world_.starters.client(id);
  client.end = status;
  client.cause = cause;
  client.after_goodbye = after_goodbye;
  client.ended_at = world_.now();
  world_.starters.ended(id);
}

void Properties::noted(std::string_view line) {
  if (line.starts_with("event=started ")) failures_ = 0;
  if (line.starts_with("event=renew "))
    for (const ClientId id : world_.starters.waiting())
      if (world_.driver.serves(id) && world_.starters.client(id).launches == 0)
        broken("a spare container is made ready only while nobody waits", std::to_string(id));
  failures_ += line.starts_with("event=bind_failed ") || line.starts_with("event=switch_failed ") ? 1 : 0;
}

void Properties::given_up() {
  if (nothing_else_wrong()) broken("one image's failures change nothing for others", "the pilot gives up");
  if (!world_.kubelet.silent() && failures_ < world_.weather.policy.give_up_after)
    broken("a job that starts ends a row of failures", std::to_string(failures_));
}

void Properties::told_end(ClientId id) {
  world_.starters.client(id).told = true;
}

void Properties::answered(ClientId id, ExitStatus status) {
  const Client& client = world_.starters.client(id);
  const auto wrong = [&](std::string_view why) {
    broken("an answer is how the job ended", fmt::format("client {}: {}: {}", id, status.to_string(), why));
  };
  if (client.answered) return broken("nobody is answered twice", std::to_string(id));
  const bool by_signal = client.signalled && status == ExitStatus::signaled(*client.signalled);
  if (client.request.verb == wire::Verb::test) {
    if (!status.success() && !by_signal) wrong("a test ends well, by its signal, or fails");
    return;
  }
  if (client.launches == 0) {
    if (!by_signal) wrong("it was never launched");
    return;
  }
  if (!client.end) return wrong("its job has not ended");
  const bool in_time = world_.now() < client.ended_at + world_.weather.policy.ending_patience;
  for (const ClientId inner : client.inner)
    if (world_.weather.calm() && in_time && world_.starters.client(inner).ran &&
        !world_.starters.client(inner).end)
      wrong("a job of its own still runs");
  if (*client.end != status) return wrong("it ended with " + client.end->to_string());
  // That very signal was sent by its client, too; or HTCondor was ending it already.
  const bool asked = client.signalled && (client.after_goodbye || *client.signalled == client.end->number);
  // Where the goodbye of a container that is struck in any order may be slow to come, nobody can know.
  const bool can_know = client.after_goodbye || world_.weather.slow == 0;
  if (client.cause == "stop" && can_know && !asked) wrong("its container was stopped from outside");
  if (client.cause == "memory" && !client.held && !asked) wrong("the kernel killed it for memory");
  if (client.cause == "killed" || client.cause == "lost") wrong("its container was taken from it");
}

void Properties::failed(ClientId id, Fault fault, std::string_view message) {
  const Client& client = world_.starters.client(id);
  const auto wrong = [&](std::string_view property) {
    broken(property, fmt::format("client {}: {}", id, message));
  };
  if (client.answered) return wrong("nobody is answered twice");
  if (message.starts_with("no payload container had the image within "))
    if (const auto image = kube::ImageReference::parse(client.image())) late_.insert(image->full_name());
  if (message.find("back-off") != std::string_view::npos) backed_off_.insert(id);
  const bool ran_nothing =
      client.request.verb == wire::Verb::run && world_.images.may_run_nothing(client.image());
  // A kubelet that is one image behind tells of the trouble of the image before.
  const bool behind = std::ranges::any_of(world_.kubelet.boxes(), &Box::behind);
  if (fault == Fault::user && !client.blamed && !refused && !ran_nothing && !behind &&
      !world_.images.can_be_at_fault(client.image()))
    wrong("the user is at fault only for what the user can mend");
  const bool asks = client.request.verb == wire::Verb::run;  // a registry, which may be silent
  // There may be more jobs here than containers, which HTCondor never has. How long anybody waits while one
  // is free has a bound of its own.
  const bool full = message.starts_with("no payload container became free");
  if (fault != Fault::user && !client.gone && client.outer == 0 && !asks && !full &&
      !world_.weather.home_names && nothing_else_wrong() && !had_to_wait(id) && !world_.driver.given_up() &&
      !client.image().empty() && !world_.images.can_be_at_fault(client.image()))
    wrong("one image's failures change nothing for others");
  // A job that ended by SIGTERM or SIGKILL may as well have been stopped from outside: that is documented.
  const bool doubtful = client.end && client.end->how == ExitStatus::How::signaled &&
                        (client.end->number == SIGTERM || client.end->number == SIGKILL);
  // Another name of the pilot's own content is found out by the first job in it, which may have ended by then
  // (pilot-agent/README.md): nobody can tell whether it ran in its own image.
  const bool found_out =
      world_.weather.home_names && message == "the payload container runs another image than the job's";
  if (client.end && client.told && client.cause == "itself" && !client.after_goodbye && !doubtful &&
      !found_out && !client.astray)
    wrong("a job that ended by itself does not fail");
}

// Images cannot be had or started, and that is all.
bool Properties::nothing_else_wrong() const {
  const Weather& weather = world_.weather;
  const bool hasty = weather.policy.bind_deadline < agent::Policy().bind_deadline;
  // A size is waited for less long than a stream may be silent.
  if ((weather.policy.resize && weather.silent_streams > 0) || registry_silent_) return false;
  return weather.calm() && !hasty && !weather.drained && !weather.withdrawn && !weather.tags_move &&
         !weather.tags_dropped;
}

// Where the status may show another of its names, a digest cannot be learnt; without tags of its own no start
// has a name of its own.
bool Properties::can_learn() const {
  const Weather& weather = world_.weather;
  return !weather.many_names && !weather.bare_ids && !weather.tags_move && !weather.tags_dropped &&
         !weather.home_names;
}

bool Properties::had_to_wait(ClientId id) const {
  // Where ids are not told, or streams are silent, a digest may be learnt too late for the next switch.
  const Weather& weather = world_.weather;
  return (!can_learn() || !weather.ids_told || weather.silent_streams > 0) && backed_off_.contains(id);
}

void Properties::paused(const Box& box, const std::string& image) {
  // Of what cannot start, no name is known but its own.
  const auto content = world_.images.on_node(image);
  if (!learnt_.contains(image) || young_.contains(box.name) || late_.contains(image)) return;
  if (!content || world_.images.content(*content).kind != Content::Kind::good) return;
  if (can_learn() && (no_pauses || (world_.weather.calm() && world_.weather.ids_told)))
    broken("back-off is never met", fmt::format("{} {}", box.name, image));
}

}  // namespace glidepod::simulate
