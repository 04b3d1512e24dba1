#include "lib/condor/job_ad.hpp"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>

#include "lib/base/text.hpp"

namespace glidepod::condor {
namespace {

std::string_view value_of(const JobAttributes& attributes, std::string_view name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::string_view() : found->second;
}

std::string text(const JobAttributes& attributes, std::string_view name) {
  return string_literal(value_of(attributes, name)).value_or("");
}

std::string number(const JobAttributes& attributes, std::string_view name) {
  const auto value = value_of(attributes, name);
  return value.find_first_not_of("0123456789") == std::string_view::npos ? std::string(value) : std::string();
}

std::int64_t amount(const JobAttributes& attributes, std::string_view name) {
  const auto value = parse_integer(number(attributes, name));
  return value ? value.value() : 0;
}

}  // namespace

bool LessNoCase::operator()(std::string_view a, std::string_view b) const {
  const std::size_t common = std::min(a.size(), b.size());
  // An empty view may have no data at all.
  const int order = common == 0 ? 0 : ::strncasecmp(a.data(), b.data(), common);
  return order != 0 ? order < 0 : a.size() < b.size();
}

JobAttributes parse_attributes(std::string_view text) {
  JobAttributes result;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto [entry, first] =
        result.try_emplace(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
    if (!first) entry->second = {};
  }
  return result;
}

std::optional<std::string> string_literal(std::string_view expression) {
  if (expression.size() < 2 || expression.front() != '"' || expression.back() != '"') return std::nullopt;
  std::string result;
  for (std::size_t i = 1; i + 1 < expression.size(); ++i) {
    if (expression[i] == '"') return std::nullopt;
    if (expression[i] == '\\' && i + 2 < expression.size()) ++i;
    result += expression[i];
  }
  return result;
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

JobIdentity parse_job_ad(std::string_view ad) {
  const auto attributes = parse_attributes(ad);
  const auto user = text(attributes, "User"), owner = text(attributes, "Owner"),
             domain = text(attributes, "UidDomain");
  const auto cluster = number(attributes, "ClusterId"), process = number(attributes, "ProcId");
  JobIdentity identity;
  identity.owner = !user.empty() || owner.empty() || domain.empty() ? user : owner + "@" + domain;
  if (identity.owner.empty()) identity.owner = owner;
  if (!cluster.empty() && !process.empty()) identity.id = cluster + "." + process;
  identity.memory_mib = amount(attributes, "RequestMemory");
  identity.request_disk_kib = amount(attributes, "RequestDisk");
  identity.keep_idle_s = amount(attributes, "KeepClaimIdle");
  const auto pilot = value_of(attributes, "GlidepodPilot");
  identity.pilot = pilot.size() == 4 && ::strncasecmp(pilot.data(), "true", 4) == 0;
  return identity;
}

std::int64_t slot_disk_kib(std::string_view machine_ad) {
  return amount(parse_attributes(machine_ad), "Disk");
}

std::int64_t slot_cpus(std::string_view machine_ad) {
  return amount(parse_attributes(machine_ad), "Cpus");
}

// HTCondor has it with a fraction ("8.0").
std::int64_t slot_total_cpus(std::string_view machine_ad) {
  const auto attributes = parse_attributes(machine_ad);
  auto text = value_of(attributes, "TotalCpus");
  const auto value = parse_integer(text.substr(0, text.find('.')));
  return value ? value.value() : 0;
}

std::int64_t slot_memory_mib(std::string_view machine_ad) {
  return amount(parse_attributes(machine_ad), "Memory");
}

std::string slot_name(std::string_view machine_ad) {
  return text(parse_attributes(machine_ad), "Name");
}

std::string identity_lines(const JobAttributes& job) {
  std::string result;
  for (const char* name : {"User", "Owner", "UidDomain", "ClusterId", "ProcId", "RequestMemory",
                           "RequestDisk", "KeepClaimIdle", "GlidepodPilot"})
    result += fmt::format("{} = {}\n", name, value_of(job, name));
  return result;
}

std::string slot_lines(std::string_view machine_ad) {
  const auto slot = parse_attributes(machine_ad);
  std::string lines;
  for (const char* name : {"Disk", "Cpus", "TotalCpus", "Memory", "Name"})
    lines += fmt::format("{} = {}\n", name, value_of(slot, name));
  return lines;
}

}  // namespace glidepod::condor
