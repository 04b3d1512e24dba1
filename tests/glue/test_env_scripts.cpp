#include "glue/env_scripts.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "lib/base/beneath.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using Strings = std::vector<std::string>;

namespace {
// The value of A once this was read where A is "one", B "b c" and PATH "/bin".
std::string value(const std::string& script) {
  for (const auto& entry : with_env_scripts({"A=one", "B=b c", "PATH=/bin"}, {script}).environment)
    if (entry.starts_with("A=")) return entry.substr(2);
  return "(none)";
}
}  // namespace

TEST_CASE("env scripts: what is exported is in the environment, in place of what was there") {
  CHECK(with_env_scripts({"PATH=/bin", "A=1"}, {"#!/bin/sh\nexport PATH=/opt/t/bin:$PATH\n\nexport TOOL=1\n"})
            .environment == Strings{"PATH=/opt/t/bin:/bin", "A=1", "TOOL=1"});
  // By a later script of what an earlier one has set; several in a line; first set, then exported.
  CHECK(with_env_scripts({}, {"export A=1 B=2", "C=\"$A$B\"\n  export C\t# so\nD=4\n"}).environment ==
        Strings{"A=1", "B=2", "C=12"});
  CHECK(with_env_scripts({"A=1"}, {"A=2\n"}).environment == Strings{"A=2"});
  CHECK(with_env_scripts({"A=1"}, {}).environment == Strings{"A=1"});
}

TEST_CASE("env scripts: values as sh has them") {
  CHECK(value("A=x") == "x");
  CHECK(value("A=") == "");
  CHECK(value("A=x\\ y") == "x y");
  CHECK(value("A='$B \"x\" \\y'") == "$B \"x\" \\y");
  CHECK(value(R"(A="x $B 'y' \$B \q \"")") == R"(x b c 'y' $B \q ")");
  CHECK(value("A=/x:${B}y'z'\"$PATH\"") == "/x:b cyz/bin");
  CHECK(value("A=$Nothing.$B.") == ".b c.");
  CHECK(value("A=a=b#c") == "a=b#c");
  CHECK(value("A=${A:-other}") == "one");
  CHECK(value("A=${Z:-other}${Z-$B}") == "otherb c");
  CHECK(value("A=\"${LANG:-\"C.UTF-8\"}\"") == "C.UTF-8");
  CHECK(value("A=\"${A:-\"C.UTF-8\"}\"") == "one");
  CHECK(value("Z=\nA=${Z:-empty}${Z-unset}${Z:+x}${Z+y}") == "emptyy");
  CHECK(value("A=/lib${A:+:$A}") == "/lib:one");
}

TEST_CASE("env scripts: a script is read up to what takes a shell") {
  for (const auto* line :
       {"A=$(id)", "A=`id`", "A=x; B=y",      "A=x && true",  "A=x true", "if true; then A=x; fi",
        "A=\"x",   "A='x",   "A=${B%c}",      "A=${B",        "A=~/x",    "A=$1",
        "A=$",     "A=x\\",  "A=x>y",         "export -n A",  "1=x",      "=x",
        "A+=x",    "A =x",   "module load x", "export A-B=x", "{",        "unset A"}) {
    CAPTURE(line);
    CHECK(value(std::string(line) + "\nA=later") == "one");
    CHECK(value("A=before\n" + std::string(line) + "\nA=later") == "before");
    // The next script is another one.
    CHECK(with_env_scripts({"A=1"}, {line, "export C=3"}).environment == Strings{"A=1", "C=3"});
  }
  CHECK(value(std::string("A=x\0y", 5)) == "one");
}

TEST_CASE("env scripts: no script makes the environment too large") {
  std::string script = "A=0123456789\n";
  for (int i = 0; i < 40; ++i) script += "A=$A$A\n";
  CHECK(value(script).size() < k_most_added);
  CHECK(value("A=" + std::string(100'000, 'x')) == "one");
  std::string deep = "A=";
  for (int i = 0; i < 10'000; ++i) deep += "${Z:-";
  CHECK(value(deep) == "one");
}

TEST_CASE("env scripts: files of the image, by name, and nothing else that is there") {
  TemporaryFolder folder;
  const auto env = folder.path + "/.singularity.d/env";
  const auto root = open_tree(folder.path);
  CHECK(read_env_scripts(root).empty());
  REQUIRE(::mkdir((folder.path + "/.singularity.d").c_str(), 0755) == 0);
  REQUIRE(::mkdir(env.c_str(), 0755) == 0);
  for (const auto& [name, text] : {std::pair{"91-b.sh", "B"}, {"10-a.sh", "A"}, {"README", "no"}})
    std::ofstream(env + "/" + name) << text;
  REQUIRE(::mkfifo((env + "/20-fifo.sh").c_str(), 0600) == 0);
  REQUIRE(::mkdir((env + "/30-folder.sh").c_str(), 0700) == 0);
  REQUIRE(::symlink("/etc/passwd", (env + "/40-out.sh").c_str()) == 0);
  CHECK(read_env_scripts(root) == Strings{"A", "B"});
}
