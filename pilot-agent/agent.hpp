#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"
#include "lib/registry/client.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/socket.hpp"
#include "pilot-agent/bind_plan.hpp"
#include "pilot-agent/core/core.hpp"
#include "pilot-agent/image_files.hpp"
#include "pilot-agent/known_jobs.hpp"
#include "pilot-agent/loans.hpp"
#include "pilot-agent/peer_process.hpp"
#include "pilot-agent/pod_client.hpp"
#include "pilot-agent/settings.hpp"
#include "pilot-agent/starter.hpp"
#include "pilot-agent/status.hpp"
#include "pilot-agent/users_file.hpp"

namespace glidepod::agent {

// Of a pilot job: apptainer is found first.
void find_our_programs(std::vector<std::string>& environment);

// The fact of an Error of create(): another agent serves this pod.
struct ServedAlready {};

// Connects the core with the world: sockets, the API, the clock, the log.
class Agent {
 public:
  // Takes the pod's lock, listens at both sockets and asks the API for the pod. The loop must outlive it.
  static Result<std::unique_ptr<Agent>> create(Loop& loop, const Settings& settings);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Called once, as soon as jobs can come: the pod is known and a payload container has been switched.
  void on_ready(std::function<void()> handler);
  // Called once, when this pilot fails one job after another and takes no more; idle, when the last job that
  // it still has is over.
  struct GiveUpHandlers {
    std::function<void(const std::string& reason)> given_up;
    std::function<void()> idle;
  };
  void on_give_up(GiveUpHandlers handlers) { give_up_ = std::move(handlers); }
  // Called where the pod is such that no pilot can work in it.
  void on_unfit(std::function<void(const std::string& why)> handler) { unfit_ = std::move(handler); }
  // From now on it takes no job of HTCondor's; idle is called once, when no job runs any more.
  void withdraw(std::function<void()> idle);
  // Why it is not ready: for people.
  std::string state() const { return core_.snapshot().to_string(); }
  std::size_t containers() const { return core_.containers().size(); }
  // What runs in the pod beside pilot and payload, and may never end by itself.
  const std::vector<std::string>& others() const { return others_; }
  bool has_sidecars() const { return core_.containers().has_sidecars(); }
  bool expects_births() const { return core_.containers().expects_births(); }
  // From the order to end to the end by force, by the pod's spec once it is known.
  std::chrono::seconds pod_grace() const { return pod_grace_; }
  // Has the kubelet end the whole pod, as Failed: restartPolicy OnFailure would start a pilot that failed
  // again for ever, and what a service mesh adds would run on after one that did not. done is called once the
  // API has answered, or does not in time.
  void fail_pod(std::function<void()> done) { pod_client_->fail(std::move(done)); }
  // The pilot is about to end: refuses whoever has no job that runs, so that their starters say so while they
  // can.
  void drain();
  // No job will come any more: waits for every glue, so that finish() reaches it, and says which containers
  // have none after a while. The pod would go on for ever with one that starts later, or never.
  void leave(std::function<void(const std::vector<std::string>& missing)> done);
  // Whether this starter's job was launched, now or before.
  bool has_begun(pid_t starter) const { return begun_.contains(starter); }
  // Ends all jobs, sends every glue home and stops listening.
  void finish();
  // The same, and waits for the glues to be gone: done is told which containers have not ended after a while,
  // or were stopped by somebody else just then, so that the kubelet starts them again.
  void finish(std::function<void(const std::vector<std::string>& unended)> done);

 private:
  struct GlueLink {
    std::unique_ptr<wire::Channel> channel;
    bool said_hello = false;
    Fd process;            // a pidfd
    std::string instance;  // the id of its container; empty: it cannot be told
  };
  struct ClientLink {
    std::unique_ptr<wire::Channel> channel;
    wire::Peer peer;
    Fd process;                          // a pidfd
    bool binds = false;                  // for a job of its own user, which has not been answered yet
    std::string instance;                // of a pilot job's process: the id of its container
    bool pilot = false;                  // its job is one, and may ask for containers once it is launched
    std::optional<wire::Launch> launch;  // until it goes to glue
    std::optional<wire::SessionRequest> session;  // until it goes to glue
    std::vector<Fd> fds;
    bool asked = false;
    Loop::TimerId vacate_timer = 0;
  };

  Agent(Loop& loop, const Settings& settings);
  Result<void> start();
  void on_first_pod(const kube::Pod& pod);
  void end_leave();
  void end_finish();

  // agent_doors.cpp: who may connect, and what may be handed to a job
  Result<void> take_lock();
  void accept_glue();
  void accept_client();
  Result<void> judge(const ClientLink& link, const std::vector<Fd>& streams,
                     const std::string& sandbox) const;
  void refuse_streams(ClientId client, const Error& why);
  bool binds_already(ClientId client) const;
  void take_request(Request request);
  void take_image(Request request, const Result<void>& brought);
  void refuse_brought();
  // agent_inner.cpp: pilot jobs, and what their own jobs need
  Result<void> listen_to_pilots();
  void accept_pilot();
  Result<void> take_inner_bind(ClientId client, wire::Frame frame);
  Result<void> lend_to(ClientId client, Request request, const PilotJob& pilot);
  std::vector<uid_t> pilot_users(const PilotJob& pilot) const;
  void open_to_pilots();
  // Now or, where the client has a folder on loan, once that is back.
  void when_returned(ClientId client, std::function<void()> act);
  void open_link(Fd socket, wire::Peer peer, PeerProcess process, std::string instance, std::size_t longest);
  void glue_frame(GlueId glue, const wire::Frame& frame);
  void client_frame(ClientId client, wire::Frame frame);
  static Result<void> check_protocol(std::uint32_t theirs);
  Result<void> take_glue_frame(GlueId glue, const wire::Frame& frame);
  Result<void> take_bind(ClientId client, wire::Frame frame);
  void take_announcement(ClientId client, const wire::Bind& bind);
  void take_signal(ClientId client, int number);
  // agent_sessions.cpp
  Result<void> take_enter(ClientId client, wire::Frame frame);
  bool take_session_frame(GlueId glue, const wire::Frame& frame);
  void close_glue(GlueId glue, const Error& reason);
  void close_client(ClientId client);
  void note_begun(pid_t client);

  // Carries out what the core wants, until it wants nothing more.
  void pump();
  void run(const Patch& action) { pod_client_->run(action); }
  void run(const Resize& action) { pod_client_->run(action); }
  void run(const Want& action) { pod_client_->run(action); }
  void run(const Launch& action);
  void run(const Clear& action);
  void run(const AskImage& action);
  void run(const SignalJob& action);
  void run(const Answer& action);
  void run(const Fail& action);
  // agent_ends.cpp
  void run(const Vacate& action);
  void run(const Hold& action);
  // Has the starter hold the job; where it does not, unheld says what else.
  void hold(const Hold& action, std::function<void()> unheld);
  void on_held(ClientId client, const std::function<void()>& unheld);
  void run(const FinishGlue& action);
  void run(const DropGlue& action);
  void run(const KillGlue& action);
  void run(const SendBeat& action);
  void run(const JobOver& action);
  void run(const GiveUp& action);
  void run(const Note& action);
  void run(const OpenSession& action);
  void run(const CloseSession& action);
  void run(const Refuse& action);
  void fail(const Fail& action);
  void tell(ClientId client, wire::Fault fault, const std::string& message);
  // False, and said in the log, if the starter cannot be signalled.
  static bool asked_to_vacate(const Parent& starter, Vacating how);
  void adjust_timer();
  std::string user_name(uid_t uid);

  Loop& loop_;
  const Settings& settings_;
  Core core_;
  Shared shared_;
  std::vector<std::string> others_;
  std::chrono::seconds pod_grace_{30};
  uid_t trusted_uid_ = 0;
  KnownJobs jobs_{"", 0};
  std::unique_ptr<PodClient> pod_client_;
  registry::Client registry_;
  std::unique_ptr<ImageFiles> files_;
  std::map<ClientId, std::unique_ptr<registry::Client::Operation>> questions_;
  Fd lock_, glue_listener_, client_listener_, pilot_listener_;
  std::map<GlueId, GlueLink> glues_;
  std::map<ClientId, ClientLink> clients_;
  std::map<JobId, uid_t> pilots_;      // pilot jobs that run, and their users
  std::unique_ptr<Loans> loans_;       // with pilot_jobs
  std::map<ClientId, Child> holders_;  // hold-job, at work; may outlive the client
  std::uint64_t last_id_ = 0;
  std::map<uid_t, std::string> user_names_;
  std::set<pid_t> begun_;
  Loop::TimerId timer_ = 0;
  std::optional<Time> timer_due_;
  bool pumping_ = false;
  std::unique_ptr<StatusFile> status_;
  UsersFile users_;
  Core::Earlier earlier_agents_ = Core::Earlier::none;
  std::function<void()> ready_;
  GiveUpHandlers give_up_;
  std::function<void(const std::string&)> unfit_;
  std::function<void()> withdrawn_;
  std::function<void(const std::vector<std::string>& missing)> left_;
  std::function<void(const std::vector<std::string>& unended)> finished_;
  Loop::TimerId leave_timer_ = 0;
  bool given_up_ = false;
};

}  // namespace glidepod::agent
