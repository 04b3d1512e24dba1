#include "lib/kube/quantity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace glidepod::kube {
namespace {

struct Suffix {
  std::string_view text;
  long double factor;
};
constexpr std::array<Suffix, 15> k_suffixes = {{{"", 1.0L},
                                                {"n", 1e-9L},
                                                {"u", 1e-6L},
                                                {"m", 1e-3L},
                                                {"k", 1e3L},
                                                {"M", 1e6L},
                                                {"G", 1e9L},
                                                {"T", 1e12L},
                                                {"P", 1e15L},
                                                {"E", 1e18L},
                                                {"Ki", 1024.0L},
                                                {"Mi", 1048576.0L},
                                                {"Gi", 1073741824.0L},
                                                {"Ti", 1099511627776.0L},
                                                {"Pi", 1125899906842624.0L}}};

Result<std::int64_t> scaled(std::string_view text, long double scale) {
  const Error bad = error(
      "quantities must match the regular expression "
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$', found \"{}\"",
      text);
  const auto digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == 0 || digits > 30) return bad;
  const std::string number(text.substr(0, digits));
  char* end = nullptr;
  long double value = std::strtold(number.c_str(), &end);
  if (*end != '\0') return bad;
  const std::string rest(text.substr(digits));
  if (rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E')) {
    const long exponent = std::strtol(rest.c_str() + 1, &end, 10);
    if (*end != '\0' || exponent < -18 || exponent > 18) return bad;
    value *= std::pow(10.0L, static_cast<long double>(exponent));
  } else {
    const Suffix* found = nullptr;
    for (const auto& suffix : k_suffixes) {
      if (suffix.text == rest) found = &suffix;
    }
    if (!found) return bad;
    value *= found->factor;
  }
  // The tolerance keeps 0.1 from becoming 101m by its binary representation.
  const long double result = std::ceil(value * scale - 1e-6L);
  if (result > static_cast<long double>(std::numeric_limits<std::int64_t>::max())) return bad;
  return static_cast<std::int64_t>(result);
}

}  // namespace

Result<std::int64_t> parse_milli(std::string_view text) {
  return scaled(text, 1000.0L);
}
Result<std::int64_t> parse_quantity(std::string_view text) {
  return scaled(text, 1.0L);
}

}  // namespace glidepod::kube
