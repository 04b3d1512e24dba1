#include "lib/condor/job_ad.hpp"

#include <strings.h>

#include <array>

#include "lib/base/text.hpp"

namespace glidepod::condor {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// The text of a string literal; empty for any other expression.
std::string literal(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return {};
  std::string result;
  for (std::size_t i = 1; i + 1 < value.size(); ++i) {
    if (value[i] == '"') return {};
    if (value[i] == '\\' && i + 2 < value.size()) ++i;
    result += value[i];
  }
  return result;
}

std::string number(std::string_view value) {
  return value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos
             ? std::string()
             : std::string(value);
}

}  // namespace

JobIdentity parse_job_ad(std::string_view text) {
  std::string user, owner, domain, cluster, process, memory;
  struct Wanted {
    std::string_view name;
    std::string* target;
    std::string (*read)(std::string_view);
  };
  const std::array<Wanted, 6> wanted = {{{"User", &user, literal},
                                         {"Owner", &owner, literal},
                                         {"UidDomain", &domain, literal},
                                         {"ClusterId", &cluster, number},
                                         {"ProcId", &process, number},
                                         {"RequestMemory", &memory, number}}};
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = trim(line.substr(0, equals));
    for (const Wanted& attribute : wanted)
      if (same_name(name, attribute.name)) *attribute.target = attribute.read(trim(line.substr(equals + 1)));
  }
  JobIdentity identity;
  identity.owner = !user.empty() || owner.empty() || domain.empty() ? user : owner + "@" + domain;
  if (identity.owner.empty()) identity.owner = owner;
  if (!cluster.empty() && !process.empty()) identity.id = cluster + "." + process;
  if (const auto mib = parse_integer(memory)) identity.memory_mib = mib.value();
  return identity;
}

}  // namespace glidepod::condor
