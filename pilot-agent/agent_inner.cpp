// The driver's part of pilot jobs: who asks from within a payload container, as which user the job runs that
// they ask for, and the folder that both need.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/acl.hpp"
#include "pilot-agent/agent.hpp"
#include "pilot-agent/core/words.hpp"
#include "pilot-agent/peer_process.hpp"

namespace glidepod::agent {
namespace {

constexpr std::size_t k_most_links = 64;  // of all pilot jobs, waiting or running
// Of each of them. Whether all of it ever comes is up to the job.
constexpr std::size_t k_longest_request = std::size_t{1} << 20;
constexpr std::string_view k_bin = "/glidepod/bin";
constexpr std::string_view k_path = "PATH=";

}  // namespace

// In front of what the image or the job has; as apptainer passes it where the job says nothing of PATH.
void find_our_programs(std::vector<std::string>& environment) {
  const auto path =
      std::ranges::find_if(environment, [](const auto& each) { return each.starts_with(k_path); });
  if (path != environment.end())
    path->insert(k_path.size(), fmt::format("{}:", k_bin));
  else
    environment.push_back(fmt::format("SING_USER_DEFINED_PREPEND_PATH={}", k_bin));
}

Result<void> Agent::listen_to_pilots() {
  if (::geteuid() != 0)
    return error(
        "pilot_jobs=true needs a pilot that runs as root: jobs of pilot jobs have users of their own");
  // So that pilot jobs can reach the one socket in it that is opened to them; glue's is root's alone.
  const auto folder = std::filesystem::path(settings_.pilot_socket).parent_path().string();
  TRY(set_mode(TRY(open_file(folder, O_RDONLY | O_DIRECTORY)), 0711).in(folder));
  loans_ = TRY(Loans::create(loop_, [this] { pump(); }));
  pilot_listener_ = TRY(wire::listen_at(settings_.pilot_socket, 0600));
  return loop_.watch(pilot_listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_pilot(); });
}

// The kernel lets nobody else connect.
void Agent::open_to_pilots() {
  std::vector<uid_t> users;
  for (const auto& [job, uid] : pilots_) users.push_back(uid);
  if (const auto opened = open_to(settings_.pilot_socket, users); !opened)
    spdlog::error("event=pilot_socket reason={}", quoted(opened.error().message()));
}

// Whoever is no pilot job's process is not listened to, whatever its user.
void Agent::accept_pilot() {
  auto socket = wire::accept_from(pilot_listener_);
  if (!socket || !socket->valid()) return;
  auto peer = wire::peer_of(*socket);
  PeerProcess process = find_peer_process(*socket);
  std::string instance = process.container_id;
  if (!peer || !core_.containers().pilot_in(instance, peer->uid)) return;
  const auto links =
      std::ranges::count_if(clients_, [](const auto& each) { return !each.second.instance.empty(); });
  if (static_cast<std::size_t>(links) >= k_most_links) return;
  open_link(std::move(*socket), *std::move(peer), std::move(process), std::move(instance), k_longest_request);
}

// An Error is the caller's fault.
Result<void> Agent::take_inner_bind(ClientId client, wire::Frame frame) {
  ClientLink& link = clients_.at(client);
  auto bind = TRY(frame.decode<wire::Bind>());
  TRY(check_protocol(bind.protocol));
  if (bind.program_attached || frame.fds.size() != 3)
    return error("the request came without its standard streams");
  if (bind.verb == wire::Verb::announce) return error("only HTCondor's starter announces a job");
  const auto pilot = core_.containers().pilot_in(link.instance, link.peer.uid);
  if (!pilot) return error("the pilot job that asks has ended");
  while (bind.work_directory.ends_with('/')) bind.work_directory.pop_back();

  const Request& outer = pilot->request;
  Request request{client, bind.verb, false, Image::home(), {}, {}, link.peer.uid};
  request.outer = pilot->id;
  request.sandbox = bind.work_directory;
  request.asked = Image(TRY(files_->registry_image(bind.image)));
  if (bind.verb == wire::Verb::run) request.arguments = bind.argv;
  // Its ad is the inner starter's, who runs as the pilot job's user: it says who shares containers, and no
  // more.
  const auto job = read_job(settings_.scratch, bind.work_directory, link.peer.uid);
  const auto id = job && !job->identity.id.empty() ? job->identity.id : std::to_string(client);
  request.job = fmt::format("{}+{}", outer.job, id);
  request.owner = job && !job->identity.owner.empty() ? fmt::format("{}+{}", outer.owner, job->identity.owner)
                                                      : fmt::format("{}+#{}", outer.owner, client);
  if (job) {
    request.memory_mib = job->identity.memory_mib;
    request.pilot = job->identity.pilot;
  }
  wire::Launch launch = TRY(plan_launch(bind, {link.peer.uid, link.peer.gid, {}, ""}, shared_));
  launch.about =
      fmt::format("job={} owner={} image={}", word(request.job), word(request.owner), word(request.asked));
  // Of its groups it has that by which HTCondor knows the pilot job's processes.
  for (const gid_t group : link.peer.groups)
    if (group != link.peer.gid) launch.groups.push_back(group);
  link.pilot = request.pilot;
  if (request.pilot) find_our_programs(launch.environment);
  link.launch = std::move(launch);
  // What the pilot job has in its own folder it may give to its jobs.
  if (bind.verb != wire::Verb::test) TRY(judge(link, frame.fds, outer.sandbox));
  link.fds = std::move(frame.fds);
  if (bind.verb == wire::Verb::test) {
    core_.on_bind(std::move(request), Loop::now());
    return {};
  }
  return lend_to(client, std::move(request), *pilot);
}

Result<void> Agent::lend_to(ClientId client, Request request, const PilotJob& pilot) {
  ClientLink& link = clients_.at(client);
  std::set<uid_t> busy;
  for (const User& user : core_.users()) busy.insert(user.uid);
  const Lent what{.scratch = settings_.scratch,
                  .sandbox = pilot.request.sandbox,
                  .folder = request.sandbox,
                  .owner = link.peer.uid,
                  .group = link.peer.gid,
                  .above = pilot_users(pilot)};
  const auto lent = std::make_shared<Request>(std::move(request));
  const Lent loan = TRY(loans_->lend(client, pilot.id, what, busy, [this, lent](const Result<void>& done) {
    if (done) {
      core_.on_bind(*lent, Loop::now());
    } else {
      const auto why = done.error().in("the job's folder (-W) cannot be shared with its user").message();
      spdlog::warn("event=refused uid={} reason={}", lent->uid, quoted(why));
      run(Fail{lent->client, false, wire::Fault::user, why});
    }
    pump();
  }));
  lent->uid = lent->gid = loan.borrower;
  link.launch->uid = link.launch->gid = loan.borrower;
  link.launch->user_name = fmt::format("inner{}", loan.borrower);
  link.launch->groups.push_back(loan.family);
  return {};
}

// The pilot job's, and those of the pilot jobs that it is a job of.
std::vector<uid_t> Agent::pilot_users(const PilotJob& pilot) const {
  std::vector<uid_t> users{pilot.request.uid};
  for (auto outer = core_.containers().pilot_of(pilot.request.outer); outer;
       outer = core_.containers().pilot_of(outer->request.outer))
    users.push_back(outer->request.uid);
  return users;
}

void Agent::when_returned(ClientId client, std::function<void()> act) {
  if (!loans_) return act();
  loans_->when_returned(client, std::move(act));
}

void Agent::run(const JobOver& action) {
  if (pilots_.erase(action.job) > 0) open_to_pilots();
  if (loans_) loans_->over(action.job);
}

}  // namespace glidepod::agent
