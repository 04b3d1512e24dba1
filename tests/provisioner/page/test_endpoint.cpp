#include "provisioner/page/endpoint.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "provisioner/page/page.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_now{Seconds(1'700'000'000)};

std::string header(const http::StatusServer::Answer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers)
    if (key == name) return value;
  return "none";
}

}  // namespace

TEST_CASE("page: its files, and no others") {
  const PageEndpoint page;
  for (const auto* path : {"/", "/page.css", "/page.js", "/rows.js", "/plot.js"}) {
    CAPTURE(path);
    const auto answer = page.answer(path, false, k_now);
    REQUIRE(answer);
    CHECK(answer->status == 200);
    CHECK(answer->body.size() > 1000);
    CHECK(answer->type.starts_with("text/"));
    CHECK(header(*answer, "Content-Security-Policy") == k_page_policy);
    CHECK(header(*answer, "Glidepod-Now") == "1700000000");
  }
  for (const auto* path : {"", "//", "/page", "/page.html", "/../page.js", "/metrics", "/status", "/history",
                           "/history/", "/history/.json", "/history.json"})
    CHECK_MESSAGE(!page.answer(path, true, k_now), path);
}

TEST_CASE("page: nothing in it is from elsewhere, nothing is inline, nothing becomes markup") {
  const std::string html(find_page_file("/")->text);
  for (const auto* no :
       {"style=", "<style", "onclick", "onload", "http:", "https:", "javascript:", "src=\"/"})
    CHECK_MESSAGE(html.find(no) == std::string::npos, no);
  for (const auto* path : {"/page.js", "/rows.js", "/plot.js"}) {
    const std::string script(find_page_file(path)->text);
    for (const auto* no :
         {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "https:"})
      CHECK_MESSAGE(script.find(no) == std::string::npos, path, " ", no);
  }
  CHECK(k_page_policy.find("unsafe") == std::string_view::npos);
}

TEST_CASE("page: it tells the version") {
  const std::string html(find_page_file("/")->text);
  CHECK(html.find(">Glidepod " GLIDEPOD_VERSION "<") != std::string::npos);
}

TEST_CASE("page: the status of the leader, with a tag that changes with it") {
  PageEndpoint page;
  CHECK(page.answer("/status.json", true, k_now)->status == 503);
  page.reported("{}");
  const auto first = page.answer("/status.json", true, k_now).value();
  CHECK(first.status == 200);
  CHECK(first.body == "{}");
  CHECK(first.type == "application/json");
  CHECK(page.answer("/status.json", true, k_now)->tag == first.tag);
  page.reported("{}");
  CHECK(page.answer("/status.json", true, k_now)->tag != first.tag);
  PageEndpoint other;
  other.reported("{}");
  CHECK(other.answer("/status.json", true, k_now)->tag != first.tag);
  const auto elsewhere = page.answer("/status.json", false, k_now).value();
  CHECK(elsewhere.status == 503);
  CHECK(elsewhere.body == "another instance leads\n");
  CHECK(elsewhere.tag.empty());
}

TEST_CASE("page: the course of all groups and of each") {
  PageEndpoint page;
  Plan plan;
  plan.decisions.resize(1);
  plan.decisions[0].demand.idle = 7;
  page.decided(plan, k_now);
  const auto all = page.answer("/history/all.json", true, k_now).value();
  CHECK(all.status == 200);
  CHECK(all.body.find("[1699999980,7,0,0,0,0,0]") != std::string::npos);
  const auto group = page.answer("/history/" + plan.decisions[0].group.hash() + ".json", true, k_now).value();
  CHECK(group.body == all.body);
  CHECK(group.tag != all.tag);
  CHECK(page.answer("/history/0123.json", true, k_now)->status == 404);
  CHECK(page.answer("/history/all.json", false, k_now)->status == 503);
}
