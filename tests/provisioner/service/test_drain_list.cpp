#include "provisioner/service/drain_list.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace glidepod;
using namespace glidepod::provisioner;
using Json = nlohmann::json;

namespace {

Json lease_with(const std::string& text) {
  return {{"metadata", {{"annotations", {{k_drained_annotation, text}}}}}};
}

}  // namespace

TEST_CASE("drain list: it comes back from a lease as it was, beside what else is there") {
  const DrainList list = {
      {Drained::Kind::group, "b8caa165b8caa165", Drained::Mode::drain, "new image \"2\"", Time(Seconds(7))},
      {Drained::Kind::node, "west/n1", Drained::Mode::kill, "disks", Time(Seconds(8))},
      {Drained::Kind::place, "west", Drained::Mode::drain, "power", Time(Seconds(9))}};
  Json lease = {{"metadata", {{"annotations", {{"glidepod.io/memory", "m"}}}, {"resourceVersion", "5"}}}};
  lease = with_drained(lease, list).value();
  CHECK(lease["metadata"]["annotations"]["glidepod.io/memory"] == "m");
  CHECK(lease["metadata"]["resourceVersion"] == "5");
  CHECK(drained_json(drained_in(lease).value()) == drained_json(list));
  lease = with_drained(lease, {}).value();
  CHECK(!lease["metadata"]["annotations"].contains(k_drained_annotation));
  for (const auto& empty : {Json(), Json::object(), Json(7), lease}) CHECK(drained_in(empty).value().empty());
}

TEST_CASE("drain list: what is no such list is an error, and too long a one is not written") {
  for (const auto* text :
       {"x", "{}", "[1]", R"([{"kind": "pod", "name": "a", "mode": "drain", "reason": "r", "since": 1}])",
        R"([{"kind": "node", "name": "", "mode": "drain", "reason": "r", "since": 1}])",
        R"([{"kind": "node", "name": "a", "mode": "burn", "reason": "r", "since": 1}])",
        R"([{"kind": "node", "name": "a", "mode": "drain", "reason": "", "since": 1}])",
        R"([{"kind": "node", "name": "a", "mode": "drain", "reason": "r", "since": 1.5}])"}) {
    CAPTURE(text);
    CHECK(!drained_in(lease_with(text)));
  }
  DrainList list;
  for (std::size_t i = 0; i <= k_most_drained; ++i)
    list.push_back({Drained::Kind::node, fmt::format("n{}", i), Drained::Mode::drain, "r", Time(Seconds(1))});
  CHECK(!with_drained(Json::object(), list));
  list.pop_back();
  CHECK(with_drained(Json::object(), list));
}

TEST_CASE("drain list: a reason is one line of bounded length") {
  const auto list = drained_in(lease_with(Json::array({{{"kind", "node"},
                                                        {"name", "a"},
                                                        {"mode", "drain"},
                                                        {"reason", std::string(500, 'x') + "\ny"},
                                                        {"since", 1}}})
                                              .dump()));
  REQUIRE(list);
  CHECK(list->front().reason == std::string(200, 'x'));
}
