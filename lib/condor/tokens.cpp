#include "lib/condor/tokens.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace glidepod::condor {

namespace {

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool goes_on_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Token invalid(std::string why) {
  return {Token::Type::invalid, std::move(why), {}};
}

// The text up to the closing quote, without the backslashes of its escapes.
Token quoted_token(std::string_view& text, char mark, Token::Type type) {
  Token token{type, {}, {}};
  std::size_t at = 1;
  for (; at < text.size() && text[at] != mark; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      token.special = token.special || (text[at] != '"' && text[at] != '\\' && text[at] != '\'');
    }
    token.text += text[at];
  }
  if (at >= text.size()) return invalid("a quote is not closed");
  text.remove_prefix(at + 1);
  return token;
}

Token number_token(std::string_view& text) {
  std::size_t length = 0;
  bool real = false;
  while (length < text.size()) {
    const char c = text[length];
    const bool exponent = (c == 'e' || c == 'E') && length > 0;
    const bool sign =
        (c == '+' || c == '-') && length > 0 && (text[length - 1] == 'e' || text[length - 1] == 'E');
    if (!is_digit(c) && c != '.' && !exponent && !sign) break;
    real = real || !is_digit(c);
    ++length;
  }
  Token token{Token::Type::number, {}, {}};
  const auto* end = text.data() + length;
  bool whole = false;
  if (real) {
    double value = 0;
    const auto done = std::from_chars(text.data(), end, value);
    whole = done.ec == std::errc() && done.ptr == end;
    token.number = Value::of(value);
  } else {
    std::int64_t value = 0;
    const auto done = std::from_chars(text.data(), end, value);
    whole = done.ec == std::errc() && done.ptr == end;
    token.number = Value::of(value);
  }
  if (!whole || text[length - 1] == '.' || (length < text.size() && goes_on_name(text[length])))
    return invalid("a number cannot be read");
  text.remove_prefix(length);
  return token;
}

}  // namespace

Token next_token(std::string_view& text) {
  const auto start = text.find_first_not_of(" \t\r\n");
  text.remove_prefix(std::min(start, text.size()));
  if (text.empty()) return {};
  const char first = text.front();
  if (first == '"') return quoted_token(text, '"', Token::Type::string);
  if (first == '\'') return quoted_token(text, '\'', Token::Type::name);
  if (is_digit(first) || (first == '.' && text.size() > 1 && is_digit(text[1]))) return number_token(text);
  if (starts_name(first)) {
    const auto end = std::find_if_not(text.begin(), text.end(), goes_on_name);
    Token token{Token::Type::name, std::string(text.begin(), end), {}};
    text.remove_prefix(token.text.size());
    return token;
  }
  static constexpr std::array<std::string_view, 34> symbols = {
      ">>>", "=?=", "=!=", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "?:", "?", ":", "<", ">", "+",
      "-",   "*",   "/",   "%",  "!",  "~",  "&",  "|",  "^",  "(",  ")",  "{",  "}", "[", "]", ",", "."};
  for (const auto symbol : symbols) {
    if (!text.starts_with(symbol)) continue;
    text.remove_prefix(symbol.size());
    return {Token::Type::symbol, std::string(symbol), {}};
  }
  return invalid(fmt::format("'{}' means nothing", first));
}

}  // namespace glidepod::condor
