#include "pilot-agent/sandbox.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;
namespace fs = std::filesystem;

namespace {
struct Folder {
  TemporaryFolder own;
  const std::string& path = own.path;
  Folder() {
    fs::create_directories(path + "/scratch/dir_1");
    fs::create_directories(path + "/outside");
  }
  void write(const std::string& name, const std::string& text) {
    const Fd file = open_file(path + "/" + name, O_WRONLY | O_CREAT | O_TRUNC, 0644).value();
    REQUIRE(write_all(file, text).ok());
  }
  Result<SandboxJob> read(const std::string& sandbox, uid_t trusted = ::getuid()) const {
    return read_job(path + "/scratch", path + sandbox, trusted);
  }
};
}  // namespace

TEST_CASE("job ad: who a job is") {
  struct Row {
    const char* text;
    const char* owner;
    const char* id;
  };
  for (const Row& row :
       {Row{"User = \"alice@pool\"\nOwner = \"alice\"\nClusterId = 12\nProcId = 3\n", "alice@pool", "12.3"},
        Row{"owner = \"bob\"\nUIDDOMAIN = \"site\"\nclusterid=1\nprocid=0", "bob@site", "1.0"},
        Row{"Owner=\"bob\"", "bob", ""}, Row{"User = \"a\\\"b\"\nClusterId = 7", "a\"b", ""},
        Row{"User = strcat(\"x\", \"y\")\nOwner = 5\nClusterId = -1\nProcId = 0", "", ""},
        // No ad of HTCondor's: a string with line ends, made to look like more attributes.
        Row{"User = \"first\"\nZ = \"\nUser = \"second\"", "", ""},
        Row{"Requirements = User == \"mallory\"\nUserLog = \"x\"\nnoise\n= \"y\"\n", "", ""},
        Row{"User = \"\nOwner = \"", "", ""}, Row{"", "", ""}}) {
    CAPTURE(row.text);
    const auto identity = condor::parse_job_ad(row.text);
    CHECK(identity.owner == row.owner);
    CHECK(identity.id == row.id);
  }
}

TEST_CASE("job ad: the lines that say who a job is say the same") {
  const auto lines = [](std::string_view ad) { return condor::identity_lines(condor::parse_attributes(ad)); };
  const auto same =
      condor::parse_job_ad(lines("Z = \"x\"\nuser = \"alice@pool\"\nClusterId = 12\nProcId = "
                                 "3\nRequestMemory = 64\nKeepClaimIdle = 20\n"));
  CHECK(same.owner == "alice@pool");
  CHECK(same.id == "12.3");
  CHECK(same.memory_mib == 64);
  CHECK(same.keep_idle_s == 20);
  CHECK(condor::parse_job_ad(lines("User = \"first\"\nZ = \"\nUser = \"second\"")).owner.empty());
}

TEST_CASE("sandbox: the job's ad is read where it is to be trusted, and nowhere else") {
  Folder folder;
  folder.write("scratch/dir_1/.job.ad", "User = \"alice@pool\"\nClusterId = 1\nProcId = 2\n");
  folder.write("outside/.job.ad", "User = \"mallory\"\n");
  CHECK(folder.read("/scratch/dir_1").value().identity.owner == "alice@pool");
  CHECK(folder.read("/scratch/dir_1/").value().identity.id == "1.2");
  CHECK_FALSE(folder.read("/outside").ok());
  CHECK_FALSE(folder.read("/scratch/../outside").ok());
  CHECK_FALSE(folder.read("/scratchy").ok());
  CHECK_FALSE(read_job(folder.path + "/scratch", "", ::getuid()).ok());
  fs::create_directory_symlink("../outside", folder.path + "/scratch/link");
  CHECK_FALSE(folder.read("/scratch/link").ok());
  fs::create_directory(folder.path + "/scratch/dir_2");
  fs::create_symlink("../../outside/.job.ad", folder.path + "/scratch/dir_2/.job.ad");
  CHECK_FALSE(folder.read("/scratch/dir_2").ok());
  fs::create_directory(folder.path + "/scratch/dir_3");
  REQUIRE(::mkfifo((folder.path + "/scratch/dir_3/.job.ad").c_str(), 0600) == 0);
  CHECK_FALSE(folder.read("/scratch/dir_3").ok());
  CHECK_FALSE(folder.read("/scratch").ok());  // none there
  folder.write("scratch/dir_1/.job.ad", std::string((1 << 20) + 1, 'x'));
  CHECK_FALSE(folder.read("/scratch/dir_1").ok());
}

TEST_CASE("sandbox: an ad of anyone but root and HTCondor is not believed, the job's own user included") {
  if (::getuid() != 0) return;  // only root can make one
  Folder folder;
  folder.write("scratch/dir_1/.job.ad", "User = \"alice@pool\"\n");
  const std::string file = folder.path + "/scratch/dir_1/.job.ad";
  for (const auto& [owner, believed] :
       {std::pair(0, true), std::pair(20001, false), std::pair(54321, true), std::pair(20002, false)}) {
    REQUIRE(::chown(file.c_str(), static_cast<uid_t>(owner), 0) == 0);
    CHECK(folder.read("/scratch/dir_1", 54321).ok() == believed);
  }
}

TEST_CASE(
    "sandbox: a job's disk is its slot's, else what it asked for by a number, and its slot has a name") {
  Folder folder;
  folder.write("scratch/dir_1/.job.ad", "User = \"a@b\"\nRequestDisk = 1000\nRequestMemory = 5\n");
  CHECK(folder.read("/scratch/dir_1").value().disk_kib == 1000);
  folder.write("scratch/dir_1/.machine.ad",
               "Memory = 7\nName = \"slot1_1@h\"\nTotalDisk = 9\nDisk = 131072\n");
  CHECK(folder.read("/scratch/dir_1").value().slot == "slot1_1@h");
  CHECK(folder.read("/scratch/dir_1").value().disk_kib == 131072);
  CHECK(folder.read("/scratch/dir_1").value().slot_size == kube::Amount{0, 7 << 20});
  const auto told = condor::slot_lines("Cpus = 3\nMemory = 2048\nTotalMemory = 9\nName = \"s\"\nDisk = 1\n");
  CHECK(job_of("", told).slot_size == kube::Amount{3000, std::int64_t{2} << 30});
  // A pilot job takes the whole pod, whatever a line in another attribute of its ad says.
  const auto of_slot = [](const std::string& ad) { return job_of("", condor::slot_lines(ad)).whole; };
  CHECK(of_slot("Cpus = 8\nTotalCpus = 8.0\n"));
  CHECK(of_slot("Cpus = 8\nTotalCpus = 8\n"));
  CHECK_FALSE(of_slot("Cpus = 7\nTotalCpus = 8.0\n"));
  CHECK(of_slot("Cpus = 1\n"));
  CHECK(of_slot(""));
  CHECK(job_of("", "Cpus = 1\nMemory = 9223372036854775807\n").slot_size == kube::Amount{});
  CHECK(folder.read("/scratch/dir_1").value().identity.request_disk_kib == 1000);
  CHECK(folder.read("/scratch/dir_1").value().identity.memory_mib == 5);
  folder.write("scratch/dir_1/.job.ad", "RequestDisk = DiskUsage\n");
  CHECK(folder.read("/scratch/dir_1").value().disk_kib == 131072);
  folder.write("scratch/dir_1/.machine.ad", "Disk = 1\nDisk = 999\n");  // nobody's but a forger's
  CHECK(folder.read("/scratch/dir_1").value().disk_kib == 0);
  fs::remove(folder.path + "/scratch/dir_1/.machine.ad");
  fs::create_symlink("../../outside/.machine.ad", folder.path + "/scratch/dir_1/.machine.ad");
  folder.write("outside/.machine.ad", "Disk = 5\n");
  CHECK(folder.read("/scratch/dir_1").value().disk_kib == 0);
}
