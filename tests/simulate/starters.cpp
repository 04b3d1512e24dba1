#include "tests/simulate/starters.hpp"

#include <algorithm>
#include <array>
#include <csignal>

#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using agent::ClientId;
using agent::Core;
using agent::Time;

namespace {
constexpr std::array<const char*, 3> k_owners = {"alice", "bob", "carol"};
constexpr int k_no_slot = -1;  // of a pilot job's own job
}  // namespace

void Starters::begin() {
  slots_.resize(static_cast<std::size_t>(world_.weather.slots));
  for (int slot = 0; slot < world_.weather.slots; ++slot) next_job(slot);
}

void Starters::next_job(int slot) {
  if (!world_.storm || slot == k_no_slot) return;
  world_.clock.after(world_.random.delay(1, 10'000), [this, slot] { start_job(slot); });
}

void Starters::start_job(int number) {
  if (!world_.storm) return;
  if (!world_.driver.up()) return next_job(number);
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  Random& random = world_.random;
  const bool again = !slot.image.empty() && world_.weather.lively_reuse && random.chance(500);
  if (!again) {
    slot.owner = k_owners[static_cast<std::size_t>(random.between(0, 2))];
    slot.image = random.chance(20) ? std::string(Images::k_home_name) : random.pick(world_.images.wanted());
  }
  Random files = random.aside(world_.clock.steps() + 61);
  if (!world_.weather.announces || !files.chance(600)) return bind_job(number);
  const std::string image = files.chance(900) ? slot.image : files.pick(world_.images.wanted());
  world_.driver.announce({0, wire::Verb::announce, false, agent::Image(image), slot.owner,
                          "1." + std::to_string(number), static_cast<uid_t>(20001 + number)});
  // It may be removed while its files come.
  if (files.chance(100)) return next_job(number);
  world_.clock.after(files.delay(1, 20'000), [this, number] { bind_job(number); });
}

void Starters::bind_job(int number) {
  if (!world_.storm) return;
  if (!world_.driver.up()) return next_job(number);
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  Random& random = world_.random;
  if (random.chance(50)) {
    ask(number, wire::Verb::exec, {}, "uid:0", true);
    return;
  }
  const bool test = random.chance(700);
  const auto verb = test ? wire::Verb::test : random.chance(150) ? wire::Verb::run : wire::Verb::exec;
  const ClientId client = ask(number, verb, slot.image, slot.owner, false);
  slot.testing = test ? client : 0;
}

ClientId Starters::ask(int slot, wire::Verb verb, const std::string& image, const std::string& owner,
                       bool probe) {
  const ClientId id = world_.driver.next_client();
  if (id == 0) return 0;
  Random& random = world_.random;
  Client& client = clients_[id];
  client.request = {id,
                    verb,
                    probe,
                    probe ? agent::Image::home() : agent::Image(image),
                    owner,
                    "1." + std::to_string(slot),
                    static_cast<uid_t>(probe ? 100 : 20001 + slot)};
  client.slot = slot;
  // Slots share what the pod has. At a test the slot may not be known yet.
  Random size = random.aside(id);
  const bool unknown = verb == wire::Verb::test && size.chance(200);
  const std::int64_t most = std::int64_t{4} * std::max(world_.weather.slots, world_.weather.containers);
  const std::int64_t part = size.between(1, 4);
  if (world_.weather.policy.resize && !probe && !unknown)
    client.request.slot_size = {World::k_room.cpu * part / most, World::k_room.memory * part / most};
  client.request.pilot = world_.weather.pilot_jobs && !probe && random.aside(id + 40).chance(400);
  client.asked = world_.now();
  client.takes = random.delay(1, 40'000);
  client.ends = random.chance(900) ? ExitStatus::exited(static_cast<int>(random.between(0, 3)))
                                   : ExitStatus::signaled(random.chance(500) ? SIGSEGV : SIGTERM);
  if (verb != wire::Verb::test && world_.fault(world_.weather.clumsy_jobs / 2))
    client.cannot_start = random.chance(500) ? wire::Fault::user : wire::Fault::infrastructure;
  if (world_.fault(world_.weather.vanishing))
    world_.clock.after(random.delay(0, 30'000), [this, id] { leaves(id); });
  if (world_.fault(world_.weather.signals)) {
    static constexpr std::array numbers = {SIGTERM, SIGKILL, SIGCONT, SIGINT};
    const int number = numbers[static_cast<std::size_t>(random.between(0, 3))];
    world_.clock.after(random.delay(0, 30'000), [this, id, number] {
      Client& then = clients_.at(id);
      if (then.gone || then.answered || !world_.storm) return;
      then.signalled = number;
      world_.say("agent: client {} passes signal {}", id, number);
      world_.driver.tell([id, number](Core& core, Time now) { core.on_client_signal(id, number, now); });
    });
  }
  world_.driver.bind(client.request);
  return id;
}

void Starters::runs(ClientId id, agent::JobId job) {
  Client& client = clients_.at(id);
  if (!client.request.pilot || !world_.storm) return;
  Random chance = world_.random.aside(id + 41);
  for (auto left = chance.between(1, 4); left > 0; --left) {
    const std::string image = chance.pick(world_.images.wanted());
    const auto verb = chance.chance(400) ? wire::Verb::test : wire::Verb::exec;
    world_.clock.after(chance.delay(1, client.takes.count()),
                       [this, id, job, image, verb] { ask_inner(id, job, image, verb); });
  }
}

void Starters::ask_inner(ClientId outer, agent::JobId job, const std::string& image, wire::Verb verb) {
  if (clients_.at(outer).end || !world_.storm) return;
  const ClientId id = world_.driver.next_client();
  if (id == 0) return;
  Random chance = world_.random.aside(id + 42);
  Client& client = clients_[id];
  const agent::Request& by = clients_.at(outer).request;
  const uid_t uid = verb == wire::Verb::test ? by.uid : static_cast<uid_t>(100'000 + id);
  const std::string owner = by.owner + (chance.chance(500) ? "+x" : "+y");
  client.request = {id, verb, false, agent::Image(image), owner, by.job + "+1", uid};
  client.request.outer = job;
  client.request.pilot = chance.chance(200);
  client.slot = k_no_slot;
  client.outer = outer;
  client.asked = world_.now();
  client.takes = chance.delay(1, 40'000);
  client.ends = ExitStatus::exited(static_cast<int>(chance.between(0, 3)));
  clients_.at(outer).inner.push_back(id);
  world_.say("job: of client {} asks as client {}", outer, id);
  if (world_.fault(world_.weather.vanishing))
    world_.clock.after(chance.delay(0, 30'000), [this, id] { leaves(id); });
  world_.driver.bind(client.request);
}

void Starters::ended(ClientId id) {
  for (const ClientId inner : clients_.at(id).inner)
    world_.clock.after(world_.random.aside(inner + 43).delay(0, 30), [this, inner] { leaves(inner); });
}

// Its process ends, answered or not.
void Starters::leaves(ClientId id) {
  Client& client = clients_.at(id);
  if (client.gone) return;
  client.gone = true;
  world_.driver.client_gone(id);
  if (!client.answered) next_job(client.slot);
}

void Starters::all_leave() {
  for (const ClientId id : waiting()) leaves(id);
}

void Starters::answered(ClientId id, ExitStatus status) {
  Client& client = clients_.at(id);
  client.answered = true;
  world_.clock.after(world_.takes(0, 30), [this, id] { leaves(id); });
  if (!world_.storm) return;
  if (client.slot == k_no_slot) {
    if (client.request.verb != wire::Verb::test || !status.success()) return;
    world_.clock.after(world_.random.aside(id + 44).delay(5, 3000),
                       [this, outer = client.outer, job = client.request.outer, image = client.image()] {
                         ask_inner(outer, job, image, wire::Verb::exec);
                       });
    return;
  }
  Slot& slot = slots_[static_cast<std::size_t>(client.slot)];
  const bool ready = slot.testing == id && status.success() && !world_.fault(world_.weather.vanishing);
  if (slot.testing == id) slot.testing = 0;
  if (!ready) return next_job(client.slot);
  world_.clock.after(world_.random.delay(5, 3000), [this, number = client.slot] {
    const Slot& then = slots_[static_cast<std::size_t>(number)];
    const auto verb = world_.random.chance(150) ? wire::Verb::run : wire::Verb::exec;
    if (ask(number, verb, then.image, then.owner, false) == 0) next_job(number);
  });
}

void Starters::failed(ClientId id) {
  Client& client = clients_.at(id);
  client.answered = true;
  world_.clock.after(world_.takes(0, 2000), [this, id] { leaves(id); });
  next_job(client.slot);
}

void Starters::agent_gone(ClientId id) {
  Client& client = clients_.at(id);
  client.gone = true;
  if (!client.answered) next_job(client.slot);
}

std::vector<ClientId> Starters::waiting() const {
  std::vector<ClientId> result;
  for (const auto& [id, client] : clients_)
    if (!client.answered && !client.gone) result.push_back(id);
  return result;
}

}  // namespace glidepod::simulate
