#include "glue/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace glidepod::glue;
using Strings = std::vector<std::string>;

namespace {
Strings merge(std::vector<const char*> own, const Strings& job, const Identity& identity = {}) {
  own.push_back(nullptr);
  return merge_environment(own.data(), job, identity);
}
}  // namespace

TEST_CASE("environment: the job's wins over the image's") {
  CHECK(merge({"A=1", "B=2", "PATH=/bin"}, {"B=3", "C=4"}) == Strings{"A=1", "B=3", "C=4", "PATH=/bin"});
  CHECK(merge({"PATH=/bin"}, {"PATH=/mine"}) == Strings{"PATH=/mine"});
}

TEST_CASE("environment: what Kubernetes and Glidepod put there is not the job's") {
  CHECK(merge({"KUBERNETES_PORT=x", "KUBERNETES_SERVICE_HOST=h", "GLIDEPOD_TOKEN=t", "MY_DB_SERVICE_HOST=h",
               "MY_DB_SERVICE_PORT=1", "MY_DB_SERVICE_PORT_HTTP=1", "MY_DB_PORT=tcp://h:1",
               "MY_DB_PORT_1_TCP=t", "MY_DB_PORT_1_TCP_ADDR=h", "MY_DB_PORT_53_UDP_PROTO=udp", "PATH=/bin"},
              {}) == Strings{"PATH=/bin"});
  // Without such a service the same kind of name is the image's own.
  const Strings kept = {"MYSQL_PORT=3306", "X_SERVICE_HOST=only", "MY_DB_PORTABLE=1", "Y_PORT_NUMBER_TCP=no",
                        "PORT=80",         "SERVICE_HOST=a",      "PATH=/bin"};
  std::vector<const char*> own;
  for (const auto& entry : kept) own.push_back(entry.c_str());
  CHECK(merge(own, {}) == kept);
  // What the job's owner asks for is given, whatever its name.
  CHECK(merge({"PATH=/bin"}, {"KUBERNETES_PORT=mine"}) == Strings{"KUBERNETES_PORT=mine", "PATH=/bin"});
}

TEST_CASE("environment: PATH has a default, the user's variables are the user's") {
  CHECK(merge({}, {}) == Strings{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"});
  CHECK(merge({"HOME=/root", "USER=root", "PWD=/", "PATH=/bin"}, {},
              {.home = "/h", .user_name = "slot1", .cwd = "/w"}) ==
        Strings{"PATH=/bin", "HOME=/h", "USER=slot1", "LOGNAME=slot1", "PWD=/w"});
  CHECK(merge({"PATH=/bin"}, {"HOME=/mine", "USER=me"}, {.home = "/h", .user_name = "slot1", .cwd = "/w"}) ==
        Strings{"HOME=/mine", "USER=me", "PATH=/bin", "LOGNAME=slot1", "PWD=/w"});
  CHECK(merge({"HOME=/image", "PATH=/bin"}, {}) == Strings{"HOME=/image", "PATH=/bin"});
}

TEST_CASE("environment: a job can extend the image's PATH") {
  CHECK(merge({"PATH=/bin"}, {"SING_USER_DEFINED_PREPEND_PATH=/a:/b", "SING_USER_DEFINED_APPEND_PATH=/z"}) ==
        Strings{"PATH=/a:/b:/bin:/z"});
  CHECK(merge({"PATH=/bin"}, {"SING_USER_DEFINED_APPEND_PATH=/z"}) == Strings{"PATH=/bin:/z"});
  CHECK(merge({}, {"SING_USER_DEFINED_PREPEND_PATH=/a"}) ==
        Strings{"PATH=/a:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"});
  CHECK(merge({"PATH="}, {"SING_USER_DEFINED_PREPEND_PATH=/a"}) == Strings{"PATH=/a"});
}

TEST_CASE("environment: a program is looked for as execvp does") {
  CHECK(program_candidates("/bin/a", "/x") == Strings{"/bin/a"});
  CHECK(program_candidates("./a", "/x") == Strings{"./a"});
  CHECK(program_candidates("a", "/x:/y") == Strings{"/x/a", "/y/a"});
  CHECK(program_candidates("a", "/x::") == Strings{"/x/a", "./a", "./a"});
  CHECK(program_candidates("a", "").size() == 6);
  CHECK(variable({"PATHX=1", "PATH=/y", "PATH=/z"}, "PATH") == "/y");
  CHECK(variable({}, "PATH") == "");
}
