#include "provisioner/service/overview.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/service/running.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

constexpr std::size_t k_widest = 120;  // of a cell where the terminal sets no limit

std::int64_t seconds_of(Time time) {
  return time.time_since_epoch().count();
}

struct Row {
  Concern concern = Concern::none;
  std::string pod, node, container, job, owner, state, image, bind, waits;
};

std::int64_t number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::string state_text(std::string state, std::int64_t since, Time now) {
  for (char& c : state)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return since > 0 ? state + ' ' + duration_text(seconds_of(now) - since) : state;
}

// All that the lines are about.
struct Content {
  std::vector<Row> rows;
  std::map<std::string, int> pods, jobs;  // by state
  std::vector<double> binds;
};

void add_job(Content& content, const Row& pod, const Json& job, Time now) {
  Row row = pod;
  const auto said = text_of(job, "state");
  const auto state = said.empty() ? std::string("claimed") : said;
  row.concern = said.empty() ? Concern::runs : concern_of(state);
  row.container = text_of(job, "container");
  row.job = text_of(job, "job");
  row.owner = text_of(job, "owner");
  row.state = state_text(state, number(job, "since"), now);
  row.image = text_of(job, "image");
  if (const auto waits = text_of(job, "waits_for"); !waits.empty()) row.waits = waits;
  if (const auto bind = job.find("bind_s"); bind != job.end() && bind->is_number()) {
    content.binds.push_back(bind->get<double>());
    row.bind = fmt::format("{} {:.1f} s", text_of(job, "how"), content.binds.back());
  }
  ++content.jobs[state];
  content.rows.push_back(std::move(row));
}

// Containers that no job has, and that are not simply free: "payload-0=running payload-1=broken".
void add_containers(Content& content, const Row& pod, const Json& entry, const Json& jobs, Time now) {
  for (const auto& part : split(text_of(entry, "containers"), ' ')) {
    const auto equals = part.find('=');
    if (equals == std::string::npos) continue;
    Row row = pod;
    row.container = part.substr(0, equals);
    row.waits.clear();
    const auto state = part.substr(equals + 1);
    const auto is_it = [&row](const Json& job) { return text_of(job, "container") == row.container; };
    if (state == "idle" || std::any_of(jobs.begin(), jobs.end(), is_it)) continue;
    row.concern = concern_of(state);
    row.state = state_text(state, 0, now);
    content.rows.push_back(std::move(row));
  }
}

void add_pod(Content& content, const Json& entry, Time now) {
  if (!entry.is_object()) return;
  Row pod;
  pod.pod = text_of(entry, "pod");
  pod.node = text_of(entry, "node");
  pod.waits = text_of(entry, "waits_for");
  const auto state = text_of(entry, "state");
  ++content.pods[state];
  const auto jobs = entry.value("jobs", Json::array());
  for (const auto& job : jobs)
    if (job.is_object()) add_job(content, pod, job, now);
  if (jobs.empty()) {
    Row row = pod;
    row.concern = concern_of(state);
    row.state = state_text(state, number(entry, "since"), now);
    content.rows.push_back(std::move(row));
  }
  add_containers(content, pod, entry, jobs, now);
}

// Pods that are only counted, and how many these are.
int add_left_out(Content& content, const Json& report) {
  int sum = 0;
  const auto& left_out = member(report, "left_out");
  for (const auto& [key, counts] : {std::pair("pods", &content.pods), std::pair("jobs", &content.jobs)})
    for (const auto& [state, count] : member(left_out, key).items()) {
      if (!count.is_number_integer()) continue;
      (*counts)[state] += count.get<int>();
      if (counts == &content.pods) sum += count.get<int>();
    }
  return sum;
}

std::string counts(std::string_view what, const std::map<std::string, int>& by_state) {
  int sum = 0;
  std::string parts;
  for (const auto& [state, count] : by_state) {
    sum += count;
    parts += fmt::format("{} {} {}", parts.empty() ? ":" : ",", count, harmless(state));
  }
  return fmt::format("{} {}{}{}", sum, what, sum == 1 ? "" : "s", parts);
}

std::string summary(Content& content, const Json& report) {
  auto text = counts("pod", content.pods) + "; " + counts("job", content.jobs);
  if (auto& binds = content.binds; !binds.empty()) {
    std::sort(binds.begin(), binds.end());
    const auto rank = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(binds.size())));
    text += fmt::format("; bound in {:.1f} s (p95)", binds[rank - 1]);
  }
  text += '\n';
  for (const auto& decision : report.value("decisions", Json::array()))
    if (const auto verdict = text_of(decision, "verdict"); verdict == "stopped" || verdict == "canary")
      text += fmt::format("breaker open for {}: {}\n", harmless(text_of(decision, "image")),
                          harmless(reason_of(decision)));
  return text;
}

std::vector<std::string> cells(const Row& row) {
  std::vector<std::string> result;
  for (const auto* text : {&row.pod, &row.node, &row.container, &row.job, &row.owner, &row.state, &row.image,
                           &row.bind, &row.waits})
    result.push_back(text->empty() ? "-" : shortened(harmless(*text), k_widest));
  return result;
}

std::string colored(const std::string& lines, const std::vector<Row>& rows) {
  std::string result;
  std::size_t number = 0;  // 0 is the header
  for (const auto& line : split(lines, '\n')) {
    if (line.empty()) continue;
    const auto concern = number == 0 ? Concern::none : rows[number - 1].concern;
    const std::string_view color = number == 0                   ? "1"
                                   : concern == Concern::trouble ? "31"
                                   : concern == Concern::waits   ? "33"
                                                                 : "";
    result += color.empty() ? line + '\n' : fmt::format("\x1b[{}m{}\x1b[0m\n", color, line);
    ++number;
  }
  return result;
}

}  // namespace

std::string overview(const Json& report, const Terminal& terminal, Time now) {
  Content content;
  if (const auto pods = report.find("pods"); pods != report.end() && pods->is_array())
    for (const auto& pod : *pods) add_pod(content, pod, now);
  const auto not_shown = add_left_out(content, report);
  auto text = summary(content, report);
  auto& rows = content.rows;
  if (rows.empty()) return text;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.concern < b.concern; });
  std::size_t left_out = 0;
  if (terminal.height != 0) {
    // The heading, and the line that says how many are left out.
    const auto above = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 2;
    const auto most = terminal.height > above ? terminal.height - above : 1;
    left_out = rows.size() > most ? rows.size() - most : 0;
    rows.resize(rows.size() - left_out);
  }
  std::vector<std::vector<std::string>> lines = {
      {"POD", "NODE", "CONTAINER", "JOB", "OWNER", "STATE", "IMAGE", "BIND", "WAITS FOR"}};
  for (const auto& row : rows) lines.push_back(cells(row));
  if (terminal.width != 0) fit_columns(lines, terminal.width, {"BIND", "CONTAINER", "NODE", "WAITS FOR"});
  text += terminal.color ? colored(columns(lines), rows) : columns(lines);
  if (left_out > 0) text += fmt::format("... and {} more\n", left_out);
  if (not_shown > 0) text += fmt::format("... and {} pods that a status has no room for\n", not_shown);
  return text;
}

}  // namespace glidepod::provisioner
