#include "glue/serve.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "glue/no_files.hpp"
#include "glue/shm.hpp"

namespace glidepod::glue {

void take_over_signals() {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  // Without SA_NOCLDSTOP: that a traced child has stopped has to be heard of, too.
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
}

Result<int> serve(ServerOptions options, bool unprivileged) {
  if (unprivileged && ::geteuid() == 0)
    return error("glue runs as root here, and --unprivileged is for other users: leave it out");
  if (!unprivileged && ::geteuid() != 0)
    return error("glue must run as root, with CAP_SETUID, CAP_SETGID and CAP_KILL; or see --unprivileged");
  options.empty = image_has_no_file();
  // A process of the same user id elsewhere in the pod must not look into this one.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Error::system("become non-dumpable");
  // What a job leaves behind comes to this process, also where it is not PID 1.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Error::system("become a child subreaper");
  options.own_shm = has_own_shm(options.programs_directory);
  auto loop = TRY(Loop::create());
  Server server(loop, std::move(options));
  return server.run();
}

}  // namespace glidepod::glue
