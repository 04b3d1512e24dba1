#pragma once

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

// The text as the value of a key=value word. It gets double quotes if it is empty or has blanks, quotes or
// control characters. This is an object, because a function of this name would be ambiguous with std::quoted.
struct Quoted {
  std::string operator()(std::string_view text) const;
};
inline constexpr Quoted quoted;

}  // namespace glidepod
