#include "glue/links.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::glue;

TEST_CASE("links: a plain path has no way to mean another place") {
  for (const char* path : {"/a", "/a/b", "/a.b/..c/...", "/a b"}) CHECK(is_plain_path(path));
  for (const char* path : {"", "/", "a", "a/b", "//a", "/a//b", "/a/", "/a/.", "/a/..", "/./a", "/../a"})
    CHECK_FALSE(is_plain_path(path));
  CHECK_FALSE(is_plain_path(std::string("/a\0b", 4)));
  CHECK_FALSE(is_plain_path("/" + std::string(5000, 'a')));
}

TEST_CASE("links: inside is by whole names") {
  CHECK(is_inside("/a/b", "/a"));
  CHECK(is_inside("/a", "/a"));
  CHECK_FALSE(is_inside("/ab", "/a"));
  CHECK_FALSE(is_inside("/", "/a"));
}

TEST_CASE("links: only into the scratch, and never from where system or pod live") {
  const std::string scratch = "/glidepod/scratch";
  const std::string sandbox = scratch + "/dir_1";
  for (const char* path : {"/srv", "/data/set", "/tmp", "/var/tmp", "/home/user", "/usrlocal", "/cvmfs"})
    CHECK(check_link({path, sandbox}, scratch).ok());
  for (const char* path :
       {"/", "/bin", "/bin/x", "/usr", "/usr/local/lib", "/etc", "/etc/passwd", "/proc/self", "/sys/fs",
        "/dev/shm", "/glidepod", "/glidepod/run/x", "/glidepod/scratch/dir_1/x", "/lib64", "/run/x",
        "/var/run", "relative", "/srv/../etc", "/srv/"})
    CHECK_FALSE(check_link({path, sandbox}, scratch).ok());
  for (const char* target : {"/", "/etc", "/glidepod", "/glidepod/run", "/glidepod/scratchy", "dir_1", "",
                             "/glidepod/scratch/../run", "/glidepod/scratch/dir_1/"})
    CHECK_FALSE(check_link({"/srv", target}, scratch).ok());
  // The scratch may be configured to be elsewhere; no link into it either.
  CHECK_FALSE(check_link({"/sandboxes/dir_1/x", "/sandboxes/dir_1"}, "/sandboxes").ok());
}
