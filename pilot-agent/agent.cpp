#include "pilot-agent/agent.hpp"

#include <pwd.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/bind_plan.hpp"
#include "pilot-agent/core/words.hpp"
#include "pilot-agent/peer_process.hpp"

namespace glidepod::agent {
namespace {

constexpr std::chrono::seconds k_leave_time{20};
constexpr std::int64_t k_longest_keep_s = 86'400;

Policy policy_with_nonce(const Settings& settings) {
  Policy policy = settings.policy;
  policy.nonce_prefix = "g" + random_hex(4);
  return policy;
}

registry::Options registry_options(const Settings& settings) {
  utsname node{};
  (void)::uname(&node);  // cannot fail
  return {
      settings.registry_auth, settings.insecure_hosts(), registry::Platform::of_machine(node.machine), {}};
}

}  // namespace

Agent::Agent(Loop& loop, const Settings& settings)
    : loop_(loop),
      settings_(settings),
      core_(policy_with_nonce(settings), settings.container_names()),
      registry_(loop, registry_options(settings)),
      users_(std::filesystem::path(settings.agent_socket).replace_filename("users")) {}

Agent::~Agent() {
  if (glue_listener_) loop_.forget(glue_listener_.get());
  if (client_listener_) loop_.forget(client_listener_.get());
  loop_.cancel(timer_);
  loop_.cancel(leave_timer_);
  for (auto& [id, client] : clients_) loop_.cancel(client.vacate_timer);
  for (auto& [id, holder] : holders_) loop_.forget(holder.pidfd().get());
}

Result<std::unique_ptr<Agent>> Agent::create(Loop& loop, const Settings& settings) {
  std::unique_ptr<Agent> agent(new Agent(loop, settings));
  TRY(agent->start());
  return agent;
}

Result<void> Agent::start() {
  TRY(take_lock());
  shared_ = {settings_.scratch, settings_.shared_paths};
  if (const passwd* user = ::getpwnam(settings_.trusted_user.c_str())) trusted_uid_ = user->pw_uid;
  jobs_ = KnownJobs(settings_.scratch, trusted_uid_);
  pod_client_ = TRY(PodClient::create(loop_, settings_, core_, [this] { pump(); }));
  files_ = TRY(ImageFiles::create(
      loop_, settings_, registry_,
      [this](Request request, const Result<void>& brought) { take_image(std::move(request), brought); }));
  status_ = std::make_unique<StatusFile>(
      loop_, StatusFile::Paths{settings_.status_file, settings_.slots_file},
      fmt::format("{}/{}", pod_client_->name().name_space, pod_client_->name().name),
      [this] { return core_.snapshot(); });
  // The shared volume lives as long as the pod, so a socket there is of an agent before this one. The pod's
  // status would tell too, but only after a while.
  if (::access(settings_.agent_socket.c_str(), F_OK) == 0) {
    earlier_agents_ = Core::Earlier::some;
    core_.on_earlier_users(users_.read());
  }
  glue_listener_ = TRY(wire::listen_at(settings_.agent_socket, 0600));
  client_listener_ = TRY(wire::listen_at(settings_.exec_socket, 0666));
  TRY(loop_.watch(glue_listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_glue(); }));
  TRY(loop_.watch(client_listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_client(); }));
  if (settings_.pilot_jobs) TRY(listen_to_pilots());
  pod_client_->get_first([this](const kube::Pod& pod) { on_first_pod(pod); });
  return {};
}

void Agent::on_first_pod(const kube::Pod& pod) {
  if (!pod.restarts && core_.containers().needs_restarts(pod) && unfit_)
    return unfit_(
        "this pod's restartPolicy is Never: a container that has ended would not come again, and to switch "
        "an image is to end its container. Set it to OnFailure, or make the payload containers sidecars");
  pod_grace_ = std::chrono::seconds(pod.grace_seconds);
  core_.on_first_pod(pod, earlier_agents_, Loop::now());
  others_ = core_.containers().others(pod);
  if (!others_.empty())
    spdlog::info(
        "event=beside containers={} reason=\"the pod has these beside pilot and payload "
        "containers: when the pilot has ended, it has the kubelet end them\"",
        fmt::join(others_, ","));
  pump();
}

void Agent::on_ready(std::function<void()> handler) {
  ready_ = std::move(handler);
  pump();
}

void Agent::withdraw(std::function<void()> idle) {
  withdrawn_ = std::move(idle);
  core_.withdraw();
  refuse_brought();
  pump();
}

void Agent::drain() {
  core_.drain(Loop::now());
  refuse_brought();
  pump();
}

// The core does not know the requests whose image is being made. Those that it takes no more are answered by
// it, now.
void Agent::refuse_brought() {
  const auto refused = [this](const Request& request) { return !core_.refusal(request).empty(); };
  for (Request& request : files_->take(refused)) core_.on_bind(std::move(request), Loop::now());
}

void Agent::leave(std::function<void(const std::vector<std::string>&)> done) {
  left_ = std::move(done);
  leave_timer_ = loop_.after(k_leave_time, [this] { end_leave(); });
  core_.call_home(Loop::now());
  pump();
}

void Agent::end_leave() {
  loop_.cancel(leave_timer_);
  if (left_) std::exchange(left_, {})(core_.containers().missing());
}

void Agent::finish(std::function<void(const std::vector<std::string>&)> done) {
  finished_ = std::move(done);
  leave_timer_ = loop_.after(k_leave_time, [this] { end_finish(); });
  finish();
}

void Agent::end_finish() {
  loop_.cancel(leave_timer_);
  if (finished_) std::exchange(finished_, {})(core_.containers().unended());
}

void Agent::finish() {
  if (!glue_listener_) return;  // done before
  loop_.forget(glue_listener_.get());
  loop_.forget(client_listener_.get());
  if (pilot_listener_) loop_.forget(pilot_listener_.get());
  glue_listener_.reset();
  client_listener_.reset();
  pilot_listener_.reset();
  core_.finish(Loop::now());
  pump();
  // Best effort: a peer that is gone needs no message.
  for (auto& [id, glue] : glues_) (void)glue.channel->flush();
  for (auto& [id, client] : clients_) (void)client.channel->flush();
}

void Agent::open_link(Fd socket, wire::Peer peer, PeerProcess process, std::string instance,
                      std::size_t longest) {
  const ClientId id = ++last_id_;
  auto channel = wire::Channel::create(loop_, std::move(socket),
                                       {[this, id](wire::Frame frame) { client_frame(id, std::move(frame)); },
                                        [this, id](const Error&) {
                                          close_client(id);
                                          core_.on_client_gone(id, Loop::now());
                                          pump();
                                        }},
                                       longest);
  if (!channel) return spdlog::error("event=accept_failed reason={}", quoted(channel.error().message()));
  ClientLink& link = clients_[id];
  link.channel = std::move(*channel);
  link.peer = std::move(peer);
  link.process = std::move(process.pidfd);
  link.instance = std::move(instance);
}

void Agent::glue_frame(GlueId glue, const wire::Frame& frame) {
  const auto taken = take_glue_frame(glue, frame);
  if (!taken) close_glue(glue, taken.error());
  pump();
}

Result<void> Agent::check_protocol(std::uint32_t theirs) {
  if (theirs == wire::k_protocol) return {};
  return error("the caller speaks protocol {}, the pilot's agent {}: take both programs from one image",
               theirs, wire::k_protocol);
}

Result<void> Agent::take_glue_frame(GlueId glue, const wire::Frame& frame) {
  const auto link = glues_.find(glue);
  if (link == glues_.end()) return {};
  if (!link->second.said_hello) {
    if (frame.type != wire::Type::hello) return error("glue's first message is not a Hello");
    const auto hello = TRY(frame.decode<wire::Hello>());
    TRY(check_protocol(hello.protocol));
    link->second.said_hello = true;
    core_.on_hello(glue, hello.container, link->second.instance, Loop::now(), hello.empty);
    return {};
  }
  if (frame.type == wire::Type::goodbye) {
    TRY(frame.decode<wire::Goodbye>());
    core_.on_goodbye(glue, Loop::now());
  } else if (frame.type == wire::Type::started) {
    const auto started = TRY(frame.decode<wire::Started>());
    core_.on_started(glue, started.job, started.pid, Loop::now());
  } else if (frame.type == wire::Type::exited) {
    core_.on_exited(glue, TRY(frame.decode<wire::Exited>()), Loop::now());
  } else if (frame.type == wire::Type::beat) {
    core_.on_beat(glue, TRY(frame.decode<wire::Beat>()), Loop::now());
  } else if (frame.type == wire::Type::job_ended) {
    core_.on_job_ended(glue, TRY(frame.decode<wire::JobEnded>()), Loop::now());
  } else if (frame.type == wire::Type::launch_failed) {
    core_.on_launch_failed(glue, TRY(frame.decode<wire::LaunchFailed>()), Loop::now());
  } else if (!take_session_frame(glue, frame)) {
    return error("unexpected message {}", static_cast<std::uint32_t>(frame.type));
  }
  return {};
}

void Agent::client_frame(ClientId client, wire::Frame frame) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  const bool inner = !found->second.instance.empty();
  if ((frame.type == wire::Type::bind || (frame.type == wire::Type::enter && !inner)) &&
      !found->second.asked) {
    found->second.asked = true;
    const auto taken = inner                            ? take_inner_bind(client, std::move(frame))
                       : frame.type == wire::Type::bind ? take_bind(client, std::move(frame))
                                                        : take_enter(client, std::move(frame));
    if (!taken) {
      spdlog::warn("event=refused uid={} reason={}", found->second.peer.uid, quoted(taken.error().message()));
      const bool node = taken.error().fact<ImageFiles::NodesFault>() != nullptr;
      tell(client, node ? wire::Fault::infrastructure : wire::Fault::user, taken.error().message());
    }
  } else if (frame.type == wire::Type::signal && found->second.asked) {
    if (const auto signal = frame.decode<wire::Signal>()) take_signal(client, signal->number);
  }
  pump();
}

// An Error is the caller's fault.
Result<void> Agent::take_bind(ClientId client, wire::Frame frame) {
  ClientLink& link = clients_.at(client);
  const auto bind = TRY(frame.decode<wire::Bind>());
  TRY(check_protocol(bind.protocol));
  if (frame.fds.size() != (bind.program_attached ? 4 : 3))
    return error("the request came without its standard streams");
  if (bind.verb == wire::Verb::announce) {
    take_announcement(client, bind);
    return {};
  }
  const uid_t uid = link.peer.uid;
  // It runs in whichever container is idle, a warm one of somebody's included, so it must be HTCondor's
  // probe.
  if (bind.program_attached && uid != trusted_uid_ && uid != ::geteuid())
    return error("only user {} may run a program of an image that is a folder", settings_.trusted_user);
  link.launch = TRY(plan_launch(
      bind, {uid, link.peer.gid, {link.peer.groups.begin(), link.peer.groups.end()}, user_name(uid)},
      shared_));
  if (bind.verb != wire::Verb::test) {
    if (const auto why = judge(link, frame.fds, bind.work_directory); !why) {
      refuse_streams(client, why.error());
      return {};
    }
    if (binds_already(client)) {
      run(Fail{client, true, wire::Fault::infrastructure, "this slot's user still runs another job"});
      return {};
    }
    link.binds = !bind.program_attached;
  }
  link.fds = std::move(frame.fds);
  Request request{client, bind.verb, bind.program_attached, Image::home(), fmt::format("uid:{}", uid),
                  {},     uid};
  request.gid = link.peer.gid;
  request.sandbox = bind.work_directory;
  if (bind.verb == wire::Verb::run) request.arguments = bind.argv;
  if (!request.any_image) {
    if (!bind.work_directory.empty()) {
      const auto job = jobs_.identify(bind, link.peer.pid);
      if (!job) spdlog::info("event=no_job_ad uid={} reason={}", uid, quoted(job.error().message()));
      if (job) {
        request.job = job->identity.id;
        request.memory_mib = job->identity.memory_mib;
        request.request_disk_kib = job->identity.request_disk_kib;
        request.disk_kib = job->disk_kib;
        request.keep_idle = std::chrono::seconds(std::min(job->identity.keep_idle_s, k_longest_keep_s));
        request.slot = job->slot;
        request.slot_size = job->slot_size;
        // Its own jobs take containers, which must not be another job's of HTCondor's. START sees to that,
        // but not to what is written in a line of another attribute.
        request.pilot = settings_.pilot_jobs && job->identity.pilot && job->whole;
        link.pilot = request.pilot;
        if (request.pilot) find_our_programs(link.launch->environment);
      }
      // Slots serve one owner after another under one uid: whoever is not known gets nobody's container.
      request.owner =
          job && !job->identity.owner.empty() ? job->identity.owner : fmt::format("uid:{}#{}", uid, client);
    }
    TRY(files_->name(bind, request, *link.launch));
  }
  take_request(std::move(request));
  return {};
}

// Answered at once. What is wrong with it, the job is told when it binds.
void Agent::take_announcement(ClientId client, const wire::Bind& bind) {
  const ClientLink& link = clients_.at(client);
  const auto image = files_->image_of_registry(bind.image);
  const auto job = jobs_.identify(bind, link.peer.pid);
  if (image && job && !job->identity.owner.empty()) {
    Request request{0, bind.verb, false, *image, job->identity.owner, job->identity.id, link.peer.uid};
    core_.on_announce(std::move(request), Loop::now());
  }
  run(Answer{client, ExitStatus::exited(0)});
}

// A request whose image is being made ends as one that the core has.
void Agent::take_signal(ClientId client, int number) {
  if (!files_->brings(client)) return core_.on_client_signal(client, number, Loop::now());
  if (!ends_a_process(number)) return;
  files_->forget(client);
  run(Answer{client, ExitStatus::signaled(number)});
}

// Hands the request to the core, once its image has a name. What the core does not take needs none.
void Agent::take_request(Request request) {
  if (files_->brings(request.client)) {
    if (core_.refusal(request).empty()) return files_->bring(request);
    files_->forget(request.client);
  }
  clients_.at(request.client).launch->about =
      fmt::format("job={} owner={} image={}", word(request.job), word(request.owner), word(request.asked));
  core_.on_bind(std::move(request), Loop::now());
}

void Agent::take_image(Request request, const Result<void>& brought) {
  if (brought) {
    take_request(std::move(request));
  } else {
    const bool users = brought.error().fact<ImageQuestion::UsersFault>() != nullptr;
    const std::string message = fmt::format("image {}: {}", request.named, brought.error().message());
    spdlog::warn("event=no_image reason={}", quoted(message));
    run(Fail{request.client, request.verb != wire::Verb::test,
             users ? wire::Fault::user : wire::Fault::infrastructure, message});
  }
  pump();
}

// A name is looked up once: the answer does not change while the pilot lives, and it costs a file read.
std::string Agent::user_name(uid_t uid) {
  const auto known = user_names_.find(uid);
  if (known != user_names_.end()) return known->second;
  const passwd* user = ::getpwuid(uid);
  return user_names_[uid] = user ? user->pw_name : "";
}

void Agent::close_glue(GlueId glue, const Error& reason) {
  if (!reason.message().empty()) spdlog::warn("event=glue_closed reason={}", quoted(reason.message()));
  glues_.erase(glue);
  core_.on_glue_lost(glue, Loop::now());
  pump();
}

void Agent::close_client(ClientId client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  loop_.cancel(found->second.vacate_timer);
  clients_.erase(found);
  questions_.erase(client);
  files_->forget(client);
  if (loans_) loans_->forget(client);
}

void Agent::pump() {
  if (pumping_) return;  // an action's consequence: the loop below takes it up
  pumping_ = true;
  for (auto actions = core_.take_actions(); !actions.empty(); actions = core_.take_actions()) {
    users_.keep(core_.users());  // before one of them has a job
    for (const Action& action : actions) std::visit([this](const auto& a) { run(a); }, action);
  }
  pumping_ = false;
  pod_client_->adjust_watch();
  adjust_timer();
  status_->touch();
  if (ready_ && core_.usable()) std::exchange(ready_, {})();
  if (given_up_ && give_up_.idle && !core_.containers().busy()) std::exchange(give_up_.idle, {})();
  if (withdrawn_ && !core_.containers().busy()) std::exchange(withdrawn_, {})();
  if (left_ && core_.containers().missing().empty()) end_leave();
  if (finished_ && !core_.containers().ending()) end_finish();
}

void Agent::run(const Launch& action) {
  const auto client = clients_.find(action.client);
  const auto glue = glues_.find(action.glue);
  if (client == clients_.end() || !client->second.launch)
    return core_.on_client_gone(action.client, Loop::now());
  if (glue == glues_.end()) return core_.on_glue_lost(action.glue, Loop::now());
  wire::Launch launch = *std::exchange(client->second.launch, std::nullopt);
  launch.job = action.job;
  if (loans_) loans_->launched(action.client, action.job);
  if (client->second.pilot) {
    pilots_[action.job] = launch.uid;
    open_to_pilots();
  }
  if (!action.argv.empty()) launch.argv = action.argv;
  std::vector<int> fds;
  for (const Fd& fd : client->second.fds) fds.push_back(fd.get());
  const auto sent = glue->second.channel->send(launch, fds);
  client->second.fds.clear();
  note_begun(client->second.peer.pid);
  if (!sent) close_glue(action.glue, sent.error().in("launch"));
}

void Agent::run(const Clear& action) {
  const auto glue = glues_.find(action.glue);
  if (glue == glues_.end()) return;
  const auto sent = glue->second.channel->send(wire::Clear{action.job, action.uid, action.gid});
  if (!sent) close_glue(action.glue, sent.error().in("clear"));
}

void Agent::note_begun(pid_t client) {
  constexpr std::size_t k_many = 512;
  if (begun_.size() >= k_many) std::erase_if(begun_, [](pid_t starter) { return !is_starter(starter); });
  const auto stat = read_file(fmt::format("/proc/{}/stat", client), 4096);
  const auto starter = stat ? parent_of(stat.value()) : Result<pid_t>(stat.error());
  if (starter) begun_.insert(starter.value());
}

void Agent::run(const AskImage& action) {
  const ClientId client = action.client;
  questions_[client] = registry_.ask(
      action.image, action.deadline, [this, client](const Result<registry::ImageCommand>& answer) {
        questions_.erase(client);
        if (answer) {
          core_.on_image_known(client, answer.value(), Loop::now());
        } else {
          const bool refused = registry::refused(answer.error());
          core_.on_image_unknown(client, refused ? wire::Fault::user : wire::Fault::infrastructure,
                                 answer.error().message(), Loop::now());
        }
        pump();
      });
}

void Agent::run(const SignalJob& action) {
  const auto glue = glues_.find(action.glue);
  if (glue == glues_.end() || !wire::takes_signal(*glue->second.channel, action.number)) return;
  // A glue that cannot be told is gone, which reading tells.
  (void)glue->second.channel->send(wire::Signal{action.job, action.number});
}

void Agent::run(const Answer& action) {
  when_returned(action.client, [this, action] {
    const auto client = clients_.find(action.client);
    if (client == clients_.end()) return;
    client->second.binds = false;
    (void)client->second.channel->send(wire::Ended{action.status, action.ran});
  });
}

void Agent::run(const Fail& action) {
  when_returned(action.client, [this, action] { fail(action); });
}

void Agent::fail(const Fail& action) {
  const auto client = clients_.find(action.client);
  if (client == clients_.end()) return;
  auto parent = find_parent(client->second.peer.pid);
  // A pilot job has starters of its own, and can signal no other processes by them.
  const bool may_ask = parent && (client->second.instance.empty() || parent->uid == client->second.peer.uid);
  if (on_failure(action.of_job, action.fault, may_ask ? parent->name : "") == OnFailure::tell)
    return tell(action.client, action.fault, action.message);
  const auto starter = std::make_shared<Parent>(std::move(parent.value()));
  if (!asked_to_vacate(*starter, Vacating::fast)) return tell(action.client, action.fault, action.message);
  spdlog::info("event=vacate starter={} reason={}", starter->pid, quoted(action.message));
  // An answer would be taken for how the job ended.
  client->second.vacate_timer = loop_.after(settings_.vacate_patience, [starter] {
    spdlog::warn("event=starter_killed starter={} reason=\"it does not give its job back\"", starter->pid);
    asked_to_vacate(*starter, Vacating::killed);
  });
}

void Agent::run(const FinishGlue& action) {
  const auto glue = glues_.find(action.glue);
  if (glue != glues_.end()) (void)glue->second.channel->send(wire::Finish{});
}

void Agent::run(const DropGlue& action) {
  glues_.erase(action.glue);
}

// Its container ends with it. A stopped process, too, takes this signal.
void Agent::run(const KillGlue& action) {
  const auto glue = glues_.find(action.glue);
  if (glue == glues_.end()) return;
  const int pidfd = glue->second.process.get();
  if (pidfd < 0 || ::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) != 0)
    spdlog::warn("event=signal_failed what=glue reason={}", quoted(Error::system("kill").message()));
  glues_.erase(glue);
}

void Agent::run(const SendBeat& action) {
  const auto glue = glues_.find(action.glue);
  if (glue != glues_.end()) (void)glue->second.channel->send(wire::Beat{action.number});
}

void Agent::run(const GiveUp& action) {
  spdlog::error("event=given_up reason={}", quoted(action.reason));
  given_up_ = true;
  refuse_brought();
  if (give_up_.given_up) std::exchange(give_up_.given_up, {})(action.reason);
}

void Agent::run(const Note& action) {
  if (action.level == Note::Level::info)
    spdlog::info("{}", action.text);
  else
    spdlog::warn("{}", action.text);
}

void Agent::tell(ClientId client, wire::Fault fault, const std::string& message) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  found->second.binds = false;
  (void)found->second.channel->send(wire::Failed{fault, message});
}

void Agent::adjust_timer() {
  const auto due = core_.next_deadline();
  if (due == timer_due_) return;
  loop_.cancel(timer_);
  timer_ = 0;
  timer_due_ = due;
  if (!due) return;
  const auto wait = std::max(std::chrono::ceil<Milliseconds>(*due - Loop::now()), Milliseconds(0));
  timer_ = loop_.after(wait, [this] {
    timer_ = 0;
    timer_due_.reset();
    core_.on_time(Loop::now());
    pump();
  });
}

}  // namespace glidepod::agent
