#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/wire/codec.hpp"

namespace glidepod::wire {

// The version of the protocols. Raise it with every change of a message. Hello, Bind and Enter carry it, and
// a peer with another number is refused.
constexpr std::uint32_t k_protocol = 14;

enum class Type : std::uint32_t {
  // glue -> agent
  hello = 1,
  started,
  job_ended,
  launch_failed,
  goodbye,
  session_started,
  session_ended,
  session_failed,
  exited,
  // agent -> glue
  launch = 32,
  signal,
  finish,
  open_session,
  close_session,
  clear,
  // both ways: the agent sends it, and glue sends it back
  beat,
  // apptainer -> agent; it also sends signal, with job 0
  bind = 64,
  enter,
  // agent -> apptainer
  ended = 96,
  failed,
  entered,
  // agent -> image-store, which answers with the second of these or with failed
  store_image = 128,
  image_stored,
};

// Who has to act after a failure. See docs/reference.md, "Whose fault".
enum class Fault : std::uint8_t {
  user,
  infrastructure,
  doubt,  // the image fails on this node, and nobody knows why: the job tries another node first
};

struct Limit {
  std::int32_t resource = 0;  // RLIMIT_*
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

// A symbolic link, by which the job finds its files where HTCondor said they are.
struct Link {
  std::string path;    // absolute, in the payload container
  std::string target;  // absolute, inside the shared volume
};

struct Hello {
  static constexpr Type k_type = Type::hello;
  std::uint32_t protocol = k_protocol;
  std::string container;  // the payload container's name in the pod
  bool empty = false;     // its image has no file: the name is that of an artifact, say
};

// Starts a job's main process. The message carries the process's stdin, stdout and stderr, then the program
// if program_attached.
struct Launch {
  static constexpr Type k_type = Type::launch;
  std::uint64_t job = 0;  // chosen by the agent, never 0, never reused on one connection
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // KEY=VALUE; these win over the image's own
  std::string cwd;
  std::string home;
  std::string user_name;  // for the image's /etc/passwd, if that does not know the uid
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::uint32_t umask = 022;
  std::vector<Limit> limits;
  std::vector<Link> links;
  std::string launched_marker;  // a file that the job's user creates just before exec; empty: none
  bool program_attached = false;
  bool runscript = false;  // argv[0] is nothing: the image runs by itself, as Apptainer would start it
  std::string about;       // key=value words about the job for the container's log; may be empty
};

// Removes what a job of this user left in shared places when its glue was killed. The user must have no other
// job in the pod. Glue answers as after a launch, by JobEnded or LaunchFailed. Before each launch, glue does
// this by itself.
struct Clear {
  static constexpr Type k_type = Type::clear;
  std::uint64_t job = 0;  // a number as for a launch
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

struct Started {
  static constexpr Type k_type = Type::started;
  std::uint64_t job = 0;
  std::int32_t pid = 0;  // in the pod's PID namespace
};

// Sent as soon as the main process has ended. From here on it is known how the job ended, whatever happens to
// glue. JobEnded follows with the same status.
struct Exited {
  static constexpr Type k_type = Type::exited;
  std::uint64_t job = 0;
  ExitStatus status;
  std::int64_t ended_ns = 0;  // CLOCK_REALTIME
  // The container's memory. These three are 0 if its control group cannot be read.
  std::uint32_t oom_kills = 0;        // processes of this container that the kernel killed since the launch
  std::int64_t memory_limit_kib = 0;  // 0: no limit
  std::int64_t memory_peak_kib = 0;   // the highest use without page cache; 0: not known
  std::int64_t max_rss_kib = 0;  // of the job's largest process that has ended: the job used at least this
};

// Sent when nothing of the job is left: no process, no file, no IPC object.
struct JobEnded {
  static constexpr Type k_type = Type::job_ended;
  std::uint64_t job = 0;
  ExitStatus status;
  std::int64_t user_microseconds = 0;  // of all processes of the job that were reaped
  std::int64_t system_microseconds = 0;
  std::int64_t max_rss_kib = 0;
  std::int64_t started_ns = 0;  // CLOCK_REALTIME
  std::int64_t ended_ns = 0;
  std::uint32_t processes_killed = 0;
  std::uint32_t files_removed = 0;
  bool clean = true;  // false: something could not be ended or removed; the container must not be used again
};

// The main process could not be started. No instruction of the job ran.
struct LaunchFailed {
  static constexpr Type k_type = Type::launch_failed;
  std::uint64_t job = 0;
  Fault fault = Fault::infrastructure;
  std::string message;
  bool left = false;  // the cause is what an earlier job of this user left, so the pod is not at fault
};

// The container ends because it was told to (SIGTERM). The next Hello with this name is from a new container.
struct Goodbye {
  static constexpr Type k_type = Type::goodbye;
  std::string reason;
};

// SIGKILL ends every process of the job. SIGSTOP, SIGTSTP and SIGCONT reach every process. Other signals
// reach the main process.
struct Signal {
  static constexpr Type k_type = Type::signal;
  std::uint64_t job = 0;
  std::int32_t number = 0;
};

// Asks whether glue still answers. The agent sends it while a job runs or ends. Glue sends the same number
// back at once, with the fields below.
struct Beat {
  static constexpr Type k_type = Type::beat;
  std::uint64_t number = 0;
  std::int64_t memory_kib = 0;  // the container's memory, without page cache; 0: not known
  std::int64_t disk_kib = 0;    // the job's files in /tmp and /var/tmp, by the last count
  bool disk_complete = true;    // false: there is at least this much
};

// The pilot is done: glue ends with success.
struct Finish {
  static constexpr Type k_type = Type::finish;
};

enum class Verb : std::uint8_t {
  exec,
  run,
  test,
  announce,  // the job will ask for its image later; answered at once
};

// Asks to run something in a payload container. The message carries stdin, stdout and stderr, then the
// program if program_attached.
struct Bind {
  static constexpr Type k_type = Type::bind;
  std::uint32_t protocol = k_protocol;
  Verb verb = Verb::exec;
  std::string image;  // as on the command line
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // for the container: KEY=VALUE, without the prefix APPTAINERENV_
  std::string cwd;
  std::string home;
  std::string work_directory;      // -W: the job's sandbox under HTCondor
  std::vector<std::string> binds;  // src[:dst[:options]]
  std::uint32_t umask = 022;
  std::vector<Limit> limits;
  std::string launched_marker;
  bool program_attached =
      false;  // HTCondor's probe: the program is in the pilot's own file system, not in an image
  std::string job_ad, machine_ad;  // from a hook: lines of the ads that the starter gave it
};

// Where a job ran, and how it got its container.
struct Ran {
  std::string container;  // empty: it ran nowhere, or the container is not known
  std::string digest;     // "sha256:..." of the content that ran; empty: the pod's status did not tell it
  std::string how;        // warm, fresh, switched or pulled
  std::uint64_t bind_microseconds = 0;  // from the request for a container to the launch
};

struct Ended {
  static constexpr Type k_type = Type::ended;
  ExitStatus status;
  Ran ran;
};

struct Failed {
  static constexpr Type k_type = Type::failed;
  Fault fault = Fault::infrastructure;
  std::string message;
};

// A process beside a job's main process, with the same user, groups, limits, environment and folder
// (condor_ssh_to_job).
struct SessionRequest {
  std::string command;                   // for /bin/sh -c; empty: a shell
  std::vector<std::string> environment;  // KEY=VALUE; these win over the job's
  bool terminal = false;  // true: a new terminal of the payload container; false: the attached descriptors
  std::string modes;      // the terminal's struct termios; empty: the kernel's default
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
};

// Opens a session beside the job with this sandbox. The message carries stdin, stdout and stderr, unless the
// session wants a terminal.
struct Enter {
  static constexpr Type k_type = Type::enter;
  enum class What : std::uint8_t {
    session,
    watch,  // no session and no descriptors: the client is only told when the job has ended
  };
  std::uint32_t protocol = k_protocol;
  What what = What::session;
  std::string sandbox;
  SessionRequest request;
};

// The session's program runs. The message carries the terminal's master side if a terminal was asked for.
struct Entered {
  static constexpr Type k_type = Type::entered;
};

// The message carries the same descriptors as Enter.
struct OpenSession {
  static constexpr Type k_type = Type::open_session;
  std::uint64_t job = 0;
  std::uint64_t session = 0;  // chosen by the agent, never 0, never reused on one connection
  SessionRequest request;
};

// Ends the session and every process that it has left.
struct CloseSession {
  static constexpr Type k_type = Type::close_session;
  std::uint64_t job = 0;
  std::uint64_t session = 0;
};

// The message carries the terminal's master side if a terminal was asked for.
struct SessionStarted {
  static constexpr Type k_type = Type::session_started;
  std::uint64_t job = 0;
  std::uint64_t session = 0;
};

// Sent when no process of the session is left. It is not sent for a session that ends with its job.
struct SessionEnded {
  static constexpr Type k_type = Type::session_ended;
  std::uint64_t job = 0;
  std::uint64_t session = 0;
  ExitStatus status;
};

struct SessionFailed {
  static constexpr Type k_type = Type::session_failed;
  std::uint64_t job = 0;
  std::uint64_t session = 0;
  Fault fault = Fault::infrastructure;
  std::string message;
};

// Asks for an image that is made of an image file. The message carries the file, open for reading.
struct StoreImage {
  static constexpr Type k_type = Type::store_image;
  std::uint32_t protocol = k_protocol;
  std::string owner;  // who brought the file, for the log
};

struct ImageStored {
  static constexpr Type k_type = Type::image_stored;
  std::string image;  // as a pod names it, with a digest
};

// The fields of every message and part, in wire order.
template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

void fields(auto& io, Is<ExitStatus> auto& m) {
  io(m.how, m.number, m.core);
}
void fields(auto& io, Is<Limit> auto& m) {
  io(m.resource, m.soft, m.hard);
}
void fields(auto& io, Is<Link> auto& m) {
  io(m.path, m.target);
}
void fields(auto& io, Is<Hello> auto& m) {
  io(m.protocol, m.container, m.empty);
}
void fields(auto& io, Is<Launch> auto& m) {
  io(m.job, m.argv, m.environment, m.cwd, m.home, m.user_name, m.uid, m.gid, m.groups, m.umask, m.limits,
     m.links, m.launched_marker, m.program_attached, m.runscript, m.about);
}
void fields(auto& io, Is<Clear> auto& m) {
  io(m.job, m.uid, m.gid);
}
void fields(auto& io, Is<Started> auto& m) {
  io(m.job, m.pid);
}
void fields(auto& io, Is<Exited> auto& m) {
  io(m.job, m.status, m.ended_ns, m.oom_kills, m.memory_limit_kib, m.memory_peak_kib, m.max_rss_kib);
}
void fields(auto& io, Is<Beat> auto& m) {
  io(m.number, m.memory_kib, m.disk_kib, m.disk_complete);
}
void fields(auto& io, Is<JobEnded> auto& m) {
  io(m.job, m.status, m.user_microseconds, m.system_microseconds, m.max_rss_kib, m.started_ns, m.ended_ns,
     m.processes_killed, m.files_removed, m.clean);
}
void fields(auto& io, Is<LaunchFailed> auto& m) {
  io(m.job, m.fault, m.message, m.left);
}
void fields(auto& io, Is<Goodbye> auto& m) {
  io(m.reason);
}
void fields(auto& io, Is<Signal> auto& m) {
  io(m.job, m.number);
}
void fields(auto&, Is<Finish> auto&) {}
void fields(auto& io, Is<Bind> auto& m) {
  io(m.protocol, m.verb, m.image, m.argv, m.environment, m.cwd, m.home, m.work_directory, m.binds, m.umask,
     m.limits, m.launched_marker, m.program_attached, m.job_ad, m.machine_ad);
}
void fields(auto& io, Is<Ran> auto& m) {
  io(m.container, m.digest, m.how, m.bind_microseconds);
}
void fields(auto& io, Is<Ended> auto& m) {
  io(m.status, m.ran);
}
void fields(auto& io, Is<Failed> auto& m) {
  io(m.fault, m.message);
}
void fields(auto& io, Is<SessionRequest> auto& m) {
  io(m.command, m.environment, m.terminal, m.modes, m.rows, m.columns);
}
void fields(auto& io, Is<Enter> auto& m) {
  io(m.protocol, m.what, m.sandbox, m.request);
}
void fields(auto&, Is<Entered> auto&) {}
void fields(auto& io, Is<OpenSession> auto& m) {
  io(m.job, m.session, m.request);
}
void fields(auto& io, Is<CloseSession> auto& m) {
  io(m.job, m.session);
}
void fields(auto& io, Is<SessionStarted> auto& m) {
  io(m.job, m.session);
}
void fields(auto& io, Is<SessionEnded> auto& m) {
  io(m.job, m.session, m.status);
}
void fields(auto& io, Is<SessionFailed> auto& m) {
  io(m.job, m.session, m.fault, m.message);
}
void fields(auto& io, Is<StoreImage> auto& m) {
  io(m.protocol, m.owner);
}
void fields(auto& io, Is<ImageStored> auto& m) {
  io(m.image);
}

}  // namespace glidepod::wire
