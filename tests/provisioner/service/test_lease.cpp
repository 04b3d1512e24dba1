#include "provisioner/service/lease.hpp"

#include <doctest/doctest.h>

#include "provisioner/service/drain_list.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using kube::FakeServer;
using std::chrono::seconds;

namespace {

// An API that keeps one lease, as Kubernetes does: a write needs the version that it replaces.
struct Api {
  Loop& loop;
  FakeServer server{loop};
  Json lease;
  int version = 0, writes = 0;
  bool down = false, lose_next_answer = false;

  explicit Api(Loop& l) : loop(l) {
    server.on_request = [this](const FakeServer::Request& request) { return answer(request); };
  }
  static std::string status(int code, const char* reason) {
    return Json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", "m"}}.dump();
  }
  FakeServer::Reply answer(const FakeServer::Request& request) {
    if (down) return {"", true};
    if (request.method == "GET")
      return lease.is_null() ? FakeServer::json(404, status(404, "NotFound"))
                             : FakeServer::json(200, lease.dump());
    auto fresh = Json::parse(request.body);
    const bool conflict = request.method == "POST"
                              ? !lease.is_null()
                              : fresh["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"];
    if (conflict) return FakeServer::json(409, status(409, "Conflict"));
    ++writes;
    fresh["metadata"]["resourceVersion"] = std::to_string(++version);
    lease = fresh;
    if (std::exchange(lose_next_answer, false)) return {"", true};
    return FakeServer::json(request.method == "POST" ? 201 : 200, lease.dump());
  }
  std::string holder() const { return lease["spec"]["holderIdentity"]; }
};

struct Candidate {
  std::unique_ptr<kube::Client> client;
  std::vector<bool> changes;
  std::unique_ptr<Leader> leader;

  Candidate(Api& api, const char* identity, seconds duration = seconds(1),
            std::function<std::chrono::nanoseconds()> clock = LeaseOptions::boot_time) {
    client = kube::Client::create(api.loop, {"http://localhost", api.server.socket(), {}, {}}).value();
    LeaseOptions options{
        "ns", "lease", identity, duration, Milliseconds(20), Milliseconds(900), std::move(clock)};
    leader = std::make_unique<Leader>(*client, options, [this](bool leads) { changes.push_back(leads); });
    leader->start();
  }
};

struct Scene {
  Loop loop = Loop::create().value();
  Api api{loop};
  void until(const std::function<bool()>& condition) {
    bool met = condition();
    for (int i = 0; i < 3000 && !met; ++i) {
      REQUIRE(loop.run_once(Milliseconds(5)).ok());
      met = condition();
    }
    REQUIRE(met);
  }
};

Json lease_of(const char* holder, int duration) {
  return {
      {"metadata", {{"resourceVersion", "1"}}},
      {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", duration}, {"leaseTransitions", 4}}}};
}

}  // namespace

TEST_CASE("lease: whose move it is") {
  CHECK(judge_lease(lease_of("me", 30), "me", seconds(1000)) == LeaseMove::renew);
  CHECK(judge_lease(lease_of("other", 30), "me", seconds(30)) == LeaseMove::wait);
  CHECK(judge_lease(lease_of("other", 30), "me", seconds(31)) == LeaseMove::take);
  CHECK(judge_lease(lease_of("", 30), "me", seconds(0)) == LeaseMove::take);
  CHECK(judge_lease(Json{{"spec", nullptr}}, "me", seconds(0)) == LeaseMove::take);
  CHECK(judge_lease(Json{{"spec", {{"holderIdentity", 5}}}}, "me", seconds(0)) == LeaseMove::take);
}

TEST_CASE("lease: what is written") {
  const LeaseOptions options{"ns", "name", "me"};
  const auto now = std::chrono::system_clock::time_point(std::chrono::microseconds(1'800'000'000'000'042));
  const auto fresh = renewed_lease(Json(), options, "me", now);
  CHECK(fresh["kind"] == "Lease");
  CHECK(fresh["metadata"]["name"] == "name");
  CHECK(fresh["spec"] == Json{{"holderIdentity", "me"},
                              {"leaseDurationSeconds", 30},
                              {"renewTime", "2027-01-15T08:00:00.000042Z"},
                              {"acquireTime", "2027-01-15T08:00:00.000042Z"},
                              {"leaseTransitions", 0}});
  CHECK(renewed_lease(lease_of("other", 1), options, "me", now)["spec"]["leaseTransitions"] == 5);
  CHECK(renewed_lease(lease_of("me", 1), options, "me", now)["spec"]["leaseTransitions"] == 4);
  CHECK(renewed_lease(lease_of("other", 1), options, "me", now)["metadata"]["resourceVersion"] == "1");
  const auto given_up = renewed_lease(lease_of("me", 30), options, "", now);
  CHECK(given_up["spec"]["holderIdentity"] == "");
  CHECK(given_up["spec"]["leaseDurationSeconds"] == 1);
}

TEST_CASE("lease: of two, one leads, when it gives up, the other does at once") {
  Scene scene;
  Candidate a(scene.api, "a", seconds(60)), b(scene.api, "b", seconds(60));
  scene.until([&] { return a.leader->knows() && b.leader->knows(); });
  CHECK(a.leader->leads() != b.leader->leads());
  auto& first = a.leader->leads() ? a : b;
  auto& second = a.leader->leads() ? b : a;
  scene.until([&] { return scene.api.writes > 3; });
  CHECK(second.changes.empty());
  CHECK(second.leader->holder() == scene.api.holder());
  bool released = false;
  first.leader->release([&] { released = true; });
  CHECK(!first.leader->leads());
  scene.until([&] { return released && second.leader->leads(); });
  CHECK(first.changes == std::vector<bool>{true});
  CHECK(second.changes == std::vector<bool>{true});
}

TEST_CASE("lease: a holder that is gone is followed after the lease's duration, not before") {
  Scene scene;
  auto a = std::make_unique<Candidate>(scene.api, "a");
  scene.until([&] { return a->leader->leads(); });
  Candidate b(scene.api, "b");
  const auto began = std::chrono::steady_clock::now();
  a.reset();
  scene.until([&] { return b.leader->leads(); });
  CHECK(std::chrono::steady_clock::now() - began >= Milliseconds(950));
}

TEST_CASE("lease: without the API a leader stops leading, and leads again when it is back") {
  Scene scene;
  Candidate a(scene.api, "a");
  scene.until([&] { return a.leader->leads(); });
  scene.api.down = true;
  // It leads no more by the clock; that it is told so comes a moment later.
  scene.until([&] { return a.changes.size() > 1; });
  CHECK(a.changes == std::vector<bool>{true, false});
  CHECK(!a.leader->leads());
  scene.api.down = false;
  scene.until([&] { return a.leader->leads(); });
  CHECK(scene.api.holder() == "a");
}

TEST_CASE("lease: a lost answer to a renewal costs nothing, a lease taken by another does") {
  Scene scene;
  Candidate a(scene.api, "a");
  scene.until([&] { return a.leader->leads(); });
  scene.api.lose_next_answer = true;
  const int writes = scene.api.writes;
  scene.until([&] { return scene.api.writes > writes + 3; });
  CHECK(a.changes == std::vector<bool>{true});
  scene.api.lease["spec"]["holderIdentity"] = "thief";
  scene.api.lease["metadata"]["resourceVersion"] = std::to_string(++scene.api.version);
  scene.until([&] { return !a.leader->leads(); });
  CHECK(a.leader->holder() == "thief");
}

TEST_CASE("lease: who stood still leads no more by the clock, before any timer has said so") {
  Scene scene;
  std::chrono::nanoseconds now{0};
  Candidate a(scene.api, "a", seconds(1), [&now] { return now; });
  scene.until([&] { return a.leader->leads(); });
  now += Milliseconds(899);
  CHECK(a.leader->leads());
  now += Milliseconds(1'000);  // and not a turn of the loop
  CHECK_FALSE(a.leader->leads());
  CHECK(a.changes == std::vector<bool>{true});
  // It is its own still, since nobody has taken it, and the next renewal shows that.
  scene.until([&] { return a.leader->leads(); });
}

TEST_CASE("lease: giving up ends soon without an API") {
  Scene scene;
  Candidate a(scene.api, "a");
  scene.until([&] { return a.leader->leads(); });
  scene.api.down = true;
  bool released = false;
  a.leader->release([&] { released = true; });
  scene.until([&] { return released; });
  CHECK(a.changes == std::vector<bool>{true});
}

TEST_CASE("lease: what operators have drained is kept by renewals, and each instance is told of a change") {
  Scene scene;
  Candidate a(scene.api, "a", seconds(60)), b(scene.api, "b", seconds(60));
  int told[2] = {0, 0};
  a.leader->on_drained([&] { ++told[0]; });
  b.leader->on_drained([&] { ++told[1]; });
  scene.until([&] { return a.leader->knows() && b.leader->knows(); });
  auto& first = a.leader->leads() ? a : b;
  first.leader->remember("{}");
  scene.until([&] { return scene.api.lease["metadata"]["annotations"].is_object(); });
  CHECK(told[0] + told[1] == 0);
  const DrainList list = {{Drained::Kind::node, "n1", Drained::Mode::kill, "new disks", Time(seconds(1000))}};
  scene.api.lease = with_drained(scene.api.lease, list).value();
  // As any writer's, so that a renewal that is under way meets another version.
  scene.api.lease["metadata"]["resourceVersion"] = std::to_string(++scene.api.version);
  scene.until([&] { return told[0] == 1 && told[1] == 1; });
  const int writes = scene.api.writes;
  scene.until([&] { return scene.api.writes > writes + 3; });
  CHECK(drained_json(drained_in(scene.api.lease).value()) == drained_json(list));
  CHECK(drained_json(drained_in(first.leader->lease()).value()) == drained_json(list));
  CHECK(first.leader->leads());
  CHECK(first.changes == std::vector<bool>{true});
  // Given back, and taken by the next one.
  bool released = false;
  first.leader->release([&] { released = true; });
  auto& second = &first == &a ? b : a;
  scene.until([&] { return released && second.leader->leads(); });
  CHECK(drained_in(scene.api.lease).value().size() == 1);
  CHECK(told[0] + told[1] == 2);
  CHECK(drained_in(with_drained(scene.api.lease, {}).value()).value().empty());
}
