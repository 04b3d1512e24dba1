#include "tests/glue/simulate/agent.hpp"

#include <signal.h>

#include <array>

#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {
constexpr std::array k_signals = {SIGTERM, SIGKILL, SIGSTOP, SIGCONT, SIGTSTP,
                                  SIGUSR1, SIGQUIT, 0,       NSIG,    4000};
}  // namespace

void Agent::begin() {
  steps_ = static_cast<int>(world_.random.between(5, 60));
  listens_ = world_.random.chance(500);
  step();
}

void Agent::step() {
  const auto wait =
      world_.random.chance(500) ? world_.micro(10, 20'000) : Micro(world_.random.delay(1, 20'000));
  world_.later(wait, [this] {
    if (steps_-- > 0)
      act();
    else
      wind_up();
    step();
  });
}

void Agent::appear() {
  // Others write into that folder, too.
  const bool others = world_.random.chance(world_.weather.other_files);
  appeared_ = appeared_ || others || !listens_;
  if (listens_ || others) return;
  listens_ = true;
  if (world_.weather.terminate && world_.random.chance(100)) world_.raise(SIGTERM);
  stranger_ = world_.random.chance(world_.weather.strangers);
  world_.truth.contact.listens(!stranger_);
  world_.note(stranger_ ? "a stranger listens" : "the agent listens");
}

void Agent::read(bool does) {
  reads_ = does;
  if (does) unread_ = false;
}

void Agent::act() {
  Random& random = world_.random;
  if (connection_ < 0) {
    if (stranger_ && random.chance(300)) listens_ = false;
    return appear();
  }
  if (random.chance(world_.weather.hang_up)) return hang_up();
  if (world_.weather.terminate && world_.truth.ending() && random.chance(300)) world_.raise(SIGTERM);
  read(!random.chance(world_.weather.deaf_agent));
  if (random.chance(world_.weather.nonsense)) {
    world_.note("agent: nonsense");
    using enum wire::Type;
    const std::array types = {hello, launch, signal, open_session, close_session, clear, wire::Type::beat};
    return put(random.pick(types), "?", 0);
  }
  if (random.chance(world_.weather.patient && world_.truth.open() ? 900 : 200)) return beat();
  if (!world_.truth.open() || random.chance(50)) {
    if (random.chance(world_.weather.lost_glues)) return clear();
    return random.chance(800) ? launch() : beat();
  }
  if (random.chance(world_.weather.sessions)) {
    const auto job = world_.truth.job();
    const auto named = random.chance(900) ? job : job + 5;
    if (random.chance(500)) {
      wire::OpenSession open;
      open.job = named;
      const bool again = world_.truth.sessions.answered(last_session_) && random.chance(300);
      open.session = again ? last_session_ : ++last_session_;
      open.request.command = std::to_string(open.session);
      world_.note(fmt::format("agent: open session {}", open.session));
      return send(open, streams());
    }
    world_.note(fmt::format("agent: close session {}", last_session_));
    return send(wire::CloseSession{named, last_session_});
  }
  if (random.chance(400)) {
    const int number = random.pick(k_signals);
    const auto job = random.chance(900) ? world_.truth.job() : last_job_ + 5;
    world_.note(fmt::format("agent: signal {} to job {}", number, job));
    send(wire::Signal{job, number});
  }
}

// The world comes to rest: the job is ended, then glue.
void Agent::wind_up() {
  read(true);
  world_.weather.strangers = 0;
  if (connection_ < 0) {
    if (stranger_) listens_ = false;
    return appear();
  }
  if (world_.random.chance(500)) beat();
  if (world_.truth.open()) return send(wire::Signal{world_.truth.job(), SIGKILL});
  if (finished_) return;
  world_.note("agent: finish");
  finished_ = true;
  send(wire::Finish{});
}

void Agent::launch() {
  wire::Launch launch;
  launch.job = ++last_job_;
  launch.argv = {"/job"};
  launch.cwd = std::string("/");
  launch.uid = launch.gid = world_.weather.as_root ? 0 : 5001;
  if (world_.weather.terminate && world_.random.chance(100)) world_.raise(SIGTERM);
  world_.note(fmt::format("agent: launch {}", last_job_));
  send(launch, streams());
}

// Fewer than three may not be.
int Agent::streams() {
  return world_.random.chance(100) ? static_cast<int>(world_.random.between(1, 2)) : 3;
}

void Agent::clear() {
  world_.note(fmt::format("agent: clear, as job {}", ++last_job_));
  send(wire::Clear{last_job_, 5001, 5001});
}

void Agent::beat() {
  send(wire::Beat{++last_beat_});
  world_.truth.beat_sent(last_beat_);
}

template <typename Message>
void Agent::send(const Message& message, int fds) {
  wire::Writer writer;
  fields(writer, message);
  put(Message::k_type, writer.take(), fds);
}

void Agent::put(wire::Type type, std::string body, int fds) {
  if (closed_) return;
  wire::Frame frame{type, std::move(body), {}};
  for (int i = 0; i < fds; ++i) frame.fds.emplace_back(world_.new_fd());
  to_glue_.push_back(std::move(frame));
}

void Agent::hang_up() {
  world_.note("the agent hangs up");
  if (world_.weather.terminate && world_.random.chance(100)) world_.raise(SIGTERM);
  closed_ = true;
  world_.truth.contact.hangs_up();
  listens_ = world_.random.chance(500) || world_.random.chance(world_.weather.unwilling);
  world_.truth.contact.listens(listens_);
  world_.truth.lost();
}

Result<Fd> Agent::connect() {
  world_.truth.contact.looks();
  if (world_.breaks(world_.weather.no_socket)) return Error("connect", EACCES);
  if (!listens_ || connection_ >= 0) return Error("connect", ENOENT);
  if (world_.random.chance(world_.weather.no_resources)) return Error("connect", EAGAIN);
  connection_ = world_.new_fd();
  closed_ = false;
  finished_ = unread_ = waited_for_ = false;
  to_glue_.clear();
  if (!stranger_ && world_.random.chance(world_.weather.unwilling))
    world_.later(world_.micro(1000, 6'000'000), [this, fd = connection_] {
      if (connection_ == fd && !closed_) hang_up();
    });
  return Fd(connection_);
}

void Agent::glue_closed() {
  world_.truth.lost();
  connection_ = -1;
  closed_ = false;
  to_glue_.clear();
}

bool Agent::take(wire::Frame* frame) {
  if (to_glue_.empty()) return false;
  *frame = std::move(to_glue_.front());
  to_glue_.pop_front();
  return true;
}

void Agent::receive(wire::Type type, const std::string& body) {
  world_.note(fmt::format("   glue sends {} in write {}", static_cast<unsigned>(type), world_.writes));
  unread_ = unread_ || !reads_;
  if (!closed_) world_.truth.sends(type, body);
}

}  // namespace glidepod::glue::simulate
