#include "provisioner/page/endpoint.hpp"

#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "provisioner/page/page.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::string_view k_status = "/status.json", k_history = "/history/", k_ending = ".json";
constexpr const char* k_json = "application/json";

}  // namespace

PageEndpoint::PageEndpoint() {
  tags_ = random_hex(8) + '-';
}

void PageEndpoint::reported(std::string status) {
  status_ = std::move(status);
  ++reports_;
}

http::StatusServer::Answer PageEndpoint::content(std::string_view path, bool leads) const {
  if (const auto* file = find_page_file(path)) return {200, std::string(file->text), std::string(file->type)};
  if (!leads) return {503, "another instance leads\n"};
  if (path == k_status) {
    if (status_.empty()) return {503, "no cycle has ended yet\n"};
    return {200, status_, k_json, tags_ + std::to_string(reports_)};
  }
  path.remove_prefix(k_history.size());
  path.remove_suffix(k_ending.size());
  const auto line = course_.json(path);
  if (!line) return {404, "no history is kept of that\n"};
  return {200, json_text(*line), k_json, fmt::format("{}{}-{}", tags_, path, reports_)};
}

std::optional<http::StatusServer::Answer> PageEndpoint::answer(std::string_view path, bool leads,
                                                               Time now) const {
  const bool history = path.size() > k_history.size() + k_ending.size() && path.starts_with(k_history) &&
                       path.ends_with(k_ending);
  if (path != k_status && !history && find_page_file(path) == nullptr) return std::nullopt;
  auto answer = content(path, leads);
  // A browser asks again each time; it is told what the time is here, whatever its own clock says.
  answer.headers = {{"Cache-Control", "no-cache"},
                    {"Content-Security-Policy", std::string(k_page_policy)},
                    {"Cross-Origin-Resource-Policy", "same-origin"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Glidepod-Now", std::to_string(now.time_since_epoch().count())}};
  return answer;
}

}  // namespace glidepod::provisioner
