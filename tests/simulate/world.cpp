#include "tests/simulate/world.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

namespace glidepod::simulate {

using agent::ClientId;
using std::chrono::seconds;

World::World(std::uint64_t seed, Coverage& c, Options options)
    : random(seed),
      weather(random),
      images(random, weather, clock.now()),
      coverage(c),
      properties(*this),
      api(*this),
      kubelet(*this),
      driver(*this),
      starters(*this),
      provisioner(*this),
      tell_(options.tell) {}

void World::line(const std::string& text) {
  const auto ms = std::chrono::duration_cast<Milliseconds>(now().time_since_epoch()).count() - 1'000'000;
  fmt::print("{:>8}.{:03} {}\n", ms / 1000, ms % 1000, text);
}

void World::tempt() {
  if (!storm || !weather.faults || !random.chance(100)) return;
  clock.after(random.delay(0, 3000), [this] { strike(); });
}

bool World::strike_just_then(const std::string& container) {
  Random chance = random.aside(clock.steps());
  if (!storm || !weather.faults || !chance.chance(50)) return false;
  const Box* box = kubelet.find(container);
  Glue* glue = box->runs() ? box->glue.get() : nullptr;
  if (weather.stopped_outside && glue) {
    say("fault: {} is stopped from outside just then", container);
    glue->terminate();
  } else if (weather.agent_dies && driver.up()) {
    driver.die();
    clock.after(chance.delay(10, 3000), [this] { driver.start(); });
  } else if (weather.links_break && glue && glue->link() != 0) {
    say("fault: the connection of {} breaks", container);
    const agent::GlueId link = glue->link();
    driver.hang_up(link);
    glue->agent_gone(link);
  }
  return true;
}

void World::gremlin() {
  if (!storm) return;
  clock.after(random.delay(500, 20'000), [this] {
    strike();
    gremlin();
  });
}

// One of the things that may happen to this pod happens.
void World::strike() {
  if (!storm) return;
  Box& box = random.pick(kubelet.boxes());
  Glue* glue = box.runs() ? box.glue.get() : nullptr;
  switch (random.between(0, 9)) {
    case 0:
      if (weather.glue_dies && glue) {
        say("fault: the glue of {} is killed", box.name);
        glue->killed({"Error", "", random.chance(500) ? 137 : 1, 0});
      }
      return;
    case 1:
      if (weather.out_of_memory && glue && glue->busy()) {
        say("fault: {} is out of memory", box.name);
        if (random.chance(500))
          glue->out_of_memory();
        else
          glue->killed({random.chance(700) ? "OOMKilled" : "Error", "", 137, 0});
      }
      return;
    case 2:
      if (weather.stopped_outside && glue) {
        say("fault: {} is stopped from outside", box.name);
        random.chance(500) ? glue->terminate() : glue->struck();
      }
      return;
    case 3:
      if (weather.agent_dies && driver.up()) {
        driver.die();
        clock.after(random.delay(10, 15'000), [this] { driver.start(); });
      }
      return;
    case 4:
      if (weather.watch_cut) api.cut();
      return;
    case 5:
      if (weather.api_down && !api.down) {
        say("fault: the API is away");
        api.down = true;
        api.cut();
        clock.after(random.delay(100, 60'000), [this] { api.down = false; });
      }
      return;
    case 6:
      if (weather.kubelet_restarts) kubelet.restart();
      return;
    case 7:
      api.touch();
      return;
    case 8:
      if (weather.late_status > 0) kubelet.show(box);
      return;
    case 9:
      if (weather.glue_wedged && glue && glue->link() != 0) glue->wedge();
      return;
  }
}

void World::run_until(SteadyTime end, std::uint64_t most_steps) {
  while (properties.verdict().empty() && !clock.empty() && clock.next_at() <= end) {
    clock.step();
    if (clock.steps() > most_steps) properties.broken("a schedule comes to rest", std::to_string(most_steps));
  }
  if (properties.verdict().empty()) clock.pass_to(end);
}

const std::string& World::run(std::uint64_t most_steps) {
  kube::Pod pod;
  pod.name = "pilot-1";
  pod.containers.push_back({"pilot", std::string(Images::k_home_name), {"/usr/bin/pilot-agent"}});
  Random birth = random.aside(17);
  for (int i = 0; i < weather.containers; ++i) {
    const bool ready = weather.born_ready && i > 0;
    const auto image = ready ? api.admitted(birth.pick(images.wanted())) : std::string(Images::k_home_name);
    pod.containers.push_back(
        {"payload-" + std::to_string(i),
         image,
         {"/glidepod/bin/glue"},
         {{k_room.cpu / weather.containers, k_room.memory / weather.containers}, k_room}});
  }
  pod.payload_size = {k_room, {k_room.cpu * weather.containers, k_room.memory * weather.containers}};
  const auto pilot_status = [this] {
    kube::ContainerStatus status;
    status.name = "pilot";
    status.state = kube::ContainerStatus::State::running;
    status.image = Images::k_home_name;
    status.image_id = images.image_id(Images::k_home, weather.bare_ids);
    status.container_id = "containerd://pilot";
    return status;
  };
  if (!weather.young_pod) pod.statuses.push_back(pilot_status());
  api.create(std::move(pod));
  if (weather.young_pod)
    clock.after(takes(100, 5000), [this, pilot_status] { api.set_status(pilot_status()); });
  kubelet.begin();
  clock.after(takes(0, 2000), [this] { driver.start(); });
  starters.begin();
  if (weather.faults) gremlin();
  if (weather.tags_move)
    for (int i = 0; i < 3; ++i)
      clock.after(random.delay(0, weather.storm.count()), [this] {
        if (const auto moved = images.move_a_tag(random)) say("registry: {} is moved", *moved);
      });
  if (Random queued = random.aside(18); weather.policy.spares > 0 && queued.chance(500))
    for (int i = 0; i < 4; ++i)
      clock.after(queued.delay(0, weather.storm.count()), [this, queued]() mutable {
        api.set_likely(
            kube::likely_text({{queued.pick(images.wanted()), 600}, {queued.pick(images.wanted()), 300}}));
      });
  if (weather.drained)
    clock.after(random.aside(13).delay(0, weather.storm.count()), [this] { driver.drain(); });
  if (weather.withdrawn)
    clock.after(random.aside(28).delay(0, weather.storm.count()), [this] { driver.withdraw(); });
  run_until(now() + weather.storm, most_steps);
  say("the storm is over");
  storm = false;
  // A glue that somebody has stopped says neither goodbye nor that it ends: it is gone like one that ended.
  if (weather.ends && !weather.glue_wedged)
    ends(most_steps);
  else
    finals(most_steps);
  return properties.verdict();
}

// The pilot's command ends by itself, whatever the containers are at: the pod is over then, well or as
// failed.
void World::ends(std::uint64_t most_steps) {
  api.down = false;
  driver.start();
  run_until(now() + random.aside(24).delay(1, 120'000), most_steps);
  if (!properties.verdict().empty() || !driver.up() || !driver.core()->usable() || driver.given_up()) return;
  starters.all_leave();
  // At that very moment somebody may stop a container.
  if (Random moment = random.aside(26); !weather.calm() && moment.chance(500)) {
    const auto boxes = kubelet.boxes().size();
    const int box = static_cast<int>(moment.between(0, static_cast<std::int64_t>(boxes) - 1));
    clock.after(moment.delay(0, 60), [this, box] {
      if (Glue* glue = kubelet.box(box).glue.get()) glue->struck();
    });
  }
  driver.leave();
  run_until(now() + seconds(700), most_steps);
  if (!properties.verdict().empty() || driver.end() == Driver::End::failed) return;
  if (driver.end() == Driver::End::none) return properties.broken("the pod ends", "the agent goes on");
  for (const Box& box : kubelet.boxes())
    if (box.runs() || !box.now || box.now->end.exit_code != 0) properties.broken("the pod ends", box.name);
}

// The world is calm. Whoever waits is answered; then every container can be used, by all at once, and again.
void World::finals(std::uint64_t most_steps) {
  api.down = false;
  driver.start();
  run_until(now() + weather.policy.bind_deadline + seconds(400), most_steps);
  if (!properties.verdict().empty()) return;
  for (const ClientId id : starters.waiting())
    if (starters.client(id).request.any_image || driver.serves(id))
      return properties.broken("nobody waits for ever", fmt::format("client {}", id));
  const auto good = images.startable();
  std::map<std::string, int>
      killed;  // by image: another name of the pilot's own content is found out by that
  if (kubelet.silent() && !driver.given_up())
    return properties.broken("a pod whose status is final takes no more jobs", "the pilot goes on");
  if (driver.given_up() || driver.draining() || good.empty()) return;
  // In a container that could not be made anew, as the API refused it, an earlier agent's job may yet write.
  const bool all_idle = std::ranges::all_of(
      kubelet.boxes(), [this](const Box& box) { return driver.state_of(box.name) == agent::State::idle; });
  if (!properties.left().empty() && all_idle && !properties.refused)
    return properties.broken("what a lost job has left is removed when the world is calm",
                             fmt::format("user {}", *properties.left().begin()));
  for (int round = 0; round < 4; ++round) {
    if (round == 2) {
      say("from here on, no start may have to wait");
      properties.no_pauses = true;
    }
    std::vector<ClientId> asked;
    for (int i = 0; i < weather.containers; ++i) {
      const std::string& image = good[static_cast<std::size_t>(round + i) % good.size()];
      const ClientId id =
          starters.ask(i, wire::Verb::exec, image, fmt::format("last-{}-{}", round, i), false);
      starters.client(id).takes = seconds(500);
      starters.client(id).ends = ExitStatus::exited(round);
      asked.push_back(id);
    }
    run_until(now() + seconds(450), most_steps);
    if (!properties.verdict().empty() || driver.given_up()) return;
    // A glue that does not answer is found by the first who needs it. One that is not even connected, as the
    // agent was killed too, ends with its container, and where nothing but its plain name is known of the
    // pilot's own image, no patch brings that about.
    const bool stuck = weather.bare_ids && std::ranges::any_of(kubelet.boxes(), [](const Box& box) {
                         return box.glue && box.glue->alive() && box.glue->wedged();
                       });
    // Where admission drops tags, the same content again is no change to a kubelet.
    const bool nameless = weather.tags_dropped;
    // A size is waited for less long than a stream may be silent.
    const bool hasty = weather.policy.bind_deadline < agent::Policy().bind_deadline ||
                       (weather.policy.resize && weather.silent_streams > 0);
    for (const ClientId id : asked)
      if (!starters.client(id).ran && (round > 0 || !weather.glue_wedged) && !stuck && !hasty && !nameless &&
          !properties.had_to_wait(id) && !properties.sizes_refused)
        return properties.broken("every container is of use when the world is calm",
                                 fmt::format("client {}", id));
    run_until(now() + seconds(600), most_steps);
    if (!properties.verdict().empty()) return;
    for (const ClientId id : asked) {
      const Client& client = starters.client(id);
      if (!client.answered) return properties.broken("nobody waits for ever", fmt::format("client {}", id));
      if (round > 0 && client.ran && client.cause != "itself" && killed[client.image()]++ > 0)
        return properties.broken("when the world is calm, a job that began ends by itself",
                                 fmt::format("client {}: {}", id, client.cause));
    }
  }
  ask_for_none(most_steps);
}

// What no registry has is told of soon, though a stream be silent: the bind has 600 s.
void World::ask_for_none(std::uint64_t most_steps) {
  const auto& wanted = images.wanted();
  const auto none = std::ranges::find_if(wanted, [this](const std::string& image) {
    return images.never_there(image) && images.can_be_at_fault(image);
  });
  if (none == wanted.end() || properties.refused) return;
  const ClientId id = starters.ask(0, wire::Verb::test, *none, "last-none", false);
  run_until(now() + seconds(400), most_steps);
  if (properties.verdict().empty() && !driver.given_up() && !starters.client(id).answered)
    properties.broken("an image that does not exist is told of soon", fmt::format("client {}", id));
}

}  // namespace glidepod::simulate
