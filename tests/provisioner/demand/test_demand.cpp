#include "provisioner/demand/demand.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/ad_stream.hpp"
#include "provisioner/demand/contract.hpp"
#include "tests/condor/fake_runner.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using condor::Command;
using condor::FakeRunner;

namespace {

Result<Group> group(std::string_view json, const PolicySettings& policy = {}) {
  return group_of(condor::ad_from_json(json).value(), policy);
}

std::string name(std::string_view json, const PolicySettings& policy = {}) {
  const auto found = group(json, policy);
  return found ? found->name() : found.error().message();
}

// The schedds of a pool and what each answers, by name.
struct Scene {
  FakeRunner runner;
  std::map<std::string, FakeRunner::Reply> schedds;
  std::vector<std::string> identities;
  std::map<std::string, std::int64_t> idle_by_ad;
  HtcondorSettings settings;
  PolicySettings policy;
  PilotAttributes pilots;

  Scene() {
    runner.answer = [this](const Command& command) -> FakeRunner::Reply {
      if (command.argv[0] == "condor_q") return schedds.at(command.argv[2]);
      std::string list = "[\n";
      for (const auto& [schedd, reply] : schedds)
        list += fmt::format(
            "{{\n \"Name\": \"{}\", \"AuthenticatedIdentity\": \"condor@family\"{}\n}}\n,\n", schedd,
            idle_by_ad.contains(schedd) ? fmt::format(", \"TotalIdleJobs\": {}", idle_by_ad.at(schedd)) : "");
      return {list + "]\n", {}};
    };
  }
  Demand fetch() {
    CondorDemand source(runner, settings, policy, "ns", CondorDemand::Namespace::ignored);
    source.set_pilots(pilots);
    std::optional<Demand> got;
    source.fetch([&got](Demand demand) { got = std::move(demand); });
    CHECK_FALSE(got);
    runner.run_all();
    REQUIRE(got);
    return std::move(*got);
  }
};

std::string ad(int count, std::string_view owner, std::string_view more = "") {
  return fmt::format("{{\n \"JobCount\": {}, \"Owner\": \"{}\"{}{}\n}}\n,\n", count, owner,
                     more.empty() ? "" : ", ", more);
}

}  // namespace

TEST_CASE("demand: a group is what the job requests, PRP's defaults where it does not") {
  CHECK(name("{}") == "1;4096;8000000;;0;;");
  CHECK(name(R"({"RequestCpus": 4, "RequestMemory": 16000, "RequestDisk": 9000000, "RequestGPUs": 1})") ==
        "4;16000;9000000;;1;;");
  CHECK(name(R"({"RequestMemory": 3000, "RequestDisk": 45, "RequestCpus": 0})") == "1;4096;8000000;;0;;");
  CHECK(name(R"({"RequestMemory": "\/Expr(2048 * 4)\/", "RequestCpus": 1.5})") == "2;8192;8000000;;0;;");
  CHECK(
      name(
          R"({"RequestMemory": "\/Expr(ifthenelse(MemoryUsage isnt undefined,MemoryUsage,(ImageSize + 1023) / 1024))\/",
                 "MemoryUsage": "\/Expr(((ResidentSetSize + 1023) / 1024))\/", "ResidentSetSize": 7500000})") ==
      "1;7325;8000000;;0;;");
  CHECK(name(R"({"RequestDisk": "\/Expr(DiskUsage)\/", "RequestCpus": "\/Expr(Nothing)\/"})") ==
        "1;4096;8000000;;0;;");
}

TEST_CASE("demand: of a group it is known what its jobs ask for themselves, at most") {
  Scene scene;
  scene.schedds["a@x"] = {
      "[\n" + ad(3, "alice", R"("RequestCpus": 1, "RequestMemory": 1000, "RequestDisk": 45)") +
          ad(3, "bob", R"("RequestCpus": 1, "RequestMemory": 2000, "RequestDisk": 30)") + "]\n",
      {}};
  scene.schedds["b@x"] = {"[\n" + ad(1, "eve", R"("RequestMemory": 10, "RequestDisk": 99)") + "]\n", {}};
  const auto got = scene.fetch().groups.at(Group{}).largest;
  REQUIRE(got);
  CHECK(got->cpu_milli == 1000);
  CHECK(got->memory_bytes == std::int64_t{2048} << 20);  // in steps of 128 MB
  CHECK(got->disk_bytes == std::int64_t{99 + 2048} << 10);
  CHECK(got->pods == 1);
  const auto unsaid = request_of(condor::ad_from_json("{}").value(), Group{});
  CHECK(unsaid.memory_bytes == std::int64_t{4096} << 20);
  CHECK(unsaid.disk_bytes == std::int64_t{8'000'000 + 2048} << 10);
}

TEST_CASE("demand: a request that depends on the slot is that of the pod made for it") {
  const auto memory = [](std::int64_t cpus, std::string_view expression) {
    return name(fmt::format(R"({{"RequestCpus": {}, "RequestMemory": "\/Expr({})\/"}})", cpus, expression));
  };
  CHECK(memory(4, "ifThenElse(Cpus > 8, 16000, 6000)") == "4;6000;8000000;;0;;");
  CHECK(memory(16, "ifThenElse(Cpus > 8, 16000, 6000)") == "16;16000;8000000;;0;;");
  CHECK(memory(3, "TARGET.TotalSlotCpus * 2000") == "3;6000;8000000;;0;;");
  CHECK(memory(1, "ifThenElse(TARGET.GPUs =!= undefined && TARGET.GPUs > 0, 9000, 5000)") ==
        "1;5000;8000000;;0;;");
  // By its own memory: one round more.
  CHECK(name(R"({"RequestMemory": 9000, "RequestCpus": "\/Expr(ifThenElse(Memory > 8000, 4, 2))\/",
                 "RequestDisk": "\/Expr(Cpus * 5000000)\/"})") == "4;9000;20000000;;0;;");
  // One that never fits what it asks for comes to an end all the same.
  CHECK(memory(1, "ifThenElse(Memory > 8000, 5000, 9000)").starts_with("1;"));
  // The slot is that of the bucket.
  PolicySettings policy;
  policy.cpu_buckets = {"8", "16"};
  CHECK(name(R"({"RequestCpus": 9, "RequestMemory": "\/Expr(Cpus * 1000)\/"})", policy) ==
        "16;16000;8000000;;0;;");
  Group group;
  group.cpus = 16;
  const auto job = condor::ad_from_json(R"({"RequestMemory": "\/Expr(Cpus * 500)\/"})").value();
  CHECK(request_of(job, group).memory_bytes == std::int64_t{8064} << 20);
}

TEST_CASE("demand: GPU types are in order and only with GPUs") {
  CHECK(name(R"({"RequestGPUs": 1, "RequestGPUTypes": "L40, A100,L40"})") == "1;4096;8000000;;1;A100,L40;");
  CHECK(name(R"({"RequestGPUTypes": "L40"})") == "1;4096;8000000;;0;;");
  CHECK(name(R"({"RequestGPUs": 1, "RequestGPUTypes": "a b"})") == "RequestGPUTypes has 'a b'");
}

TEST_CASE("demand: jobs get only the volumes and labels that they may ask for") {
  PolicySettings policy;
  const auto* job = R"({"RequestDiskVolumes": "data:/data,secret:/x", "RequestLabels": "zone:a,other:b"})";
  CHECK(name(job, policy) == "1;4096;8000000;;0;;");
  policy.job_volumes = {"data"};
  policy.job_labels = {"zone"};
  CHECK(name(job, policy) == "1;4096;8000000;data:/data;0;;zone:a");
  for (const auto* path : {"/etc/condor", "/glidepod", "data", "/data/../etc", "/", "", "/data/a b", "//data",
                           "/bin", "/lib64", "/root", "/database", "/data//x"}) {
    CAPTURE(path);
    CHECK_FALSE(group(fmt::format(R"({{"RequestDiskVolumes": "data:{}"}})", path), policy).ok());
  }
  policy.job_volume_folders = {"/ceph"};
  CHECK(name(R"({"RequestDiskVolumes": "data:/ceph/sets"})", policy) == "1;4096;8000000;data:/ceph/sets;0;;");
  CHECK_FALSE(group(R"({"RequestDiskVolumes": "data:/data"})", policy).ok());
  CHECK(name(R"({"RequestLabels": "zone:-"})", policy) == "RequestLabels has 'zone:-'");
}

TEST_CASE("demand: sizes go up to their bucket") {
  CHECK(to_bucket(5000, {}) == 5000);
  CHECK(to_bucket(4096, {"4096", "8192"}) == 4096);
  CHECK(to_bucket(4097, {"4096", "8192"}) == 8192);
  CHECK(to_bucket(20000, {"4096", "8192"}) == 24576);
  PolicySettings policy;
  policy.cpu_buckets = {"1", "2", "4"};
  policy.memory_buckets = {"4096"};
  policy.disk_buckets = {"10000000"};
  CHECK(name(R"({"RequestCpus": 3, "RequestMemory": 5000})", policy) == "4;8192;10000000;;0;;");
}

TEST_CASE("demand: a request that is nonsense is an error that says so") {
  CHECK(name(R"({"RequestMemory": "lots"})") == "RequestMemory is lots");
  CHECK(name(R"({"RequestCpus": -1})") == "RequestCpus is -1");
  CHECK(name(R"({"RequestCpus": "\/Expr(1/0)\/"})") == "RequestCpus is error: division by zero");
  CHECK(name(R"({"RequestDisk": 1e300})").starts_with("RequestDisk is 1e"));
}

TEST_CASE("demand: the constraint and the attributes it needs") {
  HtcondorSettings settings;
  settings.additional_requirements = "(!isUndefined(ProjectName)) &&\n owner != \"x\"";
  auto query = job_query(settings, "ns", CondorDemand::Namespace::matched).value();
  CHECK(query.first ==
        "(JobStatus == 1) && (JobUniverse == 5) && (RequestK8SNamespace =?= \"ns\") && "
        "((!isUndefined(ProjectName)) &&\n owner != \"x\")");
  CHECK(fmt::format("{}", fmt::join(query.second, ",")) ==
        "JobStatus,JobUniverse,RequestCpus,RequestMemory,RequestDisk,RequestDiskVolumes,RequestGPUs,"
        "RequestGPUTypes,"
        "RequestLabels,Owner,RequestK8SNamespace,ProjectName");
  settings.force_namespace_matching = NamespaceMatching::no;
  CHECK(job_query(settings, "ns", CondorDemand::Namespace::matched).value().first.find("K8S") ==
        std::string::npos);
  settings.additional_requirements = "true) || (true";
  CHECK(job_query(settings, "ns", CondorDemand::Namespace::matched).error().message() ==
        "[htcondor] additional_requirements: ')' closes nothing");
}

namespace {

// A macro of the pilot's configuration as HTCondor would expand it, without line ends.
std::string macro(const std::map<std::string, std::string>& all, const std::string& name) {
  auto text = all.at(name);
  for (auto at = text.find("$("); at != std::string::npos; at = text.find("$(")) {
    const auto end = text.find(')', at);
    text.replace(at, end + 1 - at, macro(all, text.substr(at + 2, end - at - 2)));
  }
  return text;
}

std::map<std::string, std::string> read_macros(const std::string& file) {
  std::map<std::string, std::string> result;
  std::string joined;
  for (const auto& line : split(read_file(file).value(), '\n')) {
    joined += trim(line);
    if (joined.ends_with('\\')) {
      joined.pop_back();
      continue;
    }
    if (const auto equals = joined.find(" = "); !joined.starts_with("#") && equals != std::string::npos)
      result[joined.substr(0, equals)] = joined.substr(equals + 3);
    joined.clear();
  }
  return result;
}

}  // namespace

TEST_CASE("demand: what is counted for pilots with payload containers is what their START takes") {
  auto macros = read_macros(GLIDEPOD_PILOT_CONFIG "/50-containers.config");
  macros.merge(read_macros(GLIDEPOD_PILOT_CONFIG "/57-native.config"));
  macros.merge(read_macros(GLIDEPOD_PILOT_CONFIG "/59-pilot-jobs.config"));
  auto start = macro(macros, "GLIDEPOD_START_NATIVE") + " && " + macro(macros, "GLIDEPOD_START_IMAGE") +
               " && " + macro(macros, "GLIDEPOD_START_PILOT");
  for (const std::string scope : {"TARGET.", "MY."})
    for (auto at = start.find(scope); at != std::string::npos; at = start.find(scope))
      start.erase(at, scope.size());
  CHECK(start + R"( && regexp("^(undefined)?$", unparse(RequireGPUs)))" == joined(container_jobs()));
  // And START has no other clause that is about the job alone.
  CHECK(read_macros(GLIDEPOD_PILOT_CONFIG "/60-start.config").at("START") ==
        "$(GLIDEPOD_START_NATIVE) && $(GLIDEPOD_START_IMAGE) && $(GLIDEPOD_START_PILOT) && "
        "$(GLIDEPOD_START_WHOLE) && $(GLIDEPOD_START_CONTAINER) && $(GLIDEPOD_START_DOUBT) && "
        "$(GLIDEPOD_START_LIFETIME) && "
        "$(GLIDEPOD_START_TIME) && $(GLIDEPOD_START_NAMESPACE) && $(GLIDEPOD_START_GPUS) && "
        "$(GLIDEPOD_START_FILL) && $(GLIDEPOD_START_HEARD) && ($ENV(ADDITIONAL_REQUIREMENTS:True))");
  // Pilots with an image store take files too.
  auto with_store = macros;
  with_store.merge(read_macros(GLIDEPOD_PILOT_CONFIG "/51-image-files.config"));
  with_store["GLIDEPOD_START_IMAGE"] =
      read_macros(GLIDEPOD_PILOT_CONFIG "/51-image-files.config").at("GLIDEPOD_START_IMAGE");
  // And, where it is mounted for that, what lies in CVMFS.
  for (const auto files : {ImageFiles::with_cvmfs, ImageFiles::taken}) {
    if (files == ImageFiles::taken) with_store["GLIDEPOD_CVMFS_PATTERN"] = "";
    auto image = macro(with_store, "GLIDEPOD_START_IMAGE");
    for (const std::string scope : {"TARGET.", "MY."})
      for (auto at = image.find(scope); at != std::string::npos; at = image.find(scope))
        image.erase(at, scope.size());
    const auto with_files = joined(container_jobs("GlidepodDefaultImage", false, Seconds(0), files));
    image.replace(image.rfind("GlidepodDefaultImage"), 20, R"("GlidepodDefaultImage")");
    CHECK_MESSAGE(with_files.find(image) != std::string::npos, image);
  }
  const auto jobs = joined(container_jobs("", false));
  CHECK(jobs.find("? ContainerImage : undefined)") != std::string::npos);
  const auto query = job_query({}, "ns", CondorDemand::Namespace::ignored, jobs).value();
  CHECK(query.first == fmt::format("(JobStatus == 1) && (JobUniverse == 5) && ({})", jobs));
  for (const auto* name : {"PreCmd", "JobStarterDebug", "SingularityImage", "ContainerImage"})
    CHECK(std::count(query.second.begin(), query.second.end(), name) == 1);
  CHECK(jobs.find("(GlidepodPilot =!= True || False)") != std::string::npos);
  CHECK(joined(container_jobs("", true)).find("(GlidepodPilot =!= True || True)") != std::string::npos);
  for (const auto& name : query.second) CHECK(name.find("docker") == std::string::npos);
  // Jobs without an image are counted with what the pods' slots say is theirs.
  const auto with_default = joined(container_jobs("docker://a/b:1", false));
  CHECK(with_default.find(R"(? ContainerImage : "docker://a/b:1"))") != std::string::npos);
  CHECK(with_default.find("GlidepodDefaultImage") == std::string::npos);
  CHECK(job_query({}, "ns", CondorDemand::Namespace::ignored, with_default).value().second == query.second);
}

TEST_CASE("demand: a job that declares more time than a pod has is not counted, and not taken") {
  const auto clauses = container_jobs("", false, Seconds(20700));
  const auto& time = clauses.back();
  CHECK(time.rule == JobRule::time);
  CHECK(time.limit == Seconds(19800));
  // START has the same of what a pod has left.
  auto start = read_macros(GLIDEPOD_PILOT_CONFIG "/60-start.config").at("GLIDEPOD_START_TIME");
  for (const std::string left : {"TARGET.", "$(GLIDEPOD_TIME_LEFT)"})
    for (auto at = start.find(left); at != std::string::npos; at = start.find(left))
      start.replace(at, left.size(), left == "TARGET." ? "" : "19800");
  CHECK(start == time.expression);

  const auto counts = [&time](std::string_view job) {
    return condor::ad_from_json(job).value().evaluate_expression(time.expression).to_string() == "true";
  };
  CHECK(counts("{}"));
  for (const auto& unit : k_declared_times) {
    CAPTURE(unit.attribute);
    CHECK(counts(fmt::format(R"({{"{}": {}}})", unit.attribute, 19800 / unit.seconds)));
    CHECK_FALSE(counts(fmt::format(R"({{"{}": {}}})", unit.attribute, 19860 / unit.seconds)));
  }
  // Of several the least holds; what is no number declares nothing; an expression of the job is looked into.
  CHECK(counts(R"({"AllowedExecuteDuration": 86400, "MaxWallTimeMins": 60})"));
  CHECK_FALSE(counts(R"({"AllowedExecuteDuration": 86400, "MaxWallTimeMins": 600})"));
  CHECK(counts(R"({"MaxWallTimeMins": "long"})"));
  CHECK(counts(R"({"AllowedJobDuration": 0})"));
  CHECK_FALSE(counts(R"x({"MaxWallTimeMins": "/Expr(60 * RequestCpus)/", "RequestCpus": 8})x"));
  // Pods that live for ever have time for all, those of ten minutes for none that says how much.
  CHECK(container_jobs("", false, Seconds(0)) == container_jobs("", false));
  CHECK(container_jobs("", false, Seconds(600)).back().limit == Seconds(0));
}

// What START says of how a job and a pod fit, for a pilot with this environment. The slot is part of the
// job's ad.
TEST_CASE("demand: pods with GPUs are for jobs with GPUs, and free ones for jobs that fill them") {
  const auto macros = read_macros(GLIDEPOD_PILOT_CONFIG "/60-start.config");
  const auto takes = [&macros](std::map<std::string, std::string> environment, std::string_view ad) {
    auto text = macros.at("GLIDEPOD_START_GPUS") + " && " + macros.at("GLIDEPOD_START_FILL");
    const auto fill = macros.at("GLIDEPOD_LEAST_FILL");
    for (std::string name = "$(GLIDEPOD_LEAST_FILL)"; text.find(name) != std::string::npos;)
      text.replace(text.find(name), name.size(), fill);
    for (auto at = text.find("$ENV("); at != std::string::npos; at = text.find("$ENV(")) {
      const auto end = text.find(')', at), colon = text.find(':', at);
      const auto name = text.substr(at + 5, colon - at - 5);
      const auto given = environment.find(name);
      text.replace(at, end + 1 - at,
                   given == environment.end() ? text.substr(colon + 1, end - colon - 1) : given->second);
    }
    for (auto at = text.find("TARGET."); at != std::string::npos; at = text.find("TARGET."))
      text.erase(at, 7);
    return condor::ad_from_json(ad).value().evaluate_expression(text).to_string() == "true";
  };
  const auto* small =
      R"({"RequestCpus": 1, "RequestMemory": 100, "TotalSlotCpus": 4, "TotalSlotMemory": 4096})";
  const auto* with_gpu =
      R"({"RequestCpus": 1, "RequestMemory": 100, "RequestGPUs": 1, "TotalSlotCpus": 4, "TotalSlotMemory": 4096})";
  const auto* without = R"({"RequestGPUs": 0})";
  CHECK(takes({}, small));
  CHECK(takes({}, without));
  CHECK_FALSE(takes({{"NUM_GPUS", "1"}}, small));
  CHECK_FALSE(takes({{"NUM_GPUS", "1"}}, without));
  CHECK(takes({{"NUM_GPUS", "1"}}, with_gpu));
  CHECK(takes({{"NUM_GPUS", "1"}, {"GLIDEPOD_GPU_JOBS_ONLY", "no"}}, small));
  CHECK(takes({{"GLIDEPOD_LEAST_FILL", "25"}}, small));
  CHECK_FALSE(takes({{"GLIDEPOD_LEAST_FILL", "26"}}, small));
  // By memory; beside another job; in a slot that is as small.
  CHECK(takes({{"GLIDEPOD_LEAST_FILL", "50"}},
              R"({"RequestCpus": 1, "RequestMemory": 2048, "TotalSlotCpus": 4, "TotalSlotMemory": 4096})"));
  CHECK(takes(
      {{"GLIDEPOD_LEAST_FILL", "50"}},
      R"({"RequestCpus": 1, "RequestMemory": 100, "TotalSlotCpus": 4, "TotalSlotMemory": 4096, "NumDynamicSlots": 1})"));
  CHECK(takes({{"GLIDEPOD_LEAST_FILL", "50"}},
              R"({"RequestCpus": 1, "RequestMemory": 100, "TotalSlotCpus": 1, "TotalSlotMemory": 128})"));
  CHECK_FALSE(takes({{"GLIDEPOD_LEAST_FILL", "50"}}, R"({"TotalSlotCpus": 4, "TotalSlotMemory": 4096})"));
}

TEST_CASE("demand: groups of all schedds add up, with their owners") {
  Scene scene;
  scene.schedds["a"] = {ad(3, "alice") + ad(2, "bob") + ad(5, "bob", "\"RequestCpus\": 4"), {}};
  scene.schedds["b"] = {ad(4, "alice", "\"RequestMemory\": 1024"), {}};
  const auto demand = scene.fetch();
  CHECK_FALSE(demand.blind);
  CHECK(demand.problems.empty());
  REQUIRE(demand.groups.size() == 2);
  const auto& first = demand.groups.begin()->second;
  CHECK(first.idle == 9);
  CHECK(first.owners == std::map<std::string, std::int64_t>{{"alice", 7}, {"bob", 2}});
}

TEST_CASE("demand: a group has its images, of all schedds, and is not split by them") {
  Scene scene;
  const auto of = [](int count, const char* owner, const char* image) {
    return ad(count, owner, fmt::format("\"ContainerImage\": \"docker://{}\"", image));
  };
  scene.schedds["a"] = {of(3, "alice", "a:1") + of(2, "bob", "b:1") + ad(5, "bob"), {}};
  scene.schedds["b"] = {of(4, "bob", "b:1"), {}};
  scene.schedds["dead"] = {of(100, "bob", "c:1"), error("condor_q: no answer")};
  const auto demand = scene.fetch();
  REQUIRE(demand.groups.size() == 1);
  const auto& group = demand.groups.begin()->second;
  CHECK(group.idle == 14);
  CHECK(group.images == std::vector<ImageDemand>{{"docker.io/library/b:1", 6}, {"docker.io/library/a:1", 3}});
}

TEST_CASE("demand: images cost no attribute that is not asked for already") {
  const auto query = job_query({}, "ns", CondorDemand::Namespace::ignored, joined(container_jobs()));
  for (const auto* name : {"ContainerImage", "SingularityImage"})
    CHECK(std::ranges::count(query.value().second, name) == 1);
}

TEST_CASE("demand: only trusted schedds are asked, in a fixed order") {
  Scene scene;
  for (const auto* schedd : {"login2.osgconnect.net", "login1.osgconnect.net", "evil.example"})
    scene.schedds[schedd] = {"", {}};
  scene.settings.schedd_whitelist_regexp = "(login.*\\.osgconnect\\.net)|(.*\\.jlab\\.org)";
  CHECK(scene.fetch().schedds_asked == 2);
  REQUIRE(scene.runner.commands.size() == 3);
  CHECK(scene.runner.commands[1][2] == "login1.osgconnect.net");
  scene.settings.schedd_identity_regexp = "condor@trusted";
  CHECK(scene.fetch().schedds_asked == 0);
}

TEST_CASE("demand: at most so many schedds at once") {
  Scene scene;
  for (int i = 0; i < 20; ++i) scene.schedds[fmt::format("s{}", i)] = {ad(1, "a"), {}};
  scene.settings.parallel_queries = 3;
  CHECK(scene.fetch().groups.begin()->second.idle == 20);
  CHECK(scene.runner.most_at_once == 3);
}

TEST_CASE("demand: a dead schedd costs only itself, also when it dies half way") {
  Scene scene;
  scene.schedds["good"] = {ad(3, "alice"), {}};
  scene.schedds["dead"] = {ad(100, "alice"), error("condor_q: no answer in 60000 ms")};
  const auto demand = scene.fetch();
  CHECK_FALSE(demand.blind);
  CHECK(demand.groups.begin()->second.idle == 3);
  CHECK(demand.problems == std::vector<std::string>{"dead: condor_q: no answer in 60000 ms"});
}

TEST_CASE("demand: bad ads cost only themselves and are told, but not a thousand times") {
  Scene scene;
  std::string answer = ad(3, "alice");
  for (int i = 0; i < 1000; ++i) answer += ad(1, "bob", "\"RequestCpus\": \"x\"");
  scene.schedds["a"] = {answer + "{\n ,\n}\n" + ad(4, "carol"), {}};
  const auto demand = scene.fetch();
  CHECK(demand.groups.begin()->second.idle == 7);
  CHECK(demand.bad_ads == 1001);
  REQUIRE(demand.problems.size() == 6);
  CHECK(demand.problems[0] == "a: bad ad: RequestCpus is x");
  CHECK(demand.problems[5] == "1001 bad ads in all");
}

TEST_CASE("demand: without a collector or with every schedd dead it is blind, with none it is not") {
  Scene scene;
  CHECK_FALSE(scene.fetch().blind);
  scene.schedds["dead"] = {"", error("condor_q: exit code 1")};
  CHECK(scene.fetch().blind == "no schedd answered: dead: condor_q: exit code 1");
  scene.runner.answer = [](const Command&) {
    return FakeRunner::Reply{"", error("condor_status: exit code 1: down")};
  };
  CHECK(scene.fetch().blind == "list of schedds: condor_status: exit code 1: down");
  Scene wrong;
  wrong.settings.additional_requirements = "(";
  CHECK(wrong.fetch().blind == "[htcondor] additional_requirements: ')' is missing");
}

TEST_CASE("demand: a schedd that has vanished from the collector has not said that it has no jobs") {
  Scene scene;
  scene.schedds["a"] = {ad(3, "alice"), {}};
  scene.schedds["b"] = {ad(4, "bob"), {}};
  SteadyTime now{};
  const auto make = [&] {
    auto source = std::make_unique<CondorDemand>(scene.runner, scene.settings, scene.policy, "ns",
                                                 CondorDemand::Namespace::ignored);
    source->set_clock([&now] { return now; });
    return source;
  };
  auto source = make();
  const auto fetch = [&] {
    Demand got;
    source->fetch([&got](Demand demand) { got = std::move(demand); });
    scene.runner.run_all();
    return got;
  };
  CHECK(fetch().schedds_failed == 0);
  scene.schedds.erase("b");
  now += Seconds(100);
  auto demand = fetch();
  CHECK(demand.schedds_asked == 2);
  CHECK(demand.schedds_failed == 1);
  CHECK(demand.groups.begin()->second.idle == 3);
  CHECK(demand.problems == std::vector<std::string>{"b: not in the collector any more, last seen 100 s ago"});
  // An empty collector, also after new settings.
  scene.schedds.clear();
  auto fresh = make();
  fresh->inherit(*source);
  source = std::move(fresh);
  CHECK(fetch().blind);
  // Where the settings do not want it any more, nothing is missed.
  scene.settings.schedd_whitelist_regexp = "a";
  fresh = make();
  fresh->inherit(*source);
  CHECK(std::exchange(source, std::move(fresh)));
  CHECK(fetch().schedds_asked == 1);
  now += Seconds(3601);
  demand = fetch();
  CHECK_FALSE(demand.blind);
  CHECK(demand.schedds_asked == 0);
}

TEST_CASE("demand: of a queue that cannot be listed it is told how many jobs its ad counts") {
  Scene scene;
  scene.schedds["a"] = {"", error("timed out")};
  scene.schedds["b"] = {ad(3, "alice"), {}};
  scene.schedds["c"] = {"", error("timed out")};
  scene.idle_by_ad = {{"a", 120'000}, {"b", 5}, {"c", 0}};
  const auto demand = scene.fetch();
  CHECK(demand.schedds_failed == 2);
  CHECK(demand.silent.at("a").ends_with("timed out; its ad in the collector counts 120000 idle jobs"));
  CHECK(demand.silent.at("c").ends_with("timed out"));
  std::int64_t idle = 0;
  for (const auto& [group, part] : demand.groups) idle += part.idle;
  CHECK(idle == 3);
}

TEST_CASE("demand: silence of condor_q for as long as it waits is no empty queue") {
  Scene scene;
  scene.schedds["a"] = {"", {}};
  scene.schedds["b"] = {ad(3, "alice"), {}};
  SteadyTime now{};
  Seconds takes{5};
  CondorDemand source(scene.runner, scene.settings, scene.policy, "ns", CondorDemand::Namespace::ignored);
  source.set_clock([&now] { return now; });
  const auto answer = scene.runner.answer;
  scene.runner.answer = [&](const Command& command) {
    if (command.argv[0] == "condor_q" && command.argv[2] == "a") now += takes;
    return answer(command);
  };
  const auto fetch = [&] {
    Demand got;
    source.fetch([&got](Demand demand) { got = std::move(demand); });
    scene.runner.run_all();
    return got;
  };
  CHECK(fetch().schedds_failed == 0);
  takes = Seconds(20);
  const auto demand = fetch();
  CHECK(demand.schedds_failed == 1);
  CHECK(demand.groups.size() == 1);
  CHECK(demand.problems.at(0).starts_with("a: condor_q: the schedd did not answer for 20 seconds"));
}

TEST_CASE("demand: jobs not yet materialised count as far as the lookahead goes") {
  Scene scene;
  scene.settings.lookahead = 10;
  int asked = 0;
  const auto list = scene.runner.answer;
  scene.schedds["a"] = {"", {}};
  scene.runner.answer = [&](const Command& command) -> FakeRunner::Reply {
    if (command.argv[0] != "condor_q") return list(command);
    if (++asked == 1) return {ad(8, "alice"), {}};
    CHECK(command.argv[6].ends_with("&& (JobMaterializeNextProcId =!= undefined)"));
    CHECK(command.argv.back().ends_with("Owner,ClusterId,TotalSubmitProcs,JobMaterializeNextProcId"));
    const auto* factory = R"("ClusterId": {}, "TotalSubmitProcs": {}, "JobMaterializeNextProcId": 4)";
    return {ad(4, "alice", fmt::format(fmt::runtime(factory), 5, 100)) +
                ad(2, "alice", fmt::format(fmt::runtime(factory), 6, 7)) +
                ad(2, "alice", fmt::format(fmt::runtime(factory), 6, 7)),
            {}};
  };
  const auto demand = scene.fetch();
  CHECK(demand.groups.begin()->second.idle == 8);
  CHECK(demand.groups.begin()->second.unmaterialized == 13);
}

TEST_CASE("demand: jobs that require what no pilot has are none, and are told") {
  Scene scene;
  const auto ospool = [](int count, const char* owner, const char* more = "") {
    return ad(count, owner,
              fmt::format(R"("RequestCpus": 1, "Requirements": "\/Expr((OSGVO_OS_STRING == \"RHEL 9\") && )"
                          R"((TARGET.Arch == \"X86_64\"))\/"{})",
                          more));
  };
  const auto* good = R"("RequestCpus": 1, "Requirements": "\/Expr(TARGET.Arch == \"X86_64\")\/")";
  scene.schedds["a"] = {ospool(40, "sky") + ad(3, "alice", good) + ad(2, "sky", good), {}};
  scene.schedds["b"] = {ospool(5, "bob") + ad(4, "carol"), {}};
  scene.schedds["dead"] = {ospool(1000, "eve"), error("condor_q: no answer")};
  const auto asked = [&scene] { return scene.runner.commands.back().back(); };
  // Where it is not known what pilots have, all count, and nobody asks what they require.
  auto demand = scene.fetch();
  CHECK(demand.groups.at(Group{}).idle == 54);
  CHECK(demand.unmet.empty());
  CHECK(asked().find("Requirements") == std::string::npos);

  scene.pilots.known = true;
  demand = scene.fetch();
  CHECK(asked().ends_with(",Requirements"));
  REQUIRE(demand.groups.size() == 1);
  CHECK(demand.groups.at(Group{}).idle == 9);
  CHECK(demand.groups.at(Group{}).owners ==
        std::map<std::string, std::int64_t>{{"alice", 3}, {"carol", 4}, {"sky", 2}});
  REQUIRE(demand.unmet.size() == 1);
  const auto& [clause, unmet] = *demand.unmet.begin();
  CHECK(clause == R"(OSGVO_OS_STRING == "RHEL 9")");
  CHECK(unmet.why == "pilots have no OSGVO_OS_STRING");
  CHECK(unmet.idle == 45);
  CHECK(unmet.owners == std::map<std::string, std::int64_t>{{"bob", 5}, {"sky", 40}});

  scene.pilots.more = {"OSGVO_OS_STRING"};
  CHECK(scene.fetch().groups.at(Group{}).idle == 54);
}

TEST_CASE("demand: of the clauses that no pilot meets fifty are told, and all jobs are counted") {
  Scene scene;
  scene.pilots.known = true;
  std::string answer;
  for (int i = 0; i < 70; ++i)
    answer += ad(2, "bob", fmt::format(R"("Requirements": "\/Expr(NoSuch == {})\/")", i));
  scene.schedds["a"] = scene.schedds["b"] = {answer, {}};
  const auto demand = scene.fetch();
  CHECK(demand.groups.empty());
  CHECK(demand.unmet.size() == 51);
  std::int64_t idle = 0;
  for (const auto& entry : demand.unmet) idle += entry.second.idle;
  CHECK(idle == 280);
  CHECK(demand.unmet.at("").idle == 80);
}
