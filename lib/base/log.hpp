// Precompiled, and so known by name: gcc knows a file with #pragma once by its bytes, which a comment changes
// while what the compiler cache keeps stays.
#ifndef GLIDEPOD_LIB_BASE_LOG_HPP
#define GLIDEPOD_LIB_BASE_LOG_HPP

#include <spdlog/spdlog.h>

#include <string>
#include <string_view>

// fmt's formatting for logs, compiled once in format.cpp instead of in each file that logs.
FMT_BEGIN_NAMESPACE
namespace detail {
extern template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>,
                                locale_ref);
}
FMT_END_NAMESPACE

namespace glidepod {

// Logs go to stderr, one line an event: time, level, then "event=NAME key=value ...". Loggers quote what
// comes from outside with quoted().
void start_log(std::string_view program);

// The text as one key=value value: in double quotes where it is empty or has blanks, quotes or control
// characters. An object, because std::quoted would be found beside a function of this name.
struct Quoted {
  std::string operator()(std::string_view text) const;
};
inline constexpr Quoted quoted;

}  // namespace glidepod

#endif
