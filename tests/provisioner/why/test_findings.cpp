#include <algorithm>

#include "tests/provisioner/why/asked_world.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::why_test;

namespace {

using Where = JobLook::Where;
const auto alone = [](const char* attribute, const Json& value) {
  return [attribute, value](World& world) { world.job[attribute] = value; };
};
const auto on_hold = [](int code, int subcode, const char* reason) {
  return [=](World& w) {
    w.job.update(
        {{"JobStatus", 5}, {"HoldReasonCode", code}, {"HoldReasonSubCode", subcode}, {"HoldReason", reason}});
  };
};
const auto image = [](const char* name) { return alone("ContainerImage", name); };

// A pilot of its size has run for 900 s and is free; that is what the negotiator said last, and when.
const auto with_a_free_pilot = [](const char* requirements, const char* said, std::int64_t when) {
  return [=](World& w) {
    w.pod(PodState::unregistered, Seconds(900));
    w.slots = {{"pod-0", false, ""}};
    w.job.update({{"Requirements", requirements}, {"LastRejMatchReason", said}, {"LastRejMatchTime", when}});
  };
};

const std::vector<Case> k_cases = {
    // The job's own state.
    {"no such job", [](World& w) { w.look.where = Where::nowhere; }, "no-such-job", "stops",
     "the job's owner", "3 access points"},
    {"no such job where all answered",
     [](World& w) {
       w.look.where = Where::nowhere;
       w.look.problems = {"ap2: condor_q: no answer"};
     },
     "no-such-job", "stops", "the pool's operator", "3 access points"},
    {"completed",
     [](World& w) {
       w.look.where = Where::history;
       w.job.update({{"JobStatus", 4}, {"ExitCode", 7}, {"LastRemoteHost", "slot1@p"}});
     },
     "completed", "note", "nobody", "exit code 7, last on slot1@p"},
    {"removed",
     [](World& w) {
       w.look.where = Where::history;
       w.job.update({{"JobStatus", 3}, {"RemoveReason", "via condor_rm"}});
     },
     "removed", "note", "nobody", "via condor_rm"},
    {"held for its image", on_hold(19, 0, "docker://x: manifest unknown"), "held-image", "stops",
     "the job's owner", "manifest unknown (code 19, subcode 0)"},
    {"held by the site's image policy", on_hold(19, 0, "admission webhook denied the request"), "held-image",
     "stops", "the site's admin", "denied"},
    {"held by the site's image policy in the API server",
     on_hold(19, 0, "ValidatingAdmissionPolicy 'glidepod-registries' with binding 'x' denied request: no"),
     "held-image", "stops", "the site's admin", "denied"},
    {"held for memory", on_hold(34, 102, "gone over memory limit"), "held-memory", "stops", "the job's owner",
     "code 34, subcode 102"},
    {"held for disk", on_hold(34, 104, "gone over disk limit"), "held-disk", "stops", "the job's owner",
     "104"},
    {"held by hand", on_hold(1, 0, "via condor_hold"), "held-by-hand", "stops", "the job's owner",
     "condor_hold"},
    {"held otherwise", on_hold(99, 5, "who knows"), "held", "stops", "the job's owner", "who knows"},
    {"running",
     [](World& w) {
       w.job.update({{"JobStatus", 2}, {"RemoteHost", "slot1_1@pod-7"}});
     },
     "runs", "note", "nobody", "slot1_1@pod-7"},
    // What pilots refuse.
    {"no image", [](World& w) { w.job.erase("ContainerImage"); }, "no-image", "stops", "the job's owner",
     "neither"},
    {"image without docker://", image("registry/image"), "image-form", "stops", "the job's owner",
     "registry/image"},
    {"image in capitals", image("DOCKER://registry/image"), "image-form", "stops", "the job's owner",
     "DOCKER://"},
    {"image file", image("/home/alice/image.sif"), "image-form", "stops", "the job's owner", ".sif"},
    {"image file in CVMFS", image("/cvmfs/singularity.opensciencegrid.org/a/b.sif"), "image-form", "stops",
     "the job's owner", "b.sif"},
    {"what a name in CVMFS leads to", image("/cvmfs/singularity.opensciencegrid.org/.images/14/0a"),
     "image-form", "stops", "the job's owner", ".images/14/0a"},
    {"image of another scheme", image("oras://registry/image"), "image-form", "stops", "the job's owner",
     "oras"},
    {"+SingularityImage comes first", alone("SingularityImage", "/images/mine"), "image-form", "stops",
     "the job's owner", "SingularityImage = \"/images/mine\""},
    {"image expression", image("/Expr(strcat(Nothing, 1))/"), "image-expression", "stops", "the job's owner",
     "strcat(Nothing, 1)"},
    {"PreCmd", alone("PreCmd", "/bin/true"), "not-taken", "stops", "the job's owner",
     "PreCmd = \"/bin/true\""},
    {"properties of GPUs", alone("RequireGPUs", "/Expr(Capability >= 7.0)/"), "gpu-properties", "stops",
     "the job's owner", "RequireGPUs = Capability >= 7.0"},
    {"a pilot itself", alone("GlidepodPilot", true), "pilot-job", "stops", "the pool's operator",
     "GlidepodPilot = true"},
    {"more time than a pod has",
     [](World& w) {
       w.pod_lifetime = Seconds(20700);
       w.job.update({{"MaxWallTimeMins", 1250}, {"AllowedJobDuration", 86400}});
     },
     "time", "stops", "the job's owner",
     "AllowedJobDuration = 86400, MaxWallTimeMins = 1250; a new pod has 19800 s for a job"},
    {"docker universe", alone("WantDocker", true), "not-taken", "stops", "the job's owner",
     "WantDocker = true"},
    {"its own transfer plugins", alone("TransferPlugins", "x=y"), "not-taken", "stops", "the job's owner",
     "x=y"},
    {"universe", alone("JobUniverse", 12), "universe", "stops", "the job's owner", "JobUniverse = 12"},
    {"namespace of the query",
     [](World& w) { w.htcondor.force_namespace_matching = NamespaceMatching::name; }, "namespace", "stops",
     "the job's owner", "RequestK8SNamespace = undefined"},
    {"namespace of START alone", [](World& w) { w.name_space = R"(RequestK8SNamespace =?= "ns")"; },
     "namespace", "stops", "the job's owner", "RequestK8SNamespace =?= \"ns\""},
    {"the query's filter",
     [](World& w) { w.htcondor.additional_requirements = "Owner != \"bob\" && ProjectName =?= \"physics\""; },
     "query", "stops", "the pool's operator", "ProjectName =?= \"physics\", where ProjectName = undefined"},
    {"the pilots' filter", [](World& w) { w.start = "(TARGET.Owner == \"bob\") && (MY.Disk > 1)"; },
     "pilot-requirements", "stops", "the pool's operator", "Owner == \"bob\", where Owner = \"alice\""},
    {"its own requirements, of itself",
     alone("Requirements", "/Expr(TARGET.HasFileTransfer && (Owner == \"bob\"))/"), "requirements", "stops",
     "the job's owner", "Owner == \"bob\""},
    {"what no pilot has",
     [](World& w) {
       w.pilots.known = true;
       w.job["Requirements"] = R"(/Expr((OSGVO_OS_STRING == "RHEL 9") && (TARGET.Arch == "X86_64"))/)";
     },
     "requirements", "stops", "the job's owner",
     R"(OSGVO_OS_STRING == "RHEL 9": pilots have no OSGVO_OS_STRING)"},
    {"a larger slot than it asks for",
     [](World& w) {
       w.pilots.known = true;
       w.job["Requirements"] = "/Expr(TARGET.Memory > 6000)/";
     },
     "requirements", "stops", "the job's owner",
     "TARGET.Memory > 6000: its pilot has Memory of at most 4096"},
    {"what it does not meet itself, told once",
     [](World& w) {
       w.pilots.known = true;
       w.job["Requirements"] = "/Expr((Owner == \"bob\") && (TARGET.NoSuch))/";
     },
     "requirements", "stops", "the job's owner", "Owner == \"bob\", where Owner = \"alice\""},
    {"a request that is nonsense", alone("RequestMemory", "lots"), "request", "stops", "the job's owner",
     "RequestMemory is lots"},
    {"a request that is undefined", [](World& w) { w.job.erase("RequestDisk"); }, "request", "stops",
     "the job's owner", "RequestDisk = undefined"},
    {"a pod of its own that it does not fill",
     [](World& w) {
       w.job.update({{"RequestCpus", 1}, {"RequestMemory", 100}});
       w.policy.settings.cpu_buckets = {"4"};
       w.least_fill = 50;
     },
     "least-fill", "stops", "the pool's operator", "25 % of 4;4096;8000000;;0;;; least_fill=50"},
    {"an access point that does not count",
     [](World& w) {
       w.look.counts = false;
       w.htcondor.schedd_whitelist_regexp = "other.*";
     },
     "schedd", "stops", "the pool's operator", "other.*"},
    // What is decided.
    {"an accounting group whose quota is used up",
     [](World& w) {
       w.priorities.quota_left["physics"] = 0;
       w.priorities.group_of["alice"] = "physics";
     },
     "quota", "stops", "the pool's operator", "group_quota physics: 0 of 1"},
    {"no collector", [](World& w) { w.look.blind = "list of schedds: condor_status: exit code 1"; }, "blind",
     "stops", "the pool's operator", "list of schedds"},
    {"no cluster", [](World& w) { w.blind_pods = "503 Service Unavailable"; }, "blind", "stops",
     "the pool's operator", "503"},
    {"nobody leads", [](World& w) { w.last_cycle = Seconds(5000); }, "no-leader", "stops",
     "the pool's operator", "5000 s ago"},
    {"nobody has the lease", [](World& w) { w.lease.name = "p"; }, "no-leader", "stops",
     "the pool's operator", "nobody has the lease p"},
    {"a leader that does not renew",
     [](World& w) {
       w.lease = {"p", "pod-1_a", Seconds(90), ""};
     },
     "no-leader", "stops", "the pool's operator", "pod-1_a has not renewed the lease p for 90 s"},
    {"its access point does not answer the provisioner",
     [](World& w) {
       w.schedds_failed = 1;
       w.demand_problems = {"ap: condor_q: no answer in 60000 ms"};
     },
     "schedd-silent", "stops", "the pool's operator", "no answer in 60000 ms"},
    {"larger than every node",
     [](World& w) {
       w.capacity.nodes = {{500, 1 << 30, 1 << 30, 0, 10}};
     },
     "too-large", "stops", "the job's owner",
     "larger than every node; its pod asks for 1 CPUs, 0.0 GiB memory"},
    {"more GPUs of another resource than any node has",
     [](World& w) {
       w.capacity.nodes = {{64'000, 64LL << 30, 1LL << 40, 0, 10}};
       w.capacity.nodes[0].limit_cpu_milli = w.capacity.nodes[0].limit_memory_bytes = k_unlimited;
       w.capacity.nodes[0].devices["amd.com/gpu"] = 1;
       w.capacity.needs[Group()] = {1000, 4096, 0, 0, 1};
       w.capacity.needs[Group()].devices["amd.com/gpu"] = 2;
     },
     "too-large", "stops", "the job's owner", "2 amd.com/gpu; the largest node has 64 CPUs"},
    {"larger than the quota",
     [](World& w) {
       w.capacity.quota = Resources{500, 1 << 30, 1 << 30, 0, 10};
     },
     "too-large", "stops", "the job's owner", "larger than the quota"},
    {"a pod that the settings cannot make",
     [](World& w) { w.capacity.unservable[Group()] = "two volumes 'x'"; }, "unservable", "stops",
     "the pool's operator", "two volumes"},
    {"a quota of the pool",
     [](World& w) {
       w.offers = {Offers::State::answered, 20, 0, 40, true};
     },
     "pool-policy", "stops", "the pool's operator", "would use 0 of 20 pods offered: 40 -> 0"},
    {"pods just offered to the negotiator",
     [](World& w) {
       w.offers = {Offers::State::asked, 0, 0, 1, true};
     },
     "pool-asked", "waits", "nobody", "nothing is decided"},
    {"no pilot whose ad could be offered",
     [](World& w) {
       w.offers = {Offers::State::no_pilot, 0, 0, 40, true};
     },
     "first-pilot", "waits", "nobody", "40 -> 1"},
    {"quota used up",
     [](World& w) {
       w.capacity.quota_left = Resources{500, 1 << 30, 1 << 30, 0, 10};
     },
     "quota", "stops", "the site's admin", "quota: 1 -> 0"},
    {"a cluster that does not answer, and another without room",
     [](World& w) {
       set_places(w.policy, {{.name = "east", .image = "east/img"}, {.name = "west", .image = "west/img"}});
       w.places["east"].unseen = "401 Unauthorized";
       w.places["east"].unseen_for = Seconds(60);
       w.capacity.places["west"].needs[Group()] = {1000, 4096, 0, 0, 1};
       w.capacity.places["west"].quota_left = Resources{.pods = 0};
     },
     "place-unseen", "stops", "the pool's operator", "east: not seen for 60 s"},
    {"two clusters, of which one was never seen",
     [](World& w) {
       set_places(w.policy, {{.name = "east", .image = "east/img"}, {.name = "west", .image = "west/img"}});
       w.places["west"].unseen = "401 Unauthorized";
       w.places["west"].unknown = true;
     },
     "place-unseen", "stops", "the pool's operator", "west: not seen for 0 s"},
    {"quota that only the server knows",
     [](World& w) { w.status_problem = "403 Forbidden: exceeded quota: gpus"; }, "quota", "stops",
     "the site's admin", "exceeded quota: gpus"},
    {"a pod that the server refuses", [](World& w) { w.status_problem = "403 Forbidden: admission"; },
     "pod-refused", "stops", "the pool's operator", "admission"},
    {"cap in all",
     [](World& w) {
       w.pod(PodState::unregistered);
       w.slots = {{"pod-0", true, "bob"}};
       w.policy.settings.max_pods = 1;
     },
     "cap", "stops", "the pool's operator", "max_pods: 1 -> 0"},
    {"cap of the cores in all",
     [](World& w) {
       w.pod(PodState::unregistered);
       w.slots = {{"pod-0", true, "bob"}};
       w.policy.settings.max_cores = 1;
     },
     "cap", "stops", "the pool's operator", "max_cores: 1 -> 0"},
    {"cap of the group",
     [](World& w) {
       w.pod(PodState::unregistered);
       w.slots = {{"pod-0", true, "bob"}};
       w.policy.max_submit_pods_per_cluster = 1;
     },
     "cap", "stops", "the pool's operator", "max_submit_pods_per_cluster 1: has 1"},
    {"cap of the owner",
     [](World& w) {
       w.pod(PodState::unregistered);
       w.slots = {{"pod-0", true, "alice"}};
       w.policy.settings.max_pods_per_owner = 1;
     },
     "cap", "stops", "the pool's operator", "max_pods_per_owner 1: 0 of 1"},
    {"breaker",
     [](World& w) {
       w.history.breakers[{Group(), "img"}] = {.open = true,
                                               .opened = k_now - Seconds(600),
                                               .closed = {},
                                               .next_canary = k_now + Seconds(99),
                                               .pause = {}};
     },
     "breaker", "stops", "the pool's operator", "open for 10 min: next try in 99 s"},
    // What became of its pods.
    {"no node has the labels",
     [](World& w) {
       w.pod(PodState::unschedulable, Seconds(30),
             "0/1 nodes are available: 1 node(s) didn't match node selector.");
     },
     "unschedulable", "stops", "the pool's operator", "pod-0 for 30 s: 0/1 nodes are available"},
    {"no node has room, for a moment",
     [](World& w) { w.pod(PodState::unschedulable, Seconds(30), "0/1 nodes: 1 Insufficient cpu."); },
     "unschedulable", "waits", "the site's admin", "Insufficient cpu"},
    {"no node has room, for long",
     [](World& w) { w.pod(PodState::unschedulable, Seconds(3000), "0/1 nodes: 1 Insufficient cpu."); },
     "unschedulable", "stops", "the site's admin", "for 3000 s"},
    {"taints",
     [](World& w) {
       w.pod(PodState::unschedulable, Seconds(30), "1 node(s) had taint {gpu: }, that the pod didn't");
     },
     "unschedulable", "stops", "the pool's operator", "taint"},
    {"the pilot's image",
     [](World& w) { w.pod(PodState::pull_error, Seconds(30), "ImagePullBackOff: not found"); }, "pilot-image",
     "stops", "the pool's operator", "not found"},
    {"the pilot's image is pulled", [](World& w) { w.pod(PodState::pulling); }, "pilot-pulls", "waits",
     "nobody", "for 30 s"},
    {"the pilot's image is pulled for ever", [](World& w) { w.pod(PodState::pulling, Seconds(900)); },
     "pilot-pulls", "stops", "the site's admin", "for 900 s"},
    {"the pilot cannot start",
     [](World& w) { w.pod(PodState::starting, Seconds(30), "CreateContainerConfigError: secret not found"); },
     "pilot-start", "stops", "the pool's operator", "secret not found"},
    {"the pilot has yet to join", [](World& w) { w.pod(PodState::unregistered); }, "pilot-starts", "waits",
     "nobody", "pods: 1, without"},
    {"the pilot never joins", [](World& w) { w.pod(PodState::unregistered, Seconds(5000)); }, "pilot-lost",
     "stops", "the pool's operator", "pods: 1, without"},
    {"the negotiator's turn",
     [](World& w) {
       w.pod(PodState::unregistered);
       w.slots = {{"pod-0", false, ""}};
       w.job["LastRejMatchReason"] = "submitter limit exceeded";
     },
     "negotiator", "waits", "nobody", "pods: 1 free; when it last looked: submitter limit exceeded"},
    {"a free pilot is not what it requires",
     with_a_free_pilot(R"(/Expr((TARGET.Arch == "X86_64") && (TARGET.HasJava))/)", "no match found ",
                       999'900),
     "requirements", "stops", "the job's owner",
     "TARGET.HasJava; pods: 1 free; when it last looked: no match found"},
    {"the negotiator has not looked since the pilot joined",
     with_a_free_pilot("/Expr(TARGET.HasJava)/", "no match found ", 999'200), "negotiator", "waits", "nobody",
     "pods: 1 free"},
    {"the negotiator found something else than its requirements",
     with_a_free_pilot("/Expr(TARGET.HasJava)/", "insufficient priority", 999'900), "negotiator", "waits",
     "nobody", "insufficient priority"},
    {"no match, and it requires nothing of its own",
     with_a_free_pilot(R"(/Expr((TARGET.Arch == "X86_64") && (TARGET.HasFileTransfer))/)", "no match found ",
                       999'900),
     "negotiator", "waits", "nobody", "pods: 1 free"},
    {"running pods have room",
     [](World& w) {
       w.pod(PodState::unregistered);
       w.slots = {{"pod-0", false, ""}, {"pod-0", true, "bob"}};
       w.slots[0].room = of_slot(6, 8192, 9'000'000, 0, 2);
       w.slots[0].room_until = k_now + Seconds(60);
       w.job["LastRejMatchReason"] = "submitter limit exceeded";
     },
     "running-pods", "waits", "nobody",
     "1 of 1 idle jobs fit into running pods; when it last looked: submitter limit exceeded"},
    {"the next cycle", [](World&) {}, "next-cycle", "waits", "nobody",
     "pods: 1 for jobs of its size, at most 120 s"},
    {"the next cycle makes others first",
     [](World& w) {
       w.others_idle = 40;
       w.policy.settings.ramp_up = 2;
     },
     "curb", "waits", "nobody", "ramp_up: 11 -> 2"},
};

}  // namespace

TEST_CASE("why: a registry that refuses is known, whatever its words' case") {
  for (const char* words : {"HEAD request to https://quay.io/v2/no/such/manifests/1: 401 UNAUTHORIZED",
                            "unexpected status code [manifests 1]: 401 Unauthorized",
                            "https://ghcr.io/token?scope=x: 403 Forbidden",
                            "denied: requested access to the resource is denied"}) {
    World world;
    on_hold(19, 0, words)(world);
    CHECK_MESSAGE(ask(world).front().change.find("the registry's credentials") != std::string::npos, words);
  }
}

TEST_CASE("why: the first finding is the reason, for each reason there is") {
  CHECK(k_cases.size() >= 20);
  for (const auto& one : k_cases) {
    CAPTURE(one.name);
    World world;
    one.provoke(world);
    const auto all = ask(world);
    REQUIRE(!all.empty());
    const auto& first = all.front();
    CHECK(first.key == one.key);
    CHECK(to_string(first.weight) == one.weight);
    CHECK(to_string(first.who) == one.who);
    CHECK_MESSAGE(first.seen.find(one.seen) != std::string::npos, first.seen);
    CHECK(!first.what.empty());
    CHECK(!first.change.empty());
  }
}

TEST_CASE("why: free pods that are not for such a job are told of, with the setting") {
  World world;
  world.job.update({{"RequestCpus", 1}, {"RequestMemory", 100}});
  world.pod(PodState::unregistered);
  world.slots = {{"pod-0", false, ""}};
  world.first_of_others = 0;
  world.others = {.cpus = 4, .memory_mb = 1000, .gpus = 1};
  const auto all = ask(world);
  CHECK(all.front().key == "next-cycle");
  REQUIRE(find(all, "gpu-jobs-only"));
  CHECK(find(all, "gpu-jobs-only")->seen == "pods: 1 free; gpu_jobs_only=yes");
  CHECK(find(all, "gpu-jobs-only")->weight == Finding::Weight::note);
  world.gpu_jobs_only = false;
  CHECK_FALSE(find(ask(world), "gpu-jobs-only"));
  world.others.gpus = 0;
  world.least_fill = 25;
  CHECK_FALSE(find(ask(world), "least-fill"));
  world.least_fill = 26;
  REQUIRE(find(ask(world), "least-fill"));
  CHECK(find(ask(world), "least-fill")->seen == "pods: 1 free; least_fill=26");
}

TEST_CASE("why: what cannot be told is said, with the clause") {
  World world;
  world.job["Requirements"] = "/Expr((TARGET.HasFileTransfer) && (TARGET.Pilot =?= \"mine\"))/";
  world.start = "MY.Disk > 1";
  const auto all = ask(world);
  REQUIRE(find(all, "requirements"));
  CHECK(find(all, "requirements")->seen == "TARGET.Pilot =?= \"mine\"");
  CHECK(find(all, "requirements")->weight == Finding::Weight::note);
  REQUIRE(find(all, "untold"));
  CHECK(find(all, "untold")->seen == "MY.Disk > 1");
  CHECK(all.front().key == "next-cycle");
}

TEST_CASE("why: what no pilot has is told once, with what to change") {
  World world;
  world.pilots.known = true;
  world.job["Requirements"] = "/Expr((TARGET.NoSuch =?= 1) && (TARGET.HasJava) && (TARGET.Neither))/";
  auto all = ask(world);
  CHECK(all.front().what == "no pilot that is made for it will ever meet what it requires");
  CHECK(all.front().seen == "TARGET.NoSuch =?= 1: pilots have no NoSuch");
  CHECK(
      all.front().change ==
      "leave it out of requirements; where pilots do have it, the operator's [k8s] pilot_attributes=NoSuch");
  const auto about = [&all](const char* text) {
    return std::ranges::count_if(all,
                                 [text](const Finding& f) { return f.seen.find(text) != std::string::npos; });
  };
  CHECK(about("NoSuch") == 1);
  CHECK(about("TARGET.HasJava") == 1);
  world.job["Requirements"] = "/Expr(TARGET.TotalCpus >= 8)/";
  all = ask(world);
  CHECK(all.front().seen == "TARGET.TotalCpus >= 8: its pilot has TotalCpus = 1");
  CHECK(all.front().change.find("a size it requires it has to request") != std::string::npos);
  world.pilots.known = false;
  CHECK(ask(world).front().key == "next-cycle");
}

TEST_CASE("why: what settings pass over in silence is told") {
  World world;
  world.policy.settings.job_labels = {"zone"};
  world.job["RequestLabels"] = "zone:a,rack:7";
  const auto all = ask(world);
  REQUIRE(find(all, "request-ignored"));
  CHECK(find(all, "request-ignored")->seen == "'rack' is not in job_labels");
}

TEST_CASE("why: without a status what it alone knows is said to be unknown") {
  World world;
  world.has_status = false;
  const auto all = ask(world);
  CHECK(all.front().key == "next-cycle");
  REQUIRE(find(all, "no-status"));
  // Nor is that of an earlier leader, where another one leads.
  world.has_status = true;
  world.last_cycle = Seconds(5000);
  world.status_problem = "403 Forbidden: exceeded quota";
  world.lease = {"p", "pod-1_a", Seconds(3), ""};
  const auto later = ask(world);
  CHECK(later.front().key == "next-cycle");
  REQUIRE(find(later, "no-status"));
  CHECK(find(later, "no-status")->seen == "pod-1_a leads");
  CHECK(find(later, "no-status")->what.find("breakers") != std::string::npos);
  // What it remembers is known by its lease.
  world.recalled = true;
  CHECK(find(ask(world), "no-status")->what.find("breakers") == std::string::npos);
  world.last_cycle = Seconds(10);
  CHECK(find(ask(world), "no-status"));
  world.lease.here = true;
  CHECK(ask(world).front().key == "quota");
  world.last_cycle = Seconds(5000);
  world.lease.failure = "the lease: 403 Forbidden";
  CHECK(ask(world).front().key == "no-leader");
}

TEST_CASE("why: what condor_submit adds to the requirements is not told") {
  World world;
  world.job["Requirements"] =
      R"(/Expr((TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && )"
      R"((TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || )"
      R"((TARGET.HasFileTransfer)))/)";
  CHECK(!find(ask(world), "requirements"));
  world.job["Requirements"] = "/Expr(TARGET.FileSystemDomain == MY.FileSystemDomain)/";
  const auto all = ask(world);
  REQUIRE(find(all, "requirements"));
  CHECK(find(all, "requirements")->change == "should_transfer_files = yes");
}

TEST_CASE("why: a status of another version or of nonsense costs only itself") {
  Scene scene;
  scene.now = k_now;
  scene.job.where = Where::queue;
  scene.job.schedds = {"ap"};
  scene.job.counts = true;
  scene.job.ad = condor::ad_from_json(R"({"JobStatus": 1})").value();
  scene.group = Group();
  for (const auto* text : {"{}", R"({"decisions": 7, "problems": {"a": 1}, "blind": []})",
                           R"({"decisions": [1, {"group": 2}, {"steps": 3}], "unix_time": "x"})"}) {
    scene.status = Json::parse(text);
    CHECK(!findings(scene).empty());
  }
}
