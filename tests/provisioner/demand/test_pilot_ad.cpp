#include "provisioner/demand/pilot_ad.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/ad_stream.hpp"
#include "lib/condor/evaluator.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

const PilotAttributes k_ours{.known = true, .more = {}};
// The OSPool's submit file, with what condor_submit adds.
constexpr const char* k_ospool =
    R"(((HAS_SINGULARITY == True) && (OSGVO_OS_STRING == "RHEL 9") && (Arch == "X86_64")) && )"
    R"((TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory) && )"
    R"((TARGET.HasFileTransfer))";

condor::Ad job_that(std::string_view requirements) {
  condor::Ad job;
  job.set_expression("Requirements", std::string(requirements));
  job.set("RequestCpus", condor::Value::of(std::int64_t{1}));
  job.set("RequestMemory", condor::Value::of(std::int64_t{64}));
  job.set("RequestDisk", condor::Value::of(std::int64_t{102400}));
  job.set("Owner", condor::Value::of(std::string("sky")));
  job.set("Six", condor::Value::of(std::int64_t{6}));
  return job;
}

// The clause that no pilot meets, and why; empty: it may be met.
std::string unmet(std::string_view requirements, const PilotAttributes& pilots = k_ours,
                  const Group& of = Group{}) {
  const auto found = unmet_by_pilots(job_that(requirements), of, pilots);
  return found ? fmt::format("{}: {}", found->clause, found->why) : "";
}

// As condor_status -json printed it: a real pilot of this project, with HTCondor 23.9.
condor::Ad real_pilot() {
  const auto text = read_file(GLIDEPOD_PILOT_AD).value();
  const auto begin = text.find('{');
  auto ad = condor::ad_from_json(std::string_view(text).substr(begin, text.rfind('}') + 1 - begin));
  REQUIRE(ad.ok());
  return ad.value();
}

}  // namespace

TEST_CASE("pilot ad: the OSPool's requirements are met by no pilot, for want of OSGVO_OS_STRING alone") {
  CHECK(unmet(k_ospool) == R"(OSGVO_OS_STRING == "RHEL 9": pilots have no OSGVO_OS_STRING)");
  const auto found = unmet_by_pilots(job_that(k_ospool), Group{}, k_ours);
  REQUIRE(found);
  CHECK(found->lacks == std::vector<std::string>{"OSGVO_OS_STRING"});
  CHECK(unmet("HAS_SINGULARITY == True").empty());
  CHECK(unmet("TARGET.HAS_SINGULARITY =?= True").empty());
  CHECK(unmet("HAS_CVMFS_LIGO_CONTAINERS =?= TRUE") ==
        "HAS_CVMFS_LIGO_CONTAINERS =?= TRUE: pilots have no HAS_CVMFS_LIGO_CONTAINERS");
}

TEST_CASE("pilot ad: what may be there decides nothing, nor what cannot be evaluated") {
  for (const auto* requirements : {"TARGET.Arch == \"ppc64le\"",
                                   "TARGET.OpSysMajorVer == 7",
                                   "Machine == \"nowhere\"",
                                   "stringListMember(\"osdf\", TARGET.HasFileTransferPluginMethods)",
                                   "time() > TARGET.NoSuch",
                                   "regexp(\"x\", TARGET.K8SPodName)",
                                   "TARGET.has_avx2",
                                   "TARGET.HasDocker",
                                   "TARGET.Disk > 999999999",
                                   "TARGET.NoSuch.Part",
                                   "TARGET.Memory * 1024 >= 99999999",
                                   "TARGET.GlidepodNews =?= 5",
                                   "5 +",
                                   "",
                                   "MY.ServerTime > 5",
                                   "MY.SubmitterUserPrio < 5",
                                   "TARGET.NoSuch + \"",
                                   "{ 1 }",
                                   "\"text\"",
                                   "1 / 0",
                                   "true",
                                   "5",
                                   "TARGET.Memory > DiskUsage"}) {
    CAPTURE(requirements);
    CHECK(unmet(requirements).empty());
  }
  CHECK_FALSE(unmet_by_pilots(condor::Ad(), Group{}, k_ours));
}

TEST_CASE("pilot ad: three values, as HTCondor has them") {
  // Undefined is not true, and a clause that asks for it is.
  CHECK_FALSE(unmet("TARGET.NoSuch").empty());
  CHECK_FALSE(unmet("TARGET.NoSuch > 5").empty());
  CHECK_FALSE(unmet("!TARGET.NoSuch").empty());
  CHECK_FALSE(unmet("NoSuch =?= true").empty());
  CHECK_FALSE(unmet("isUndefined(TARGET.NoSuch) == false").empty());
  CHECK(unmet("TARGET.NoSuch =?= undefined").empty());
  CHECK(unmet("TARGET.NoSuch =!= true").empty());
  CHECK(unmet("isUndefined(TARGET.NoSuch)").empty());
  CHECK(unmet("ifThenElse(isUndefined(TARGET.NoSuch), true, TARGET.NoSuch > 5)").empty());
  CHECK(unmet("TARGET.NoSuch ?: true").empty());
  CHECK_FALSE(unmet("TARGET.NoSuch ?: false").empty());
  CHECK_FALSE(unmet("false").empty());
  CHECK_FALSE(unmet("0").empty());
  // Of alternatives one is enough, also one that is not known.
  CHECK(unmet("TARGET.NoSuch || TARGET.Arch == \"X86_64\"").empty());
  CHECK(unmet("TARGET.NoSuch || Six == 6").empty());
  CHECK_FALSE(unmet("TARGET.NoSuch || TARGET.Neither || Six == 7").empty());
  CHECK_FALSE(unmet("TARGET.NoSuch || (TARGET.Arch == \"X86_64\" && TARGET.Neither)").empty());
  CHECK(unmet("(TARGET.NoSuch || TARGET.Arch == \"X86_64\") && Six == 6").empty());
  CHECK(unmet("!(TARGET.NoSuch && TARGET.Arch == \"X86_64\")").empty());
  CHECK(unmet("TARGET.Arch == \"X86_64\" ? true : TARGET.NoSuch").empty());
  // The job's own comes first, but for TARGET's.
  CHECK(unmet("Six == 6").empty());
  CHECK(unmet("Six == 7") == "Six == 7: it is not true of the job itself");
  CHECK(unmet("TARGET.Six == 6") == "TARGET.Six == 6: pilots have no Six");
  CHECK(unmet("MY.NoSuch =?= undefined").empty());
}

TEST_CASE("pilot ad: a pod of the job's size has this size, or less where others use it") {
  CHECK(unmet("TARGET.TotalSlotMemory > 6000") ==
        "TARGET.TotalSlotMemory > 6000: its pilot has TotalSlotMemory of at most 4096");
  CHECK(unmet("TARGET.TotalMemory == 4096").empty());
  CHECK(unmet("TARGET.TotalMemory < 4096") == "TARGET.TotalMemory < 4096: its pilot has TotalMemory = 4096");
  CHECK(unmet("TARGET.TotalSlotMemory < 4096").empty());
  CHECK(unmet("TotalCpus >= 2") == "TotalCpus >= 2: its pilot has TotalCpus = 1");
  CHECK(unmet("TARGET.Cpus >= 4") == "TARGET.Cpus >= 4: its pilot has Cpus of at most 1");
  CHECK(unmet("Memory > 4096") == "Memory > 4096: its pilot has Memory of at most 4096");
  CHECK(unmet("Memory >= 4096").empty());
  CHECK(unmet("Memory > 4095").empty());
  CHECK(unmet("Memory >= 4097") == "Memory >= 4097: its pilot has Memory of at most 4096");
  CHECK(unmet("Cpus >= 2", k_ours, group(2)).empty());
  CHECK_FALSE(unmet("Cpus >= 2 * 2", k_ours, group(2)).empty());
  // Less may be there than was there first.
  CHECK(unmet("Memory < 1000").empty());
  CHECK(unmet("Memory == 128").empty());
  CHECK(unmet("(Memory > 9000) == false").empty());
  CHECK(unmet("Memory > 9000 == false").empty());
  CHECK(unmet("Memory > 9000 || true").empty());
  CHECK(unmet("TARGET.GPUs >= 1") == "TARGET.GPUs >= 1: its pilot has GPUs of at most 0");
  CHECK(unmet("TARGET.GPUs >= 0").empty());
  CHECK(unmet("TARGET.OpSys == \"WINDOWS\"") == "TARGET.OpSys == \"WINDOWS\": its pilot has OpSys = LINUX");
  CHECK(unmet("TARGET.OpSys == \"linux\"").empty());
  // A request that has no number: no slot takes such a job.
  CHECK_FALSE(unmet("TARGET.Memory >= NoNumber").empty());
}

TEST_CASE("pilot ad: what an access point rounds decides nothing") {
  auto job = job_that("TARGET.Memory > RequestMemory");
  job.set_expression("RequestMemory", "ImageSize / 1024");
  job.set("ImageSize", condor::Value::of(std::int64_t{5'000'000}));
  CHECK_FALSE(unmet_by_pilots(job, Group{}, k_ours));
  job.set("ImageSize", condor::Value::undefined());
  job.set("RequestMemory", condor::Value::of(std::int64_t{5000}));
  CHECK(unmet_by_pilots(job, Group{}, k_ours));
}

TEST_CASE("pilot ad: attributes that the settings name may be there") {
  CHECK(unmet(k_ospool, {.known = true, .more = {"osgvo_os_string"}}).empty());
  CHECK(unmet(k_ospool, {.known = true, .more = {"OSGVO_*"}}).empty());
  CHECK_FALSE(unmet(k_ospool, {.known = true, .more = {"OSGVO_OS"}}).empty());
  CHECK_FALSE(unmet(k_ospool, {.known = true, .more = {"SiteName", "OSG_*"}}).empty());
  CHECK(unmet(k_ospool, {.known = false, .more = {}}).empty());
  CHECK(unmet("false", {.known = false, .more = {}}).empty());
}

TEST_CASE("pilot ad: a requirement without end costs no time") {
  std::string many = "true", deep = "TARGET.NoSuch";
  for (int i = 0; i < 1000; ++i) many += " && true";
  for (int i = 0; i < 500; ++i) deep = "(" + deep + " || false)";
  CHECK(unmet(many + " && TARGET.NoSuch").empty());
  CHECK(unmet(std::string(30'000, ' ') + "TARGET.NoSuch").empty());
  CHECK(unmet(deep).empty());
  auto job = job_that("A > 5");
  job.set_expression("A", "A");
  CHECK_FALSE(unmet_by_pilots(job, Group{}, k_ours));
}

TEST_CASE("pilot ad: all that a real pilot's ad has, and what its configuration adds, may be there") {
  for (const auto& name : real_pilot().names()) {
    CAPTURE(name);
    CHECK(may_have(k_ours, name));
  }
  std::size_t added = 0;
  for (const auto& file : std::filesystem::directory_iterator(GLIDEPOD_PILOT_CONFIG)) {
    const auto text = read_file(file.path().string()).value();
    for (auto at = text.find("STARTD_ATTRS = "); at != std::string::npos;
         at = text.find("STARTD_ATTRS = ", at + 1)) {
      auto end = text.find('\n', at);
      while (end != std::string::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
      for (const auto& line : split(text.substr(at, end - at), '\n'))
        for (const auto& word : split(trim(line), ' ')) {
          if (word.empty() || word[0] == '$' || word == "=" || word == "\\" || word == "STARTD_ATTRS")
            continue;
          CAPTURE(word);
          CHECK(may_have(k_ours, word));
          ++added;
        }
    }
  }
  CHECK(added >= 15);
}

// The one thing that must never be: jobs that a pilot would take are no demand.
TEST_CASE("pilot ad: of 20,000 requirements none is called unmet that a real pilot's ad meets") {
  const auto slot = real_pilot();
  const auto names = slot.names();
  Group of;
  of.memory_mb = slot.evaluate("Memory").integer;
  std::mt19937 random(7);
  const auto any = [&random](const auto& list) { return list[random() % std::size(list)]; };
  const std::vector<std::string> k_words = {"NoSuch",      "TARGET.NoSuch", "Six",
                                            "MY.Six",      "TARGET.Six",    "Owner",
                                            "TARGET.Cpus", "Memory",        "TARGET.TotalSlotMemory",
                                            "OpSys",       "undefined",     "true",
                                            "false",       "error",         "1",
                                            "4096",        "8192",          "8193",
                                            "\"LINUX\"",   "\"X86_64\"",    "RequestMemory",
                                            "RequestCpus"};
  const std::vector<std::string> k_symbols = {"==", "!=", "=?=", "=!=", "<", "<=", ">",
                                              ">=", "&&", "||",  "+",   "*", "?:"};
  std::function<std::string(int)> expression = [&](int depth) -> std::string {
    const auto kind = random() % 10;
    if (depth == 0 || kind < 2) return random() % 3 == 0 ? "TARGET." + any(names) : any(k_words);
    if (kind == 2) return "!(" + expression(depth - 1) + ")";
    if (kind == 3) return "isUndefined(" + expression(depth - 1) + ")";
    if (kind == 4)
      return fmt::format("({} ? {} : {})", expression(depth - 1), expression(depth - 1),
                         expression(depth - 1));
    if (kind == 5)
      return fmt::format("ifThenElse({}, {}, {})", expression(depth - 1), expression(depth - 1),
                         expression(depth - 1));
    if (kind == 6) return fmt::format("{} {} {}", any(k_words), any(k_symbols), any(k_words));
    return fmt::format("({} {} {})", expression(depth - 1), any(k_symbols), expression(depth - 1));
  };
  // The same once others have most of its memory.
  auto used = slot;
  used.set("Memory", condor::Value::of(std::int64_t{128}));
  const auto meets = [](const std::string& requirements, const condor::Ad& of_slot) {
    const auto truth = condor::to_truth(job_that(requirements).evaluate_expression(requirements, of_slot));
    return truth.is(condor::Value::Type::boolean) && truth.boolean;
  };
  int called = 0, met = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto requirements = expression(3);
    const auto job = job_that(requirements);
    const bool is_met = meets(requirements, slot) || meets(requirements, used);
    met += is_met;
    if (!unmet_by_pilots(job, of, k_ours)) continue;
    ++called;
    CAPTURE(requirements);
    CHECK_FALSE(is_met);
  }
  CHECK(called > 500);
  CHECK(met > 500);
}
