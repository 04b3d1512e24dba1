#include "lib/pattern/pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

namespace glidepod {

namespace {

constexpr std::size_t k_longest_pattern = 10'000, k_longest_text = 100'000;
constexpr std::uint32_t k_deepest_brackets = 100;
constexpr std::uint32_t k_most_steps = 1'000'000;  // some milliseconds
constexpr std::uint32_t k_most_heap_kib = 4096;

std::string words_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR bytes_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

struct Pattern::Code {
  std::shared_ptr<pcre2_code> compiled;
  std::shared_ptr<pcre2_match_context> limits;
};

Result<Pattern> Pattern::compile(std::string_view text) {
  const std::shared_ptr<pcre2_compile_context> context(pcre2_compile_context_create(nullptr),
                                                       pcre2_compile_context_free);
  auto code = std::make_shared<Code>();
  code->limits.reset(pcre2_match_context_create(nullptr), pcre2_match_context_free);
  if (!context || !code->limits) return error("no memory");
  pcre2_set_max_pattern_length(context.get(), k_longest_pattern);
  pcre2_set_parens_nest_limit(context.get(), k_deepest_brackets);
  pcre2_set_match_limit(code->limits.get(), k_most_steps);
  pcre2_set_heap_limit(code->limits.get(), k_most_heap_kib);
  int failure = 0;
  std::size_t where = 0;
  code->compiled.reset(
      pcre2_compile(bytes_of(text), text.size(), PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &failure,
                    &where, context.get()),
      pcre2_code_free);
  if (!code->compiled) return error("{} (at character {})", words_of(failure), where);
  return Pattern(std::move(code));
}

Result<bool> Pattern::match(std::string_view text, Extent extent) const {
  if (text.size() > k_longest_text) return error("a text of {} bytes is too long to be matched", text.size());
  const std::shared_ptr<pcre2_match_data> data(pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  if (!data) return error("no memory");
  const auto options = extent == Extent::whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
  const int result = pcre2_match(code_->compiled.get(), bytes_of(text), text.size(), 0, options, data.get(),
                                 code_->limits.get());
  if (result >= 0) return true;
  if (result == PCRE2_ERROR_NOMATCH) return false;
  return error("the pattern is too much work for this text: {}", words_of(result));
}

}  // namespace glidepod
