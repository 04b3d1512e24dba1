// Jobs whose glue is gone, by themselves; test_core_ends.cpp has what the core makes of them.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/lost_jobs.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

constexpr Time k_lost_at{1000s};

Container container_shown(const std::string& instance, std::int64_t restarts = 0) {
  Container container;
  container.name = "payload-0";
  container.last_instance = instance;
  container.memory_limit_kib = 4096;
  container.status.emplace().restart_count = restarts;
  return container;
}

Job lost_job(ClientId client, Time until = k_lost_at + 10s) {
  Job job;
  job.request.client = client;
  job.request.memory_mib = 64;
  job.end.container_by = until;
  return job;
}

kube::Pod pod_showing(const kube::ContainerStatus& shown) {
  kube::Pod pod;
  pod.statuses = {shown};
  pod.statuses.front().name = "payload-0";
  return pod;
}

kube::Termination termination_of(const std::string& id) {
  kube::Termination end;
  end.container_id = "test://" + id;
  end.exit_code = 137;
  return end;
}

}  // namespace

TEST_CASE("lost jobs: the status tells of the job's own container, which ends now or has ended before") {
  LostJobs jobs;
  jobs.add(container_shown("one"), lost_job(7));
  kube::ContainerStatus shown;
  shown.last_terminated = termination_of("two");
  CHECK(jobs.take_told(pod_showing(shown)).empty());
  CHECK(jobs.take_told(kube::Pod()).empty());
  SUBCASE("it is shown as ended") {
    shown.terminated = termination_of("one");
  }
  SUBCASE("the next one has begun") {
    shown.last_terminated = termination_of("one");
  }
  const auto told = jobs.take_told(pod_showing(shown));
  REQUIRE(told.size() == 1);
  CHECK(told.front().request.client == 7);
  CHECK(told.front().end.container->exit_code == 137);
  CHECK(told.front().end.request_mib == 64);
  CHECK(told.front().end.limit_kib == 4096);
  CHECK(jobs.empty());
}

TEST_CASE("lost jobs: where ids are not known, the next end that is shown counts") {
  LostJobs jobs;
  jobs.add(container_shown("", 3), lost_job(7));
  kube::ContainerStatus shown;
  shown.state = kube::ContainerStatus::State::running;
  shown.restart_count = 3;
  shown.last_terminated = termination_of("any");
  CHECK(jobs.take_told(pod_showing(shown)).empty());
  SUBCASE("it has ended") {
    shown.terminated = termination_of("any");
  }
  SUBCASE("it is started again") {
    shown.restart_count = 4;
  }
  SUBCASE("it waits to be") {
    shown.state = kube::ContainerStatus::State::waiting;
  }
  CHECK(jobs.take_told(pod_showing(shown)).size() == 1);
}

TEST_CASE("lost jobs: each waits as long as it may, and not when its client is gone") {
  LostJobs jobs;
  CHECK_FALSE(jobs.next_deadline());
  jobs.add(container_shown("one"), lost_job(7, k_lost_at + 20s));
  jobs.add(container_shown("two"), lost_job(8, k_lost_at + 10s));
  jobs.add(container_shown("three"), lost_job(9, k_lost_at + 30s));
  CHECK(jobs.has(7));
  CHECK(jobs.next_deadline() == k_lost_at + 10s);
  CHECK(jobs.take_due(k_lost_at + 9s).empty());
  const auto due = jobs.take_due(k_lost_at + 10s);
  REQUIRE(due.size() == 1);
  CHECK(due.front().request.client == 8);
  jobs.drop(7);
  CHECK_FALSE(jobs.has(7));
  CHECK(jobs.next_deadline() == k_lost_at + 30s);
  CHECK(jobs.take_all().size() == 1);
  CHECK(jobs.empty());
}
