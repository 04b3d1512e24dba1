#include "lib/base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <memory>
#include <string>

namespace glidepod {

void start_log(std::string_view program) {
  auto logger = std::make_shared<spdlog::logger>(std::string(program),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

std::string Quoted::operator()(std::string_view text) const {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c > 0x20 && c != '"' && c != '\\' && c != 0x7f;
  });
  if (plain) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += '?';
    else
      result += c;
  }
  return result + '"';
}

}  // namespace glidepod
