#include <doctest/doctest.h>
#include <time.h>

#include <random>

#include "provisioner/demand/budget.hpp"
#include "provisioner/demand/demand.hpp"
#include "tests/condor/fake_runner.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using condor::Command;
using condor::FakeRunner;

namespace {

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::string repeated(std::string_view text, int times, std::string_view between = "") {
  std::string result(text);
  for (int i = 1; i < times; ++i) result.append(between).append(text);
  return result;
}

// An ad of condor_q -group-by, on lines of its own.
std::string ad(std::string_view owner, int jobs, const std::string& more) {
  return fmt::format("{{\n \"JobCount\": {}, \"Owner\": \"{}\", {}\n}}\n,\n", jobs, owner, more);
}
std::string good(std::string_view owner, int cpus) {
  return ad(owner, 100,
            fmt::format(R"("RequestCpus": {}, "RequestMemory": "\/Expr(1024 * {})\/")", cpus, cpus));
}

// One job whose memory is the sum of the elements of a list that another attribute is, again and again.
std::string endless(std::string_view attribute = "RequestMemory") {
  return ad("mallory", 1,
            fmt::format(R"("RequestDiskVolumes": [{}], "{}": "\/Expr({})\/")", repeated("1", 3000, ","),
                        attribute, repeated("RequestDiskVolumes[0]", 9000, "+")));
}

// What one user may have put into a queue. Each is another group of jobs.
std::string hostile(std::mt19937_64& random) {
  const auto below = [&random](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  const auto expression = [](const std::string& text) { return "\"\\/Expr(" + text + ")\\/\""; };
  switch (below(11)) {
    case 0:
      return endless();
    case 1:
      return ad("mallory", 1, "\"RequestCpus\": " + expression(repeated("(", 5000)));
    case 2:
      return ad("mallory", below(9),
                "\"RequestMemory\": " + expression(repeated("RequestDisk", 4000, "+")) +
                    ", \"RequestDisk\": " + expression(repeated("RequestCpus", 4000, "*")));
    case 3:
      return ad("mallory", 1,
                "\"RequestGPUs\": 1, \"RequestGPUTypes\": \"" + repeated("A", 50'000, ",") + "\"");
    case 4:
      return ad("mallory", 1,
                "\"RequestGPUs\": 1, \"RequestGPUTypes\": \"" + std::to_string(below(99)) +
                    repeated("x", 50'000) + "\"");
    case 5: {
      std::string labels;
      for (int i = 0; i < 5000; ++i) labels += fmt::format("zone:{},", i);
      return ad("mallory", 1, "\"RequestLabels\": \"" + labels + "\"");
    }
    case 6:
      return ad("mallory", 1, "\"RequestDiskVolumes\": \"" + repeated("claim:/data/x", 5000, ",") + "\"");
    case 7:
      return ad("mallory", 1, "\"RequestCpus\": 1e300, \"RequestMemory\": -1");
    case 8:
      return ad("mallory", 1, "\"RequestCpus\": \"" + repeated("cores", 100'000) + "\"");
    case 9:
      return ad(repeated("mallory", 10'000), 1, "\"RequestCpus\": 1");
    default:
      return ad("mallory", 2'000'000'000, fmt::format("\"RequestCpus\": {}", 1 + below(64)));
  }
}

struct Pool {
  FakeRunner runner;
  PolicySettings policy;
  HtcondorSettings settings;
  std::map<std::string, std::string> answers;
  std::string schedds;  // instead of those that answer
  AnswerBudget::Clock processor = AnswerBudget::processor_time;

  Pool() {
    policy.job_labels = {"zone"};
    policy.job_volumes = {"claim"};
    settings.lookahead = 100;
  }
  Demand fetch() {
    runner.answer = [this](const Command& command) -> FakeRunner::Reply {
      if (command.argv[0] == "condor_q") return {"[\n" + answers.at(command.argv[2]) + "]\n", {}};
      auto list = schedds;
      if (list.empty())
        for (const auto& [name, answer] : answers)
          list +=
              fmt::format("{{\n \"Name\": \"{}\", \"AuthenticatedIdentity\": \"condor@pool\"\n}}\n,\n", name);
      return {"[\n" + list + "]\n", {}};
    };
    CondorDemand source(runner, settings, policy, "ns", CondorDemand::Namespace::ignored);
    source.set_processor_clock(processor);
    Demand result;
    source.fetch([&result](Demand demand) { result = std::move(demand); });
    runner.run_all();
    return result;
  }
};

// What everybody but one owner waits for.
std::map<std::string, std::int64_t> others(const Demand& demand) {
  std::map<std::string, std::int64_t> result;
  for (const auto& [group, jobs] : demand.groups)
    for (const auto& [owner, idle] : jobs.owners)
      if (!owner.starts_with("mallory")) result[group.name() + ' ' + owner] += idle;
  return result;
}

std::string all_of(const std::vector<std::string>& problems) {
  return fmt::format("{}", fmt::join(problems, "\n"));
}

}  // namespace

TEST_CASE("hostile queues: one job costs no more than its bytes allow") {
  Pool pool;
  pool.answers["a"] = good("alice", 1) + endless() + good("bob", 2);
  const auto before = processor_seconds();
  const auto demand = pool.fetch();
  CHECK(processor_seconds() - before < 1);
  CHECK(others(demand).size() == 2);
  CHECK(all_of(demand.problems).find("is too much work") != std::string::npos);
}

TEST_CASE("hostile queues: many such jobs of one owner take nothing from another's") {
  const auto cost = [](int ads, std::string_view attribute, Demand& demand) {
    Pool pool;
    for (int i = 0; i < ads; ++i) pool.answers["a"] += endless(attribute);
    pool.answers["a"] += good("alice", 1);
    const auto before = processor_seconds();
    demand = pool.fetch();
    return processor_seconds() - before;
  };
  Demand demand;
  const auto one = cost(1, "RequestMemory", demand), text = cost(20, "NobodyAsks", demand);
  // The owner's second, what its last ad takes above it, and to read the text of all.
  CHECK(cost(20, "RequestMemory", demand) < 1 + one + 1.5 * text + 0.2);
  CHECK(others(demand) == std::map<std::string, std::int64_t>{{"1;4096;8000000;;0;; alice", 100}});
  CHECK(demand.bad_ads == 20);
}

TEST_CASE("hostile queues: an owner's processor time is spent apart from another's") {
  std::chrono::nanoseconds now{0};
  AnswerBudget budget([&now] { return now; });
  std::map<std::string, int> read;
  const auto ad = [&](const std::string& owner, std::chrono::milliseconds takes) {
    return budget.read(owner, [&] {
      ++read[owner];
      now += takes;
    });
  };
  using Spent = AnswerBudget::Spent;
  using std::chrono::milliseconds;
  for (int i = 0; i < 10; ++i) CHECK(ad("mallory", milliseconds(100)) == Spent::no);
  CHECK(ad("mallory", milliseconds(0)) == Spent::by_owner);
  CHECK(read["mallory"] == 10);
  CHECK(ad("alice", milliseconds(1)) == Spent::no);
  now += std::chrono::hours(1);  // of somebody else's
  for (int other = 0; other < 4; ++other)
    CHECK(ad("other" + std::to_string(other), milliseconds(1000)) == Spent::no);
  CHECK(ad("alice", milliseconds(1)) == Spent::by_all);
  CHECK(read["alice"] == 1);
}

TEST_CASE("hostile queues: what is not read of a schedd is not taken for no jobs, and what is read counts") {
  Pool pool;
  std::chrono::nanoseconds now{0};
  pool.processor = [&now] { return now += std::chrono::milliseconds(500); };
  for (int i = 0; i < 11; ++i) pool.answers["a"] += good("user" + std::to_string(i), 1);
  SUBCASE("of the only one") {}
  SUBCASE("beside another one") {
    pool.answers["b"] = good("alice", 2);
  }
  const auto demand = pool.fetch();
  CHECK_FALSE(demand.blind);
  CHECK(demand.schedds_failed == 1);
  REQUIRE(demand.silent.contains("a"));
  CHECK(demand.silent.at("a").find("the others are not read, and nothing is taken back") !=
        std::string::npos);
  CHECK(all_of(demand.problems).find(demand.silent.at("a")) != std::string::npos);
  CHECK(others(demand).size() == (pool.answers.contains("b") ? 11 : 10));
}

TEST_CASE("hostile queues: a schedd's name has a length, also where it is not trusted") {
  Pool pool;
  pool.answers["a"] = good("alice", 1);
  for (const auto* identity : {"condor@pool", "nobody"}) {
    pool.settings.schedd_whitelist_regexp = "[a-z](.|x)*";
    pool.schedds = fmt::format("{{\n \"Name\": \"{}\", \"AuthenticatedIdentity\": \"{}\"\n}}\n,\n",
                               repeated("s", 60'000), identity) +
                   "{\n \"Name\": \"a\", \"AuthenticatedIdentity\": \"condor@pool\"\n}\n,\n";
    const auto demand = pool.fetch();
    CHECK(demand.schedds_asked == 1);
    CHECK(demand.groups.size() == 1);
    CHECK(all_of(demand.problems).find("longer than 256 characters") != std::string::npos);
  }
}

TEST_CASE("hostile queues: one owner's jobs change nothing of what another's get") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937_64 random(seed);
    Pool clean, attacked;
    for (int i = 0; i < 12; ++i) {
      const auto schedd = fmt::format("s{}", random() % 3);
      const auto queue = good(random() % 2 == 0 ? "alice" : "bob", 1 + static_cast<int>(random() % 8));
      clean.answers[schedd] += queue;
      if (random() % 2 == 0) attacked.answers[schedd] += hostile(random);
      attacked.answers[schedd] += queue;
    }
    const auto demand = attacked.fetch();
    CAPTURE(seed);
    CHECK(others(demand) == others(clean.fetch()));
    for (const auto& [group, jobs] : demand.groups) {
      CHECK(group.name().size() < 10'000);
      for (const auto& [owner, idle] : jobs.owners) CHECK(owner.size() <= 256);
    }
    for (const auto& problem : demand.problems) CHECK(problem.size() < 1'000);
  }
}
