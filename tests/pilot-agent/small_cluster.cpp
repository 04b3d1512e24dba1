#include "tests/pilot-agent/small_cluster.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/kube/image_reference.hpp"

namespace glidepod::agent {

using Json = nlohmann::json;
using kube::FakeServer;
namespace fs = std::filesystem;

namespace {
const std::string k_home_digest = "sha256:" + std::string(64, '0');

void write(const std::string& path, const std::string& text) {
  const Fd file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644).value();
  REQUIRE(write_all(file, text).ok());
}

// glue cleans /tmp, /var/tmp and /dev/shm as root. Here it gets its own, empty ones: they and the programs
// lie in a mount namespace of this process.
struct Programs {
  std::string agent, apptainer, glue;
};
const Programs& isolated_programs() {
  static const Programs programs = [] {
    const fs::path base = "/mnt";
    REQUIRE(::unshare(CLONE_NEWNS) == 0);
    REQUIRE(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    REQUIRE(::mount("tmpfs", base.c_str(), "tmpfs", 0, "mode=755") == 0);
    fs::create_directory(base / "tmp");
    for (const char* program : {AGENT_PROGRAM, APPTAINER_PROGRAM, GLUE_PROGRAM})
      fs::copy_file(program, base / fs::path(program).filename());
    for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm"})
      REQUIRE(::mount("tmpfs", folder, "tmpfs", 0, "mode=1777") == 0);
    ::setenv("TMPDIR", "/mnt/tmp", 1);
    return Programs{base / fs::path(AGENT_PROGRAM).filename(), base / fs::path(APPTAINER_PROGRAM).filename(),
                    base / fs::path(GLUE_PROGRAM).filename()};
  }();
  return programs;
}

std::string ad_of(const SmallCluster::Job& job) {
  return "User = \"" + job.owner + "\"\nClusterId = 1\nProcId = 0\n";
}

bool become_user(uid_t uid) {
  const gid_t groups[] = {30001};
  return ::geteuid() == uid || (::setgroups(1, groups) == 0 && ::setgid(uid) == 0 && ::setuid(uid) == 0);
}

[[noreturn]] void become_hook(const char* name, const SmallCluster::Job& job, const std::string& folder) {
  const Fd ad(::memfd_create("ad", 0));
  if (!write_all(ad, ad_of(job) + "JobUniverse = 5\nContainerImage = \"" + job.image + "\"\n")) ::_exit(97);
  ::lseek(ad.get(), 0, SEEK_SET);
  ::dup2(ad.get(), 0);
  ::setenv("TEST_EXEC_SOCKET", (folder + "/exec.sock").c_str(), 1);
  ::setenv("_CONDOR_SCRATCH_DIR", (folder + "/scratch/dir_1").c_str(), 1);
  if (::chdir("/") != 0 || !become_user(job.uid)) ::_exit(99);
  ::execl(isolated_programs().apptainer.c_str(), name, nullptr);
  ::_exit(98);
}

void run_hook(const char* name, const SmallCluster::Job& job, const std::string& folder) {
  const pid_t hook = ::fork();
  if (hook == 0) become_hook(name, job, folder);
  ::waitpid(hook, nullptr, 0);
}

[[noreturn]] void become_apptainer(const SmallCluster::Job& job, const std::string& folder, const Fd& out) {
  ::dup2(out.get(), 1);
  ::dup2(out.get(), 2);
  if (!job.in.empty()) ::dup2(::open(job.in.c_str(), O_RDONLY), 0);
  ::setenv("TEST_EXEC_SOCKET", (folder + "/exec.sock").c_str(), 1);
  ::setenv("TEST_STAY_MS", "100", 1);
  const std::string sandbox = folder + "/scratch/dir_1";
  std::vector<std::string> words = {"apptainer", "-s",    job.verb, "-W",    sandbox, "--pwd",  sandbox,
                                    "-B",        sandbox, "--home", sandbox, "-C",    job.image};
  if (job.probe) words = {"apptainer", "exec", "-C", job.image};
  words.insert(words.end(), job.argv.begin(), job.argv.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // The folder of this tree may be nobody's but root's.
  if (::chdir("/") != 0 || !become_user(job.uid)) ::_exit(99);
  ::execv(isolated_programs().apptainer.c_str(), argv.data());
  ::_exit(98);
}

// A stand-in for condor_starter: when told to vacate, it ends its apptainer and says so.
int parent_process(const SmallCluster::Job& job, const std::string& folder, const Fd& out) {
  ::prctl(PR_SET_NAME, job.parent.c_str());
  if (!become_user(job.parent_uid)) return 96;
  if (job.files_ms > 0) {
    run_hook("check-job", job, folder);
    ::usleep(static_cast<useconds_t>(job.files_ms) * 1000);
  }
  if (job.told) run_hook("prepare-job", job, folder);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGQUIT);
  sigaddset(&set, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    if (job.stubborn) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    become_apptainer(job, folder, out);
  }
  int number = 0, status = 0;
  ::sigwait(&set, &number);
  while (job.stubborn) ::pause();
  if (number == SIGQUIT) ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return number == SIGQUIT ? 77 : WEXITSTATUS(status);
}
}  // namespace

std::string SmallCluster::apptainer() {
  return isolated_programs().apptainer;
}

bool SmallCluster::isolate() {
  return !isolated_programs().glue.empty();
}

SmallCluster::SmallCluster(int payloads, std::vector<std::string> settings) : settings_(std::move(settings)) {
  REQUIRE(::chmod(folder().c_str(), 0755) == 0);
  for (const char* name : {"/run", "/scratch", "/scratch/dir_1"}) fs::create_directory(folder() + name);
  write(folder() + "/namespace", "test\n");
  containers_.push_back({"pilot", "reg.example/pilot:1", "reg.example/pilot@" + k_home_digest, {}, {}});
  registry["reg.example/pilot"] = k_home_digest;
  for (int i = 0; i < payloads; ++i)
    containers_.push_back(
        {fmt::format("payload-{}", i), "reg.example/pilot:1", "reg.example/pilot@" + k_home_digest, {}, {}});
  api_.on_request = [this](const FakeServer::Request& request) { return answer(request); };
  start_agent();
  for (std::size_t i = 1; i < containers_.size(); ++i) start_glue(containers_[i]);
}

SmallCluster::~SmallCluster() {
  ending_ = true;
  if (!agent_ended) {
    loop.forget(agent_->pidfd().get());
    (void)agent_->signal(SIGKILL);
    (void)agent_->wait();
  }
  for (Container& container : containers_) {
    if (!container.glue) continue;
    loop.forget(container.glue->pidfd().get());
    (void)container.glue->signal(SIGKILL);
    (void)container.glue->wait();
  }
  for (auto& [id, job] : jobs_) {
    (void)job->child.signal(SIGKILL);
    (void)job->child.wait();
  }
}

Child SmallCluster::spawn_agent(const std::string& log_file) {
  Child::Options options;
  options.argv = {isolated_programs().agent};
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                         "GLIDEPOD_EXEC_SOCKET=" + folder() + "/exec.sock",
                         "GLIDEPOD_AGENT_SOCKET=" + folder() + "/run/agent.sock",
                         "GLIDEPOD_SCRATCH=" + folder() + "/scratch",
                         "GLIDEPOD_SERVICE_ACCOUNT=" + folder(),
                         "GLIDEPOD_POD_NAME=pilot-1",
                         "GLIDEPOD_COMMAND=none",
                         "GLIDEPOD_STATUS_PATIENCE=2s",
                         "GLIDEPOD_CALM=1s",
                         "GLIDEPOD_FIRST=use",
                         "GLIDEPOD_TERMINATION_LOG=" + folder() + "/termination-log",
                         "GLIDEPOD_FAILURE_FILE=" + folder() + "/failure"};
  for (const std::string& setting : settings_) options.environment.push_back("GLIDEPOD_" + setting);
  const Fd log = open_file(log_file, O_WRONLY | O_CREAT | O_APPEND, 0644).value();
  options.stderr_fd = log.get();
  return Child::spawn(options).value();
}

void SmallCluster::start_agent() {
  write(folder() + "/termination-log", "");
  agent_ = spawn_agent(folder() + "/agent.log");
  REQUIRE(loop.watch(agent_->pidfd().get(), EPOLLIN,
                     [this](std::uint32_t) {
                       loop.forget(agent_->pidfd().get());
                       agent_ended = agent_->wait().value().status;
                     })
              .ok());
}

SmallCluster::Ran SmallCluster::second_agent() {
  const std::string log_file = folder() + "/second.log";
  Child second = spawn_agent(log_file);
  bool ended = false;
  REQUIRE(loop.watch(second.pidfd().get(), EPOLLIN, [&](std::uint32_t) { ended = true; }).ok());
  if (!until([&] { return ended; })) (void)second.signal(SIGKILL);
  loop.forget(second.pidfd().get());
  return {second.wait().value().status, read_file(log_file).value()};
}

void SmallCluster::restart_agent() {
  REQUIRE(agent_->signal(SIGKILL).ok());
  REQUIRE(until([this] { return agent_ended.has_value(); }));
  agent_ended.reset();
  start_agent();
}

void SmallCluster::start_glue(Container& container) {
  Child::Options options;
  options.argv = {isolated_programs().glue, "--container",         container.name,       "--run-directory",
                  folder() + "/run",        "--scratch-directory", folder() + "/scratch"};
  options.environment = {"PATH=/usr/bin:/bin", "IMAGE=" + container.image};
  const Fd log = open_file(folder() + "/glue.log", O_WRONLY | O_CREAT | O_APPEND, 0644).value();
  options.stderr_fd = log.get();
  container.glue = Child::spawn(options).value();
  REQUIRE(loop.watch(container.glue->pidfd().get(), EPOLLIN,
                     [this, &container](std::uint32_t) {
                       loop.forget(container.glue->pidfd().get());
                       glue_gone(container);
                     })
              .ok());
}

void SmallCluster::glue_gone(Container& container) {
  const ExitStatus status = container.glue->wait().value().status;
  container.glue.reset();
  glue_ended[container.name] = status;
  if (ending_ || status.success()) return;
  const std::string reason = container.end_reason.empty() ? "Error" : std::exchange(container.end_reason, {});
  container.last_state = {{"terminated", {{"exitCode", 137}, {"reason", reason}}}};
  const auto reference = kube::ImageReference::parse(container.image).value();
  const auto known = registry.find(reference.full_repository());
  if (known == registry.end()) {
    container.waiting = "ErrImagePull";
    container.message = "failed to resolve reference \"" + container.image + "\": not found";
  } else {
    container.waiting.clear();
    container.image_id = reference.full_repository() + "@" + known->second;
    ++container.restarts;
    start_glue(container);
  }
  tell();
}

Json SmallCluster::pod() const {
  Json specs = Json::array(), statuses = Json::array();
  for (const Container& container : containers_) {
    const bool pilot = container.name == "pilot";
    specs.push_back({{"name", container.name},
                     {"image", container.image},
                     {"command", {pilot ? "/usr/bin/pilot-agent" : "/glidepod/bin/glue"}}});
    Json state = {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}};
    if (!container.waiting.empty())
      state = {{"waiting", {{"reason", container.waiting}, {"message", container.message}}}};
    statuses.push_back({{"name", container.name},
                        {"image", container.image},
                        {"imageID", container.image_id},
                        {"restartCount", container.restarts},
                        {"state", state},
                        {"lastState", container.last_state}});
  }
  return {{"kind", "Pod"},
          {"metadata", {{"name", "pilot-1"}, {"uid", "u"}, {"resourceVersion", std::to_string(version_)}}},
          {"spec", {{"containers", specs}, {"restartPolicy", restart_policy}}},
          {"status", {{"containerStatuses", statuses}}}};
}

void SmallCluster::tell() {
  ++version_;
  const Json event = {{"type", "MODIFIED"}, {"object", pod()}};
  for (const int watcher : silent ? std::vector<int>() : watchers_)
    api_.send(watcher, FakeServer::chunk(event.dump() + "\n"));
}

FakeServer::Reply SmallCluster::answer(const FakeServer::Request& request) {
  ++api_requests;
  std::erase(watchers_, request.connection);
  if (request.target.find("watch=true") != std::string::npos) {
    watchers_.push_back(request.connection);
    auto reply = FakeServer::stream();
    const auto at = request.target.find("resourceVersion=");
    if (!silent && std::stoi(request.target.substr(at + 16)) < version_)
      reply.bytes += FakeServer::chunk(Json{{"type", "MODIFIED"}, {"object", pod()}}.dump() + "\n");
    return reply;
  }
  if (request.method == "PATCH") {
    const int code = patch_status != 200 || patch(Json::parse(request.body)) ? patch_status : 422;
    if (code != 200)
      return FakeServer::json(code, Json{{"kind", "Status"}, {"code", code}, {"message", "no"}}.dump());
  }
  return FakeServer::json(200, pod().dump());
}

// False where a JSON Patch is not of what the pod is now.
bool SmallCluster::patch(const Json& change) {
  if (change.is_object()) {
    const Json& spec = change.at("spec");
    if (spec.contains("activeDeadlineSeconds")) deadline = spec["activeDeadlineSeconds"];
    return true;
  }
  Json after;
  try {
    after = pod().patch(change);
  } catch (const Json::exception&) {
    return false;
  }
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    Container& container = containers_[i];
    const std::string image = after.at("spec").at("containers").at(i).at("image");
    if (container.image == image) continue;
    container.image = image;
    patches.push_back(image);
    ++version_;
    loop.after(Milliseconds(0), [this, &container] {
      if (container.glue) return (void)container.glue->signal(SIGTERM);
      const auto repository = kube::ImageReference::parse(container.image).value().full_repository();
      container.waiting.clear();
      container.image_id = repository + "@" + registry.at(repository);
      ++container.restarts;
      start_glue(container);
      tell();
    });
  }
  return true;
}

void SmallCluster::kill_glue(int payload, const std::string& reason) {
  Container& container = containers_.at(static_cast<std::size_t>(payload) + 1);
  container.end_reason = reason;
  REQUIRE(container.glue->signal(SIGKILL).ok());
}

ExitStatus SmallCluster::stop() {
  REQUIRE(agent_->signal(SIGTERM).ok());
  REQUIRE(until([this] { return agent_ended.has_value(); }));
  return *agent_ended;
}

void SmallCluster::idle(Milliseconds time) {
  bool over = false;
  loop.after(time, [&over] { over = true; });
  while (!over) REQUIRE(loop.run_once(Milliseconds(-1)).ok());
}

void SmallCluster::gave_up() const {
  MESSAGE(log());
}

std::string SmallCluster::log() const {
  return read_file(folder() + "/agent.log").value();
}

int SmallCluster::start(const Job& job) {
  const std::string sandbox = folder() + "/scratch/dir_1";
  const std::string ad = sandbox + "/.job.ad";
  write(ad, job.told ? "User = \"mallory@pool\"\n" : ad_of(job));
  // The ad stays root's, as HTCondor's own, or is the job's user's.
  const uid_t author = job.told ? job.uid : 0;
  REQUIRE((::chown(ad.c_str(), author, author) == 0 && ::chown(sandbox.c_str(), job.uid, job.uid) == 0));
  const std::string file = fmt::format("{}/out.{}", sandbox, ++last_job_);
  Fd out, read_end;
  if (job.probe) {  // it has no sandbox
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end.reset(ends[0]);
    out.reset(ends[1]);
  } else {
    out = open_file(file, O_RDWR | O_CREAT | O_TRUNC, 0644).value();
  }
  const auto begin = std::chrono::steady_clock::now();
  auto child = Child::fork([&]() -> int {
    if (!job.parent.empty()) return parent_process(job, folder(), out);
    become_apptainer(job, folder(), out);
  });
  jobs_[last_job_] = std::make_unique<Started>(Started{std::move(*child), file, std::move(read_end), begin});
  return last_job_;
}

SmallCluster::Ran SmallCluster::wait(int id) {
  Started& job = *jobs_.at(id);
  bool done = false;
  Ran ran;
  REQUIRE(loop.watch(job.child.pidfd().get(), EPOLLIN,
                     [&](std::uint32_t) {
                       loop.forget(job.child.pidfd().get());
                       ran.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() -
                                                                          job.begin)
                                    .count();
                       done = true;
                     })
              .ok());
  REQUIRE(until([&] { return done; }));
  ran.status = job.child.wait().value().status;
  ran.out = (job.pipe ? read_all(job.pipe, "pipe", 1 << 16) : read_file(job.out)).value();
  jobs_.erase(id);
  return ran;
}

SmallCluster::Ran SmallCluster::run(const Job& job) {
  return wait(start(job));
}

}  // namespace glidepod::agent
