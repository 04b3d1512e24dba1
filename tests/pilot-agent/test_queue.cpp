// The queue by itself; test_core_bind.cpp has who is placed where.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pilot-agent/core/queue.hpp"
#include "tests/pilot-agent/taken.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

constexpr Time k_queued_at{1000s};

Request queued_request(ClientId client) {
  Request request;
  request.client = client;
  return request;
}

// Two requests in the queue, and one that waits for its container's image.
struct Queued {
  Queued() {
    queue.add(queued_request(1), k_queued_at);
    queue.add(queued_request(2), k_queued_at + 5s);
    Switching step;
    step.waiting = Waiting{queued_request(3), k_queued_at};
    containers.add("payload-0").state = step;
  }
  std::vector<ClientId> in_queue() const {
    std::vector<ClientId> clients;
    for (const Waiting& waiting : queue) clients.push_back(waiting.request.client);
    return clients;
  }

  Policy policy;
  Actions actions;
  Containers containers{actions, {}};
  Answers answers{actions};
  Queue queue{policy, containers, answers};
};

}  // namespace

TEST_CASE("queue: each is offered in its order, and leaves once it is placed") {
  Queued queued;
  queued.queue.put_back(Waiting{queued_request(4), k_queued_at});
  std::vector<ClientId> offered;
  queued.queue.serve([&](Waiting& waiting) {
    offered.push_back(waiting.request.client);
    return waiting.request.client == 1;
  });
  CHECK(offered == std::vector<ClientId>{4, 1, 2});
  CHECK(queued.in_queue() == std::vector<ClientId>{4, 2});
  queued.queue.erase_if([](const Waiting& waiting) { return waiting.request.client == 4; });
  CHECK(queued.queue.size() == 1);
  CHECK(queued.queue.take_all().size() == 1);
  CHECK(queued.queue.empty());
}

TEST_CASE("queue: who waits for a container's image is found and dropped as who is in the queue") {
  Queued queued;
  CHECK(queued.queue.find(2)->request.client == 2);
  CHECK(queued.queue.find(3)->request.client == 3);
  CHECK(queued.queue.find(4) == nullptr);
  const auto others = queued.queue.unbegun([](const Request& request) { return request.client != 2; });
  REQUIRE(others.size() == 2);
  CHECK(others[0].client == 1);
  CHECK(others[1].client == 3);
  queued.queue.drop(1, EventKind::gone);
  queued.queue.drop(3, EventKind::gone);
  CHECK(queued.queue.find(3) == nullptr);
  CHECK(queued.in_queue() == std::vector<ClientId>{2});
}

TEST_CASE("queue: it is closed step by step, and refuses whom a step does not take, wherever they wait") {
  Queued queued;
  const auto refused = [&queued] {
    std::vector<ClientId> clients;
    for (const auto& fail : taken<Fail>(queued.actions)) clients.push_back(fail.client);
    return clients;
  };
  Request inner = queued_request(4);
  inner.outer = 7;
  CHECK(queued.queue.stage() == Queue::Stage::open);
  CHECK(queued.queue.refusal(queued_request(5)).empty());
  queued.queue.add(inner, k_queued_at);
  queued.queue.close(Queue::Stage::withdrawn);
  CHECK(refused() == std::vector<ClientId>{1, 2, 3});
  CHECK(queued.queue.refusal(queued_request(5)) ==
        "the pilot takes no more jobs: an operator has drained it");
  CHECK(queued.queue.refusal(inner).empty());
  queued.queue.close(Queue::Stage::draining);
  CHECK(refused() == std::vector<ClientId>{4});
  CHECK(queued.queue.empty());
  CHECK(queued.queue.refusal(inner) == "the pilot is ending");
  queued.queue.close(Queue::Stage::withdrawn);
  CHECK(queued.queue.stage() == Queue::Stage::draining);
}

TEST_CASE("queue: a request waits as long as a bind may take") {
  Queued queued;
  const auto longest = queued.policy.bind_deadline;
  CHECK(queued.queue.next_deadline() == k_queued_at + longest);
  CHECK(queued.queue.take_due(k_queued_at + longest - 1s).empty());
  const auto due = queued.queue.take_due(k_queued_at + longest);
  REQUIRE(due.size() == 1);
  CHECK(due.front().client == 1);
  CHECK(queued.queue.next_deadline() == k_queued_at + 5s + longest);
  queued.queue.drop(2, EventKind::gone);
  CHECK_FALSE(queued.queue.next_deadline());
}
