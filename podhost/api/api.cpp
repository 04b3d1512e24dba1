#include "podhost/api/api.hpp"

#include <httplib.h>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "lib/http/limited_stream.hpp"
#include "lib/kube/selector.hpp"
#include "podhost/api/access.hpp"
#include "podhost/api/json_input.hpp"
#include "podhost/api/log_stream.hpp"
#include "podhost/api/patch.hpp"
#include "podhost/api/resize.hpp"
#include "podhost/api/watch.hpp"

namespace glidepod::podhost {
namespace {

using kube::ApiError;

using Seconds = std::chrono::seconds;

constexpr Seconds k_watch_limit{1800};
constexpr std::string_view k_token_path = "/t/";
constexpr std::int64_t k_longest_grace = 0x7fffffff;  // seconds

void answer(httplib::Response& response, int code, const Json& body) {
  response.status = code;
  response.set_content(json_text(body) + "\n", "application/json");
}

std::string new_uid() {
  std::string hex = random_hex(16);
  hex[12] = '4';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

bool truth(const std::string& text) {
  return text == "true" || text == "1";
}

// Compares in a time that does not depend on where they differ.
bool same_secret(const std::string& given, const std::string& secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    difference |=
        static_cast<unsigned char>(secret[i]) ^ static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  }
  return difference == 0 && !secret.empty();
}

std::string verb_of(const httplib::Request& request, const std::string& name) {
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "patch";
  if (request.method == "DELETE") return "delete";
  if (truth(request.get_param_value("watch"))) return "watch";
  return name.empty() ? "list" : "get";
}

// kubectl delete says it in the body, all else in the query.
Result<bool> dry_run_of(const httplib::Request& request, const Json& body) {
  std::string value = request.get_param_value("dryRun");
  const Json list = body.value("dryRun", Json::array());
  if (list.is_array() && !list.empty() && list[0].is_string()) value = list[0].get<std::string>();
  if (value.empty() || value == "All") return value == "All";
  return ApiError{422, "Invalid",
                  fmt::format("DryRun.dryRun: Unsupported value: \"{}\": supported values: \"All\"", value)}
      .to_error();
}

Result<Json> body_of(const httplib::Request& request) {
  const std::string raw = request.get_header_value("Content-Type");
  const std::string type(trim(std::string_view(raw).substr(0, raw.find(';'))));
  if (!type.empty() && type != "application/json") return ApiError::unsupported_media_type(type);
  auto body = parse_json(request.body);
  if (!body) return ApiError::bad_request("the body of the request " + body.error().message());
  if (!body->is_object()) return ApiError::bad_request("the body of the request must be an object");
  return std::move(body).value();
}

Result<Selection> selection_of(const std::string& name_space, const httplib::Request& request) {
  Selection selection;
  selection.name_space = name_space;
  auto labels = kube::LabelSelector::parse(request.get_param_value("labelSelector"));
  if (!labels) return ApiError::bad_request(labels.error().message());
  auto fields = kube::FieldSelector::parse(request.get_param_value("fieldSelector"));
  if (!fields) return ApiError::bad_request(fields.error().message());
  selection.labels = std::move(labels).value();
  selection.fields = std::move(fields).value();
  return selection;
}

}  // namespace

void Api::handle(const http::Connection& connection, const httplib::Request& request,
                 httplib::Response& response) {
  bool answered = false;
  auto outcome = route(connection, request, response, &answered);
  if (!outcome) {
    const auto error = ApiError::of(outcome.error());
    answer(response, error.code, error.to_json());
  } else if (!answered) {
    for (const auto& warning : outcome->warnings)
      response.set_header("Warning", fmt::format("299 - \"{}\"", warning));
    answer(response, outcome->code, outcome->body);
  }
}

// kubectl sends no token over plain HTTP; for it the token may lead the path: --server http://HOST/t/TOKEN.
std::optional<http::Refusal> Api::admit(const http::Connection& connection,
                                        const httplib::Request& request) const {
  if (connection.caller.kind != http::Caller::Kind::network) return std::nullopt;
  const std::string header = request.get_header_value("Authorization");
  std::string given = header.starts_with("Bearer ") ? header.substr(7) : "";
  if (request.path.starts_with(k_token_path)) {
    const auto begin = k_token_path.size();
    given = request.path.substr(begin, request.path.find('/', begin) - begin);
  }
  if (same_secret(given, settings_.token)) return std::nullopt;
  return http::Refusal{401, "Unauthorized"};
}

void Api::refuse(const http::Refusal& refusal, httplib::Response& response) {
  const auto error = [&refusal] {
    switch (refusal.status) {
      case 401:
        return ApiError::unauthorized();
      case 404:
        return ApiError::path_not_found();
      case 405:
        return ApiError::method_not_allowed();
      case 411:
        return ApiError{411, "LengthRequired", refusal.message}.to_error();
      case 413:
        return ApiError::too_large();
      case 500:
        return ApiError::internal(refusal.message);
      default:
        return ApiError{refusal.status, "BadRequest", refusal.message}.to_error();
    }
  }();
  answer(response, refusal.status, ApiError::of(error).to_json());
}

Result<Api::Answer> Api::route(const http::Connection& connection, const httplib::Request& request,
                               httplib::Response& response, bool* answered) {
  std::string path = request.path;
  if (connection.caller.kind == http::Caller::Kind::network && path.starts_with(k_token_path)) {
    const auto end = path.find('/', k_token_path.size());
    path = end == std::string::npos ? "/" : path.substr(end);
  }
  if (path == "/healthz" || path == "/livez" || path == "/readyz") {
    if (path == "/readyz" && !ready_) return ApiError::unavailable("podhost is stopping");
    response.set_content("ok", "text/plain");
    *answered = true;
    return Answer{};
  }
  if (Json found = discovery(path); !found.is_null()) {
    if (request.method != "GET" && request.method != "HEAD") return ApiError::method_not_allowed();
    // As Protocol Buffers, which kubectl asks for, a document without a schema is no bytes at all. Its type
    // is asked for with an '@', which newer Go libraries refuse in an answer.
    if (path == "/openapi/v2" && request.get_header_value("Accept").find("protobuf") != std::string::npos) {
      response.set_content("", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
      *answered = true;
      return Answer{};
    }
    return Answer{200, std::move(found), {}};
  }
  std::vector<std::string> parts = split(path, '/');
  if (parts.size() > 1 && parts.back().empty()) parts.pop_back();
  // "", "api", "v1", then "pods" or "namespaces", NS, "pods", NAME, SUBRESOURCE
  if (parts.size() < 4 || parts[1] != "api" || parts[2] != "v1") return ApiError::path_not_found();
  if (parts[3] == "pods" && parts.size() == 4) return pods(connection, {}, request, response, answered);
  if (parts[3] != "namespaces" || parts.size() < 5) return ApiError::path_not_found();
  if (parts.size() == 5 && request.method == "GET" && valid_dns_label(parts[4]) &&
      connection.caller.kind != http::Caller::Kind::guest) {
    return Answer{200,
                  {{"kind", "Namespace"},
                   {"apiVersion", "v1"},
                   {"metadata", {{"name", parts[4]}}},
                   {"status", {{"phase", "Active"}}}},
                  {}};
  }
  if (parts.size() < 6 || parts[5] != "pods" || parts.size() > 8) return ApiError::path_not_found();
  const Target target{parts[4], parts.size() > 6 ? parts[6] : "", parts.size() > 7 ? parts[7] : ""};
  return pods(connection, target, request, response, answered);
}

Result<void> Api::refuse_guest(const http::Caller& caller, const Target& target,
                               const httplib::Request& request) {
  if (caller.kind != http::Caller::Kind::guest) return {};
  const PodPtr own = store_.find(caller.guest);
  if (!own) return ApiError::unauthorized();
  const auto fields = kube::FieldSelector::parse(request.get_param_value("fieldSelector"));
  return refuse_pod_request(
      *own, {verb_of(request, target.name), target.name_space, target.name, target.subresource,
             fields ? fields.value().required("metadata.name") : ""});
}

Result<Api::Answer> Api::pods(const http::Connection& connection, const Target& target,
                              const httplib::Request& request, httplib::Response& response, bool* answered) {
  TRY(refuse_guest(connection.caller, target, request));
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (target.subresource == "log" && reads) {
    TRY(log(connection, target, request, response));
    *answered = true;
    return Answer{};
  }
  if (target.subresource == "resize") {
    if (request.method == "PATCH" || request.method == "PUT") return change(connection, target, request);
    return ApiError::method_not_allowed();
  }
  if (!target.subresource.empty() && !(target.subresource == "status" && reads))
    return ApiError::path_not_found();
  if (target.name.empty()) {
    if (reads) return list(connection, target, request, response, answered);
    if (request.method == "POST" && !target.name_space.empty()) return create(target, request);
    return ApiError::method_not_allowed();
  }
  if (reads && truth(request.get_param_value("watch")))
    return list(connection, target, request, response, answered);
  if (reads) {
    auto pod = store_.get(target.name_space, target.name);
    if (!pod) return pod.error();
    return Answer{200, **pod, {}};
  }
  if (request.method == "PATCH" || request.method == "PUT") return change(connection, target, request);
  if (request.method == "DELETE") return remove(target, request);
  return ApiError::method_not_allowed();
}

Result<Api::Answer> Api::create(const Target& target, const httplib::Request& request) {
  if (!ready_) return ApiError::unavailable("podhost is stopping");
  auto body = body_of(request);
  if (!body) return body.error();
  Json pod = std::move(*body);
  if (pod.value("kind", Json("Pod")) != "Pod" || pod.value("apiVersion", Json("v1")) != "v1") {
    return ApiError::bad_request("the object provided is not a v1 Pod");
  }
  if (!pod["metadata"].is_object()) return ApiError::bad_request("the pod has no metadata");
  Json& metadata = pod["metadata"];
  const Json name_space = metadata.value("namespace", Json());
  if (!name_space.is_null() && name_space != Json("") && name_space != target.name_space) {
    return ApiError::bad_request(fmt::format(
        "the namespace of the provided object does not match the namespace sent on the request ({})",
        target.name_space));
  }
  if (metadata.value("name", Json("")) == Json("") && metadata.value("generateName", Json()).is_string()) {
    metadata["name"] = metadata["generateName"].get<std::string>() + random_hex(3).substr(0, 5);
  }
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  metadata["namespace"] = target.name_space;
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = time_text(std::chrono::system_clock::now());
  for (const auto* key : {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
                          "managedFields", "selfLink", "generation"}) {
    metadata.erase(key);
  }
  set_defaults(pod, settings_.rules);
  auto parsed = parse_pod(pod, settings_.rules);
  if (!parsed) return parsed.error();
  pod["status"] = {{"phase", "Pending"}, {"qosClass", qos_class(parsed->spec)}};
  const auto dry_run = dry_run_of(request, Json::object());
  if (!dry_run) return dry_run.error();
  if (*dry_run) return Answer{201, std::move(pod), parsed->warnings};
  auto created = store_.create(std::move(pod));
  if (!created) return created.error();
  spdlog::info("event=pod_created pod={}/{} uid={}", target.name_space, parsed->spec.name, parsed->spec.uid);
  return Answer{201, **created, parsed->warnings};
}

Result<Api::Answer> Api::list(const http::Connection& connection, const Target& target,
                              const httplib::Request& request, httplib::Response& response, bool* answered) {
  auto selection = selection_of(target.name_space, request);
  if (!selection) return selection.error();
  if (!target.name.empty()) {
    selection->fields = kube::FieldSelector::parse("metadata.name=" + target.name).value();
  }
  Store::List all = store_.list();
  std::erase_if(all.pods, [&](const PodPtr& pod) { return !selection->matches(*pod); });
  if (!truth(request.get_param_value("watch"))) {
    Json items = Json::array();
    for (const auto& pod : all.pods) items.push_back(*pod);
    return Answer{200,
                  {{"kind", "PodList"},
                   {"apiVersion", "v1"},
                   {"metadata", {{"resourceVersion", std::to_string(all.version)}}},
                   {"items", std::move(items)}},
                  {}};
  }
  WatchRequest watch;
  watch.selection = std::move(*selection);
  watch.bookmarks = truth(request.get_param_value("allowWatchBookmarks"));
  const auto limit = parse_integer(request.get_param_value("timeoutSeconds"));
  watch.limit = limit && limit.value() > 0 && limit.value() < 86400 ? Seconds(limit.value()) : k_watch_limit;
  const std::string version = request.get_param_value("resourceVersion");
  const std::string initial = request.get_param_value("sendInitialEvents");
  if (!initial.empty() && request.get_param_value("resourceVersionMatch") != "NotOlderThan")
    return ApiError{
        422, "Invalid",
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents "
        "requires setting resourceVersionMatch to NotOlderThan"}
        .to_error();
  std::int64_t since = 0;
  if (!version.empty()) {
    const auto number = parse_integer(version);
    if (!number) return ApiError::bad_request(fmt::format("invalid resourceVersion \"{}\"", version));
    since = number.value();
  }
  const bool whole = initial.empty() ? since == 0 : truth(initial);
  // What there is now is never older than a version that was told.
  if (whole && since <= all.version) {
    watch.after = all.version;
    watch.initial = std::move(all.pods);
    watch.end_of_initial = !initial.empty() && watch.bookmarks;
  } else if (since == 0) {
    watch.after = all.version;
  } else {
    watch.after = since;
    if (watch.after > all.version || !store_.since(watch.after)) {
      return ApiError::gone(fmt::format("too old resource version: {} ({})", version, all.version));
    }
  }
  TRY(start_watch(store_, connection, std::move(watch), response));
  *answered = true;
  return Answer{};
}

Result<Api::Answer> Api::change(const http::Connection& connection, const Target& target,
                                const httplib::Request& request) {
  const bool from_pod = connection.caller.kind == http::Caller::Kind::guest;
  const auto make = [&](const Json& old_pod) -> Result<Json> {
    Result<Json> wanted = Json();
    if (request.method == "PUT") {
      wanted = body_of(request);
    } else {
      wanted = apply_patch(old_pod, request.get_header_value("Content-Type"), request.body);
    }
    if (!wanted) return wanted.error();
    if (target.subresource == "resize") {
      auto resized = check_resize(old_pod, *wanted, settings_.rules);
      if (resized && from_pod) TRY(refuse_own_resize(old_pod, *resized));
      return resized;
    }
    auto checked = check_update(old_pod, std::move(*wanted));
    if (!checked) return checked.error();
    if (from_pod) TRY(refuse_pod_change(old_pod, *checked));
    return checked;
  };
  const auto dry_run = dry_run_of(request, Json::object());
  if (!dry_run) return dry_run.error();
  if (*dry_run) return preview(target, make);
  auto updated = store_.update(target.name_space, target.name, make);
  if (!updated) return updated.error();
  return Answer{200, **updated, {}};
}

Result<Api::Answer> Api::remove(const Target& target, const httplib::Request& request) {
  std::optional<std::int64_t> grace;
  Json options = Json::object();
  if (!request.body.empty()) {
    auto body = body_of(request);
    if (!body) return body.error();
    options = std::move(*body);
    if (const Json asked = options.value("gracePeriodSeconds", Json()); asked.is_number_integer()) {
      grace = asked.get<std::int64_t>();
    }
  }
  if (request.has_param("gracePeriodSeconds")) {
    const auto number = parse_integer(request.get_param_value("gracePeriodSeconds"));
    if (!number) return ApiError::bad_request("invalid gracePeriodSeconds");
    grace = number.value();
  }
  if (grace && (*grace < 0 || *grace > k_longest_grace)) {
    return ApiError::bad_request(fmt::format("gracePeriodSeconds must be between 0 and {}", k_longest_grace));
  }
  const auto dry_run = dry_run_of(request, options);
  if (!dry_run) return dry_run.error();
  const Json conditions = options.value("preconditions", Json());
  const auto make = [&](const Json& old_pod) -> Result<Json> {
    Json pod = old_pod;
    Json& metadata = pod["metadata"];
    for (const auto& [key, name] : {std::pair("uid", "UID"), {"resourceVersion", "ResourceVersion"}}) {
      const Json wanted = conditions.is_object() ? conditions.value(key, Json()) : Json();
      if (wanted.is_null() || wanted == metadata[key]) continue;
      return ApiError{
          409, "Conflict",
          fmt::format(
              "Operation cannot be fulfilled on pods \"{}\": the {} in the precondition ({}) does "
              "not match the {} in record ({}). The object might have been deleted and then recreated",
              target.name, name, wanted.is_string() ? wanted.get<std::string>() : json_text(wanted), name,
              metadata[key].get<std::string>())}
          .to_error();
    }
    const std::int64_t seconds =
        grace.value_or(pod["spec"].value("terminationGracePeriodSeconds", std::int64_t{30}));
    if (metadata.contains("deletionTimestamp") &&
        seconds >= metadata.value("deletionGracePeriodSeconds", std::int64_t{0})) {
      return pod;
    }
    metadata["deletionTimestamp"] = time_text(std::chrono::system_clock::now() + Seconds(seconds));
    metadata["deletionGracePeriodSeconds"] = seconds;
    return pod;
  };
  if (*dry_run) return preview(target, make);
  auto updated = store_.update(target.name_space, target.name, make);
  if (!updated) return updated.error();
  spdlog::info("event=pod_deleting pod={}/{}", target.name_space, target.name);
  return Answer{200, **updated, {}};
}

// What the change would make of the pod.
Result<Api::Answer> Api::preview(const Target& target, const Store::Change& change) {
  auto old_pod = store_.get(target.name_space, target.name);
  if (!old_pod) return old_pod.error();
  auto changed = change(**old_pod);
  if (!changed) return changed.error();
  return Answer{200, std::move(*changed), {}};
}

Result<void> Api::log(const http::Connection& connection, const Target& target,
                      const httplib::Request& request, httplib::Response& response) {
  auto pod = store_.get(target.name_space, target.name);
  if (!pod) return pod.error();
  LogRequest wanted;
  wanted.container = request.get_param_value("container");
  wanted.follow = truth(request.get_param_value("follow"));
  wanted.previous = truth(request.get_param_value("previous"));
  wanted.options.timestamps = truth(request.get_param_value("timestamps"));
  for (const auto& [key, field] : {std::pair("tailLines", &wanted.options.tail_lines),
                                   std::pair("limitBytes", &wanted.options.limit_bytes)}) {
    if (!request.has_param(key)) continue;
    const auto number = parse_integer(request.get_param_value(key));
    if (!number || number.value() < 0) return ApiError::bad_request(fmt::format("invalid {}", key));
    *field = number.value();
  }
  for (const auto* key : {"sinceSeconds", "sinceTime"}) {
    if (request.has_param(key))
      return ApiError::bad_request(fmt::format("{}: podhost does not support this option", key));
  }
  return stream_log(store_, files_, connection, **pod, wanted, response);
}

}  // namespace glidepod::podhost
