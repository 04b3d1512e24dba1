#include "pilot-agent/status.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/slot_attributes.hpp"

namespace glidepod::agent {

using Json = nlohmann::json;

namespace {

constexpr Milliseconds k_delay{100};
constexpr const char* k_job = "job ";  // of a key: no container's name has a blank
constexpr std::size_t k_widest = 200;  // of a cell: names are the users'

std::string ago(WallTime since, WallTime now) {
  return duration_text(std::chrono::duration_cast<std::chrono::seconds>(now - since).count());
}

std::string cell(const Json& object, const char* key) {
  const std::string text = one_line(text_of(object, key), k_widest);
  return text.empty() ? "-" : text;
}

// As the slots' ads have it (slot_attributes.hpp).
Json binds_json(const Binds& binds) {
  std::string count, within;
  for (std::size_t i = 0; i < binds.by_how.size(); ++i)
    count += fmt::format("{}={} ", Binds::k_hows[i], binds.by_how[i]);
  count += fmt::format("user={} infrastructure={} doubt={}", binds.user, binds.infrastructure, binds.doubt);
  for (std::size_t i = 0; i < binds.within.size(); ++i)
    within += fmt::format("{}{}={}", i == 0 ? "" : " ", Binds::k_bounds[i], binds.within[i]);
  return {
      {"count", count}, {"within", within}, {"took_s", std::chrono::duration<double>(binds.took).count()}};
}

Json doubted_names(const Snapshot& snapshot, SteadyTime now) {
  Json names = Json::array();
  for (const Snapshot::Doubted& doubt : snapshot.doubts)
    if (doubt.until > now) names.push_back(doubt.named);
  return names;
}

}  // namespace

StatusFile::StatusFile(Loop& loop, Paths paths, std::string pod, std::function<Snapshot()> look)
    : loop_(loop), paths_(std::move(paths)), pod_(std::move(pod)), look_(std::move(look)) {}

StatusFile::~StatusFile() {
  loop_.cancel(timer_);
  loop_.cancel(over_);
  if (last_.empty()) return;
  for (const std::string* path : {&paths_.status, &paths_.slots})
    if (!path->empty()) (void)::unlink(path->c_str());
}

void StatusFile::touch() {
  if ((paths_.status.empty() && paths_.slots.empty()) || timer_ != 0) return;
  timer_ = loop_.after(k_delay, [this] {
    timer_ = 0;
    write();
  });
}

std::string StatusFile::since(const std::string& key, const std::string& what, WallTime now) {
  auto& [is, from] = since_[key];
  if (std::exchange(is, what) != what) from = now;
  return time_text(from);
}

// When the first of the images in doubt is tried again, the file is another one.
void StatusFile::write_when_over(const Snapshot& snapshot, SteadyTime now) {
  loop_.cancel(std::exchange(over_, 0));
  std::optional<SteadyTime> first;
  for (const Snapshot::Doubted& doubt : snapshot.doubts)
    if (doubt.until > now) first = std::min(first.value_or(doubt.until), doubt.until);
  if (!first) return;
  over_ = loop_.after(std::chrono::ceil<Milliseconds>(*first - now), [this] {
    over_ = 0;
    write();
  });
}

Json StatusFile::describe(const Snapshot& snapshot, WallTime now) {
  Json status = {{"pod", pod_},
                 {"version", GLIDEPOD_VERSION},
                 {"failures", snapshot.failures},
                 {"binds", binds_json(snapshot.binds)},
                 {"given_up", snapshot.given_up},
                 {"shortage", snapshot.shortage},
                 {"doubts", doubted_names(snapshot, std::chrono::steady_clock::now())},
                 {"waiting", Json::array()},
                 {"pulls", Json::array()},
                 {"containers", Json::array()}};
  for (const Snapshot::Beside& pull : snapshot.pulls)
    status["pulls"].push_back({{"image", pull.image}, {"state", pull.state}, {"trouble", pull.trouble}});
  std::erase_if(since_, [&snapshot](const auto& entry) {
    const auto is_it = [&entry](const auto& one) { return entry.first == k_job + one.job; };
    return entry.first.starts_with(k_job) && std::ranges::none_of(snapshot.waiting, is_it);
  });
  for (const Snapshot::Queued& one : snapshot.waiting)
    status["waiting"].push_back({{"job", one.job},
                                 {"owner", one.owner},
                                 {"slot", one.slot},
                                 {"since", since(k_job + one.job, "waiting", now)},
                                 {"image", one.image},
                                 {"pulling", one.pulling},
                                 {"trouble", one.trouble}});
  for (const Snapshot::One& one : snapshot.containers) {
    const auto from = since(one.name, fmt::format("{} {}", name_of(one.state), one.job), now);
    auto& shown = status["containers"].emplace_back(Json{{"name", one.name},
                                                         {"state", name_of(one.state)},
                                                         {"since", from},
                                                         {"job", one.job},
                                                         {"owner", one.owner},
                                                         {"slot", one.slot},
                                                         {"image", one.image},
                                                         {"digest", one.digest},
                                                         {"id", one.instance},
                                                         {"how", one.how},
                                                         {"wanted", one.wanted},
                                                         {"step", one.step},
                                                         {"trouble", one.trouble}});
    if (one.bound_in) shown["bind_s"] = std::chrono::duration<double>(*one.bound_in).count();
  }
  return status;
}

void StatusFile::write() {
  const WallTime now = std::chrono::system_clock::now();
  const Snapshot snapshot = look_();
  write_when_over(snapshot, std::chrono::steady_clock::now());
  Json status = describe(snapshot, now);
  const auto text = [&status] { return json_text(status, 1) + '\n'; };
  if (std::string is = text(); std::exchange(last_, is) == is) return;
  // It goes to the pool, where everybody may read it, by way of HTCondor's own user.
  write(paths_.slots, slot_attributes(status), 0644);
  status["time"] = time_text(now);
  write(paths_.status, text(), 0600);
}

void StatusFile::write(const std::string& path, const std::string& text, unsigned mode) {
  if (path.empty()) return;
  const auto written = replace_file(path, text, mode, Durable::no);
  if (!written && !std::exchange(warned_, true))
    spdlog::warn("event=no_status_file reason={}", quoted(written.error().message()));
}

Result<std::string> status_table(const std::string& content, WallTime now) {
  const Json status = json_from(content);
  if (!status.is_object() || !status.contains("containers") || !status["containers"].is_array())
    return error("not a pilot agent's status");
  std::vector<std::vector<std::string>> rows = {
      {"CONTAINER", "STATE", "SINCE", "JOB", "OWNER", "IMAGE", "DOING"}};
  for (const Json& one : status["containers"]) {
    if (!one.is_object()) return error("not a pilot agent's status");
    const auto since = parse_time(text_of(one, "since"));
    const bool switching = text_of(one, "state") == "switching";
    std::string doing = cell(one, "step");
    if (!text_of(one, "trouble").empty()) doing += ": " + cell(one, "trouble");
    rows.push_back({cell(one, "name"), cell(one, "state"), since ? ago(*since, now) : "-", cell(one, "job"),
                    cell(one, "owner"), cell(one, switching ? "wanted" : "image"), doing});
  }
  std::string result = fmt::format("pod {}, version {}, last change {}\n", cell(status, "pod"),
                                   cell(status, "version"), cell(status, "time")) +
                       columns(rows);
  for (const Json& pull : status.value("pulls", Json::array())) {
    result += fmt::format("image {}, pulled beside the pod: {}", cell(pull, "image"), cell(pull, "state"));
    result += text_of(pull, "trouble").empty() ? "\n" : ": " + cell(pull, "trouble") + "\n";
  }
  const auto waiting = status.value("waiting", Json::array());
  if (waiting.is_array() && !waiting.empty()) {
    result += "waiting for a container:";
    for (const Json& job : waiting) result += " " + cell(job, "job");
    result += '\n';
  }
  for (const Json& image : status.value("doubts", Json::array()))
    if (image.is_string())
      result += fmt::format("image {}: failed on this node, and is not tried again yet\n",
                            one_line(image.get<std::string>(), k_widest));
  const Json failures = status.value("failures", Json(0));
  if (failures.is_number_integer() && failures != 0)
    result += fmt::format("failures of the infrastructure in a row: {}\n", json_text(failures));
  if (const auto shortage = cell(status, "shortage"); shortage != "-")
    result += fmt::format("put on hold for what it used: {}\n", shortage);
  if (status.value("given_up", Json(false)) == true)
    result += "this pilot has given up and takes no more jobs\n";
  return result;
}

}  // namespace glidepod::agent
