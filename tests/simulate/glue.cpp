#include "tests/simulate/glue.hpp"

#include <csignal>

#include "pilot-agent/core/words.hpp"
#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using agent::ClientId;
using agent::Core;
using agent::GlueId;
using agent::JobId;
using agent::Time;

// What this process does later, if it is still there and not stopped.
void Glue::later(Milliseconds wait, std::function<void(Glue&)> what) {
  world_.clock.after(wait, [&world = world_, box = box_, instance = instance_, what = std::move(what)] {
    Glue* glue = world.kubelet.box(box).glue.get();
    if (glue && glue->instance_ == instance && glue->alive_ && !glue->wedged_) what(*glue);
  });
}

void Glue::begin() {
  if (world_.weather.residue > 0) {
    Random residue = world_.random.aside(world_.clock.steps());
    if (residue.chance(world_.weather.residue)) used_kib_ = residue.between(100'000, 3'000'000);
  }
  later(world_.takes(5, 200), [](Glue& glue) { glue.connect(); });
}

// When the storm is over, it is given back.
std::int64_t Glue::used_kib() const {
  return world_.storm && !job_ ? used_kib_ : 1000;
}

void Glue::agent_up() {
  later(world_.takes(1, 50), [](Glue& glue) { glue.connect(); });
}

void Glue::connect() {
  if (link_ != 0 || leaving_ || job_) return;  // of an agent that is gone
  const Box& box = world_.kubelet.box(box_);
  if (box.now && world_.images.content(box.now->content).kind == Content::Kind::mute) return;
  link_ = world_.driver.connect(box_, instance_);
  if (link_ == 0) return;
  // Where the name of a control group does not tell, the agent does not know.
  const std::string id = world_.weather.ids_told ? std::to_string(instance_) : std::string();
  world_.driver.from_glue(link_, "hello",
                          [name = world_.kubelet.box(box_).name, id, link = link_](Core& core, Time now) {
                            core.on_hello(link, name, id, now);
                          });
}

void Glue::agent_gone(GlueId link) {
  if (link != link_ || !alive_ || wedged_) return;
  link_ = 0;
  if (job_ && !job_->status) job_ends(ExitStatus::signaled(SIGKILL), "lost");
  if (!job_) later(world_.takes(1, 20), [](Glue& glue) { glue.connect(); });
}

void Glue::refuse(JobId job, wire::Fault fault, std::string why) {
  world_.driver.from_glue(link_, "launch_failed",
                          [link = link_, failed = wire::LaunchFailed{job, fault, std::move(why)}](
                              Core& core, Time now) { core.on_launch_failed(link, failed, now); });
}

void Glue::take_launch(JobId job, ClientId client) {
  if (leaving_) return refuse(job, wire::Fault::infrastructure, "the container is about to end");
  if (job_) {
    world_.properties.broken("a job is launched only in a container that has none",
                             world_.kubelet.box(box_).name);
    return;
  }
  if (unclean_)
    return refuse(job, wire::Fault::infrastructure,
                  "what an earlier job left in this container cannot be removed");
  Client& about = world_.starters.client(client);
  if (about.cannot_start) {
    world_.properties.launch_failed(client);
    return refuse(job, *about.cannot_start, "no such program");
  }
  world_.properties.launched(world_.kubelet.box(box_), client);
  const uid_t uid = about.request.uid;
  world_.properties.runs_as(uid);
  job_ = Job{job, client, {}, uid};
  world_.starters.runs(client, job);
  world_.tempt();
  world_.driver.from_glue(link_, "started",
                          [link = link_, job](Core& core, Time now) { core.on_started(link, job, 1, now); });
  later(about.takes, [job, status = about.ends](Glue& glue) {
    if (glue.job_ && glue.job_->id == job && !glue.job_->status) glue.job_ends(status, "itself");
  });
}

// Of a user who has nothing here any more.
void Glue::take_clear(JobId job, uid_t uid) {
  if (job_)
    return world_.properties.broken("a glue with a job is given nothing else", world_.kubelet.box(box_).name);
  if (leaving_ || unclean_)
    return refuse(job, wire::Fault::infrastructure, "nothing is cleared here any more");
  world_.properties.clears(uid);
  job_ = Job{job, 0, ExitStatus::exited(0), uid};
  const bool slow = world_.fault(world_.weather.clumsy_jobs);
  later(slow ? world_.random.delay(10, 10'000) : world_.random.delay(0, 5), [uid](Glue& glue) {
    glue.world_.properties.cleared(uid);
    glue.clean();
  });
}

void Glue::job_ends(ExitStatus status, std::string_view cause) {
  job_->status = status;
  world_.say("job: {} of client {} ends ({}): {}", job_->id, job_->client, cause, status.to_string());
  world_.properties.ended(job_->client, status, cause, said_goodbye_);
  world_.tempt();
  unclean_ |= stuck_;
  if (link_ != 0 && !stuck_) {
    wire::Exited exited;
    exited.job = job_->id;
    exited.status = status;
    exited.oom_kills = cause == "memory" ? 1 : 0;
    world_.driver.from_glue(
        link_, "exited",
        [&world = world_, link = link_, exited, client = job_->client](Core& core, Time now) {
          world.properties.told_end(client);
          core.on_exited(link, exited, now);
        });
  }
  const bool mess = world_.fault(world_.weather.clumsy_jobs);
  later(mess ? world_.random.delay(10, 10'000) : world_.random.delay(0, 5), [mess](Glue& glue) {
    glue.unclean_ |= mess && glue.world_.random.chance(200);
    glue.clean();
  });
}

void Glue::clean() {
  wire::JobEnded ended;
  ended.job = job_->id;
  ended.status = *job_->status;
  ended.clean = !unclean_;
  if (link_ != 0)
    world_.driver.from_glue(link_, "job_ended", [link = link_, ended](Core& core, Time now) {
      core.on_job_ended(link, ended, now);
    });
  job_.reset();
  if (leaving_) return leave(*leaving_);
  if (link_ == 0) connect();
}

void Glue::take_signal(JobId job, int number) {
  if (!job_ || job_->id != job || job_->status) return;
  if (number == SIGKILL) return job_ends(ExitStatus::signaled(SIGKILL), "signal");
  if (!agent::ends_a_process(number)) return;
  // A job may end by it, handle it and end otherwise, or not care.
  const auto how = world_.random.between(0, 2);
  if (how == 2) return;
  later(world_.random.delay(1, 3000), [job, number, how](Glue& glue) {
    if (glue.job_ && glue.job_->id == job && !glue.job_->status)
      glue.job_ends(how == 0 ? ExitStatus::signaled(number) : ExitStatus::exited(7), "signal");
  });
}

void Glue::take_beat(std::uint64_t number) {
  told_used_ = true;
  world_.driver.from_glue(link_, "beat", [link = link_, number, used = used_kib()](Core& core, Time now) {
    core.on_beat(link, {number, used}, now);
  });
}

void Glue::take_finish() {
  if (job_ && !job_->status) {
    leaving_ = 0;
    return job_ends(ExitStatus::signaled(SIGKILL), "finish");
  }
  leave(0);
}

void Glue::terminate() {
  if (!alive_ || wedged_ || leaving_) return;
  said_goodbye_ = true;
  if (link_ != 0)
    world_.driver.from_glue(link_, "goodbye",
                            [link = link_](Core& core, Time now) { core.on_goodbye(link, now); });
  if (!job_) return leave(143);
  leaving_ = 143;
  const JobId job = job_->id;
  // Glue's own grace is shorter than the kubelet's, or not.
  const bool stubborn = world_.random.chance(300), stuck = stubborn && world_.random.aside(3).chance(200);
  const Milliseconds wait =
      stubborn ? Milliseconds(world_.random.between(20'000, 31'000)) : world_.random.delay(1, 5000);
  later(wait, [job, stubborn, stuck](Glue& glue) {
    glue.stuck_ = stuck;
    if (glue.job_ && glue.job_->id == job && !glue.job_->status)
      glue.job_ends(ExitStatus::signaled(stubborn ? SIGKILL : SIGTERM), "stop");
  });
}

void Glue::leave(int code) {
  leaving_ = code;
  later(world_.takes(0, 5), [code](Glue& glue) {
    glue.killed({code == 0 ? "Completed" : "Error", "", code, 0});
  });
}

void Glue::killed(kube::Termination how) {
  if (!alive_) return;
  if (job_ && !job_->status) {
    world_.say("job: {} of client {} dies with its container", job_->id, job_->client);
    world_.properties.ended(job_->client, ExitStatus::signaled(SIGKILL),
                            how.reason == "OOMKilled" ? "memory" : "killed", said_goodbye_);
  }
  if (job_ && job_->client != 0) world_.properties.left_behind(job_->uid);
  alive_ = false;
  job_.reset();
  if (link_ != 0) world_.driver.hang_up(link_);
  link_ = 0;
  world_.kubelet.exited(world_.kubelet.box(box_), std::move(how));
}

void Glue::wedge() {
  if (!alive_) return;
  world_.say("glue: {} is stopped and does nothing more", world_.kubelet.box(box_).name);
  wedged_ = true;
}

void Glue::out_of_memory() {
  if (job_ && !job_->status && !wedged_) job_ends(ExitStatus::signaled(SIGKILL), "memory");
}

void Glue::struck() {
  if (!alive_ || wedged_) return;
  world_.say("node: all processes of {} are told to end, in any order", world_.kubelet.box(box_).name);
  if (job_ && !job_->status) job_ends(ExitStatus::signaled(SIGTERM), "stop");
  later(world_.random.delay(0, 150), [](Glue& glue) { glue.terminate(); });
}

}  // namespace glidepod::simulate
