#include "podhost/daemon.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/http/limited_stream.hpp"
#include "podhost/api/api.hpp"
#include "podhost/keep/reconciler.hpp"
#include "podhost/runtime/podman_rest.hpp"
#include "podhost/runtime/podman_service.hpp"

namespace glidepod::podhost {
namespace {

constexpr std::size_t k_task_threads = 128;
constexpr rlim_t k_descriptors = 65536;
constexpr Milliseconds k_last_calls{5000};  // for what podman was doing when podhost was asked to stop

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return lower;
}

// The first address of an interface that is up and not the loopback.
std::string host_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "127.0.0.1";
  std::string found;
  for (const ifaddrs* entry = list; entry && found.empty(); entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
    if (!(entry->ifa_flags & IFF_UP) || (entry->ifa_flags & IFF_LOOPBACK)) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) found = text;
  }
  freeifaddrs(list);
  return found.empty() ? "127.0.0.1" : found;
}

PodFacts host_facts(const Options& options) {
  PodFacts facts;
  facts.node_name = options.node_name.empty() ? host_name() : options.node_name;
  facts.host_ip = options.host_ip.empty() ? host_address() : options.host_ip;
  facts.node_cpu_milli = sysconf(_SC_NPROCESSORS_ONLN) * 1000;
  facts.node_memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return facts;
}

// One podhost a state directory; the lock goes with the process, however it ends.
Result<Fd> lock_state(const std::string& state_dir) {
  Fd lock = TRY(open_file(state_dir + "/lock", O_RDWR | O_CREAT, 0600));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return error("{} is in use by another podhost", state_dir);
    return Error::system("lock {}", state_dir);
  }
  return lock;
}

// The token of a file, made if it is missing.
Result<std::string> read_token(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) {
    unsigned char raw[24];
    if (getrandom(raw, sizeof raw, 0) != sizeof raw) return Error::system("getrandom");
    std::string text;
    for (const auto byte : raw) text += fmt::format("{:02x}", byte);
    TRY(replace_file(path, text + "\n", 0600));
  }
  const std::string text = TRY(read_file(path));
  std::string token(trim(text));
  if (token.size() < 16) return error("{}: a token needs 16 characters or more", path);
  return token;
}

std::string kubeconfig(int port, const std::string& token) {
  return fmt::format(
      "{{\"apiVersion\": \"v1\", \"kind\": \"Config\", \"current-context\": \"podhost\",\n"
      " \"clusters\": [{{\"name\": \"podhost\", \"cluster\": {{\"server\": "
      "\"http://127.0.0.1:{}/t/{}\"}}}}],\n"
      " \"contexts\": [{{\"name\": \"podhost\", \"context\": {{\"cluster\": \"podhost\", \"user\": "
      "\"podhost\"}}}}],\n"
      " \"users\": [{{\"name\": \"podhost\", \"user\": {{}}}}]}}\n",
      port, token);
}

std::vector<std::string> podman_command(const Options& options) {
  std::vector<std::string> command = {options.podman};
  for (const auto& [name, value] : {std::pair("--root", &options.podman_root),
                                    {"--runroot", &options.podman_runroot},
                                    {"--tmpdir", &options.podman_tmpdir}}) {
    if (value->empty()) continue;
    command.emplace_back(name);
    command.push_back(*value);
  }
  command.insert(command.end(), options.podman_options.begin(), options.podman_options.end());
  return command;
}

// A pod is a guest by its uid.
class GuestSockets : public PodSockets {
 public:
  explicit GuestSockets(http::Server& server) : server_(server) {}
  Result<void> open(const std::string& uid, const std::string& path,
                    std::optional<std::int64_t> group) override {
    return server_.listen_guest(uid, path, group ? std::optional(static_cast<gid_t>(*group)) : std::nullopt);
  }
  void close(const std::string& uid) override { server_.close_guest(uid); }

 private:
  http::Server& server_;
};

// Many pods are many descriptors; the soft limit of old, 1024, is for programs that use select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, k_descriptors);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<void> run_daemon(const Options& options) {
  umask(0022);
  signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  PodFiles files(options.state_dir);
  TRY(files.prepare());
  const Fd lock = TRY(lock_state(options.state_dir));

  Loop loop = TRY(Loop::create());
  std::optional<Error> failed;  // the start did
  const auto fail = [&](Error error) {
    failed = std::move(error);
    loop.stop();
  };
  bool stopping = false, ready = false;
  std::function<void()> stop = [&] { loop.stop(); };
  TRY(loop.on_signals({SIGTERM, SIGINT, SIGHUP}, [&](const signalfd_siginfo& info) {
    if (info.ssi_signo == SIGHUP) return;
    spdlog::info("event=stopping signal={}", info.ssi_signo);
    if (std::exchange(stopping, true)) return loop.stop();  // asked twice: at once
    stop();
  }));
  auto inbox = TRY(Inbox::create(loop));

  PodmanService service(loop, podman_command(options), options.state_dir + "/podman.sock",
                        [&](const std::string& how) {
                          // Later it is started again; now it would hardly fare better.
                          if (!ready) fail(error("{} system service: {}", options.podman, how));
                        });
  TRY(service.start());
  PodmanRest podman(options.state_dir + "/podman.sock");

  // Versions grow with the clock, so that a watch from before a restart is told it is too old.
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  Reconciler* reconciler = nullptr;
  Store store(files, std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count(),
              [&](const std::string& uid) { reconciler->changed(uid); });
  for (auto& pod : files.load()) store.restore(std::move(pod));

  const PodFacts facts = host_facts(options);
  const SpecRules rules{facts.node_name, options.allow_privileged};
  std::string token;
  if (options.port >= 0) {
    token = TRY(read_token(options.token_file.empty() ? options.state_dir + "/token" : options.token_file)
                    .in("token"));
  }
  Api api(store, files, {rules, token});
  http::Server server(
      loop, {.admit = [&](const http::Connection& connection,
                          const httplib::Request& request) { return api.admit(connection, request); },
             .handle = [&](const http::Connection& connection, const httplib::Request& request,
                           httplib::Response& response) { api.handle(connection, request, response); },
             .refuse = Api::refuse});
  GuestSockets sockets(server);
  std::optional<Workers> workers(std::in_place, k_task_threads);
  Reconciler pods(
      WorkerContext{loop,
                    *inbox,
                    *workers,
                    store,
                    sockets,
                    TaskTools{podman, files, options.state_dir, options.pids_limit},
                    BackoffRule{Seconds(options.backoff_seconds), Seconds(options.backoff_limit_seconds)},
                    facts,
                    {},
                    {}});
  reconciler = &pods;

  const auto listen = [&]() -> Result<void> {
    TRY(server.listen_unix(options.socket));
    if (options.port < 0) return {};
    const int port = TRY(server.listen_tcp(fmt::format("127.0.0.1:{}", options.port)));
    TRY(replace_file(options.state_dir + "/kubeconfig", kubeconfig(port, token), 0600));
    spdlog::info("event=listening address=127.0.0.1:{} kubeconfig={}/kubeconfig", port, options.state_dir);
    return {};
  };
  // Nobody is served before podman has told what runs.
  const auto begin = [&](Result<Found>& found) {
    if (!found) return fail(found.error().in("take over the pods of the podhost before this one"));
    pods.adopt(std::move(found).value());
    if (const auto listening = listen(); !listening) return fail(listening.error());
    if (options.stop_pods) {
      stop = [&] {
        api.set_ready(false);
        pods.stop_all([&] { loop.stop(); });
      };
    }
    ready = true;
    api.set_ready(true);
    spdlog::info("event=ready socket={} state_dir={} node={}", options.socket, options.state_dir,
                 facts.node_name);
  };
  workers->run([&] {
    auto found = std::make_shared<Result<Found>>(find_pods(podman, options.state_dir));
    inbox->post([&begin, found] { begin(*found); });
  });
  auto ran = loop.run();
  api.set_ready(false);
  // Threads end before what they use: first the clients', then the tasks'.
  server.stop();
  pods.cancel();
  podman.end_calls_at(std::chrono::steady_clock::now() + (ready ? k_last_calls : Milliseconds(0)));
  workers.reset();
  if (failed) return *failed;
  return ran;
}

}  // namespace glidepod::podhost
