// What glue's server has for a loop, a connection, a log and the rest of the system, in the place of the real
// thing. Descriptors are numbers that no process can have.
#include <malloc.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "glue/events.hpp"
#include "glue/folder_watch.hpp"
#include "glue/memory.hpp"
#include "glue/reports.hpp"
#include "glue/seccomp.hpp"
#include "lib/wire/socket.hpp"
#include "tests/glue/simulate/world.hpp"

using glidepod::glue::simulate::World;

// What glue calls the time of day is the world's; the rest is the kernel's.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (clock != CLOCK_REALTIME || !World::exists())
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  const auto ns = std::chrono::nanoseconds(World::current().now().time_since_epoch()).count();
  *now = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  return 0;
}

extern "C" uid_t geteuid() noexcept {
  return glidepod::glue::simulate::World::current().weather.unprivileged ? 1000 : 0;
}

// Nothing to give back here, and slow.
extern "C" int malloc_trim(std::size_t) noexcept {
  return 0;
}

namespace glidepod {

using glue::simulate::Micro;

Result<Loop> Loop::create() {
  return Loop(Fd());
}

SteadyTime Loop::now() {
  return World::current().now();
}

Result<void> Loop::watch(int fd, std::uint32_t, Handler handler) {
  World& world = World::current();
  if ((world.pipe(fd) != nullptr || fd == world.folder_watch) &&
      world.random.chance(world.weather.no_resources)) {
    world.note("a pipe or the folder cannot be watched");
    if (fd == world.folder_watch) world.folder_watch = -1;
    return Error("watch", ENOSPC);
  }
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
  return {};
}

Result<void> Loop::change(int, std::uint32_t) {
  return {};
}

void Loop::forget(int fd) {
  handlers_.erase(fd);
  if (fd == World::current().folder_watch) World::current().folder_watch = -1;
}

Result<void> Loop::on_signals(const std::vector<int>&, std::function<void(const signalfd_siginfo&)> handler) {
  return watch(World::k_signals, EPOLLIN, [handler = std::move(handler)](std::uint32_t) {
    for (const auto& info : World::current().take_signals(16)) handler(info);
  });
}

Result<void> Loop::run_once(Milliseconds) {
  World& world = World::current();
  std::vector<int> ready;
  const auto look = [&] {
    ready.clear();
    for (const auto& [fd, handler] : handlers_)
      if (fd == world.folder_watch ? world.agent.appeared() : world.ready(fd)) ready.push_back(fd);
    return !ready.empty();
  };
  std::optional<SteadyTime> timer;
  if (!timers_.empty()) timer = timers_.begin()->first.first;
  world.wait_until(timer, look);
  world.begin_turn();
  look();
  while (!ready.empty()) {
    const int fd = world.random.pick(ready);
    std::erase(ready, fd);
    const auto found = handlers_.find(fd);
    if (found == handlers_.end()) continue;
    const auto handler = found->second;
    (*handler)(EPOLLIN);
  }
  run_due_timers();
  if (running_) world.end_turn(timers_.size(), handlers_.size());
  return {};
}

namespace wire {

Channel::Channel(Loop& loop, Fd socket, Handlers handlers, std::size_t longest)
    : loop_(loop), socket_(std::move(socket)), handlers_(std::move(handlers)), longest_(longest) {}

Channel::~Channel() {
  *alive_ = false;
  loop_.forget(socket_.get());
  World::current().held = 0;
  if (World::current().agent.connected(socket_.get())) World::current().agent.glue_closed();
}

Result<std::unique_ptr<Channel>> Channel::create(Loop& loop, Fd socket, Handlers handlers,
                                                 std::size_t longest) {
  std::unique_ptr<Channel> channel(new Channel(loop, std::move(socket), std::move(handlers), longest));
  TRY(loop.watch(channel->socket_.get(), EPOLLIN,
                 [raw = channel.get()](std::uint32_t events) { raw->on_events(events); }));
  return channel;
}

Result<void> Channel::send_frame(Type type, const std::string& body, const std::vector<int>&) {
  Writer writer;
  writer(type);
  Outgoing out;
  out.bytes = writer.take() + body;
  outgoing_.push_back(std::move(out));
  World::current().held = outgoing_.size();
  return held_ ? Result<void>() : write_soon();
}

Result<void> Channel::release() {
  held_ = false;
  return write_soon();
}

Result<void> Channel::write_soon() {
  World::current().pass_call();
  ++World::current().writes;
  for (; !outgoing_.empty(); outgoing_.pop_front()) {
    const std::string& bytes = outgoing_.front().bytes;
    Type type{};
    std::memcpy(&type, bytes.data(), sizeof type);
    if (World::current().agent.connected(socket_.get()))
      World::current().agent.receive(type, bytes.substr(sizeof type));
  }
  World::current().held = 0;
  return {};
}

Result<void> Channel::flush(Milliseconds limit) {
  World& world = World::current();
  for (const auto until = world.now() + limit; !world.agent.reads() && world.now() < until;)
    world.pass(Micro(10'000));
  world.agent.waited_for();
  held_ = false;
  return write_soon();
}

void Channel::on_events(std::uint32_t) {
  const auto alive = alive_;
  auto& agent = World::current().agent;
  World::current().pass_call();
  Frame frame;
  for (int i = 0; i < 16 && agent.take(&frame); ++i) {
    World::current().truth.handles(frame);
    const auto handle = handlers_.frame;
    handle(std::move(frame));
    World::current().truth.handled(*alive);
    if (!*alive) return;
    frame = {};
  }
  if (!agent.closed()) return;
  loop_.forget(socket_.get());
  const auto closed = handlers_.closed;
  closed(Error(""));
}

Result<Fd> connect_to(const std::string&, int) {
  World::current().pass_call();
  return World::current().agent.connect();
}

Result<Peer> peer_of(const Fd&) {
  Peer peer{};
  peer.uid = ::geteuid();
  if (World::current().agent.is_stranger()) {
    peer.uid = 4711;
    World::current().agent.glue_closed();  // it will
  }
  return peer;
}

}  // namespace wire

namespace glue {

Result<Fd> watch_folder(const std::string&) {
  World& world = World::current();
  if (world.breaks(world.weather.no_folder)) return Error("inotify", ENOENT);
  if (world.random.chance(world.weather.no_resources)) return Error("inotify", EMFILE);
  world.check(world.folder_watch < 0, "the folder is watched once");
  world.folder_watch = world.new_fd();
  world.agent.looked();
  return Fd(world.folder_watch);
}

void drain_folder_watch(const Fd&) {
  World::current().agent.looked();
}

Record read_record(const Fd& fd, void* record, std::size_t size) {
  World::current().pass_call();
  World::Pipe* pipe = World::current().pipe(fd.get());
  if (pipe == nullptr || (pipe->open && pipe->records.empty())) return Record::none;
  if (pipe->records.empty()) return Record::end;
  std::memcpy(record, pipe->records.front().data(), size);
  pipe->records.pop_front();
  return Record::whole;
}

void say(std::string_view line) {
  World::current().note("   glue: " + std::string(line));
  World::current().truth.says(line);
}

std::string value(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

Result<Filter> Filter::build() {
  return Filter();
}

ControlGroup::ControlGroup(const std::string&) {}

MemoryState ControlGroup::read() const {
  World::current().pass_call();
  return {.oom_kills = World::current().truth.account.memory_read()};
}

std::int64_t ControlGroup::used_kib() const {
  World::current().pass_call();
  return World::current().truth.account.memory_used();
}

// By these it is known which readings they were.
MemoryUse use_between(const MemoryState& before, const MemoryState& after) {
  return {.oom_kills = static_cast<std::uint32_t>(after.oom_kills - before.oom_kills),
          .limit_kib = static_cast<std::int64_t>(before.oom_kills),
          .peak_kib = static_cast<std::int64_t>(after.oom_kills)};
}

}  // namespace glue

}  // namespace glidepod
