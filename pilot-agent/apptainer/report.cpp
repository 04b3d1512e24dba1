#include "pilot-agent/apptainer/report.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/text.hpp"

namespace glidepod::apptainer {

std::string failure_line(wire::Verb verb, std::string_view image, std::string_view message) {
  std::string line = verb == wire::Verb::test ? "" : "apptainer: ";
  if (message.find(image) == std::string_view::npos) {
    line += image;
    line += ": ";
  }
  return line + one_line(message) + "\n";
}

void end_as(const ExitStatus& status) {
  if (status.how == ExitStatus::How::exited) ::_exit(status.number);
  // The job's core, if it left one, is in its directory; one of this process would take its place.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(status.number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, status.number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), status.number);
  ::_exit(128 + status.number);
}

}  // namespace glidepod::apptainer
