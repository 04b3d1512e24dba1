#include "lib/condor/clauses.hpp"

#include <algorithm>

#include "lib/base/text.hpp"
#include "lib/condor/tokens.hpp"

namespace glidepod::condor {

namespace {

constexpr int k_deepest_clause = 32;

struct Shape {
  std::vector<std::string_view> parts;  // what stands between the && (or ||) that are in no brackets
  bool bracketed = false;               // one pair of ( ) is around the whole
};

// The clauses at the top level. None if there is an operator that binds looser than the junction (?: or,
// where that is &&, an ||), or if the text is no expression.
std::optional<Shape> shape_of(std::string_view text, std::string_view junction) {
  Shape shape;
  auto rest = text;
  std::size_t begin = 0;
  int depth = 0;
  bool closed = false;  // the bracket at the beginning has been closed
  shape.bracketed = text.starts_with('(');
  while (true) {
    const auto token = next_token(rest);
    if (token.type == Token::Type::end) break;
    if (token.type == Token::Type::invalid) return std::nullopt;
    if (closed) shape.bracketed = false;
    if (token.type != Token::Type::symbol) continue;
    const auto& symbol = token.text;
    if (symbol == "(" || symbol == "{" || symbol == "[") ++depth;
    if (symbol == ")" || symbol == "}" || symbol == "]") closed = --depth == 0 || closed;
    if (depth < 0) return std::nullopt;
    if (depth > 0) continue;
    if (symbol == "?" || symbol == "?:" || symbol == ":") return std::nullopt;
    if (symbol == "||" && junction == "&&") return std::nullopt;
    if (symbol != junction) continue;
    const auto end = text.size() - rest.size() - symbol.size();
    shape.parts.push_back(trim(text.substr(begin, end - begin)));
    begin = text.size() - rest.size();
  }
  if (depth > 0) return std::nullopt;
  shape.parts.push_back(trim(text.substr(begin)));
  return shape;
}

void take_apart(std::string_view text, std::string_view junction, int depth,
                std::vector<std::string>& result) {
  const auto shape = depth > 0 ? shape_of(text, junction) : std::nullopt;
  if (shape && shape->bracketed && shape->parts.size() == 1)
    return take_apart(trim(text.substr(1, text.size() - 2)), junction, depth - 1, result);
  if (!shape || shape->parts.size() == 1) {
    result.emplace_back(text);
    return;
  }
  for (const auto part : shape->parts) take_apart(part, junction, depth - 1, result);
}

std::vector<std::string> parts_of(std::string_view expression, std::string_view junction) {
  std::vector<std::string> result;
  const auto text = trim(expression);
  if (!text.empty()) take_apart(text, junction, k_deepest_clause, result);
  return result;
}

}  // namespace

std::vector<std::string> conjuncts(std::string_view expression) {
  return parts_of(expression, "&&");
}

std::vector<std::string> disjuncts(std::string_view expression) {
  return parts_of(expression, "||");
}

std::optional<std::string> over_target(std::string_view expression) {
  std::string result;
  auto rest = expression;
  std::size_t begin = 0;
  while (true) {
    const auto token = next_token(rest);
    const auto end = expression.size() - rest.size();
    if (token.type == Token::Type::invalid) return std::nullopt;
    if (token.type == Token::Type::end) break;
    if (token.type == Token::Type::name) {
      const auto name = lower_case(token.text);
      auto ahead = rest;
      const auto next = next_token(ahead);
      const bool call = next.type == Token::Type::symbol && next.text == "(";
      const bool scoped = next.type == Token::Type::symbol && next.text == ".";
      const bool word = name == "true" || name == "false" || name == "undefined" || name == "error" ||
                        name == "is" || name == "isnt";
      if (name == "target" && scoped) {
        if (next_token(ahead).type != Token::Type::name) return std::nullopt;
        result += expression.substr(begin, end - token.text.size() - begin);
        begin = expression.find('.', end) + 1;
        rest = ahead;
        continue;
      }
      if (!call && !word) return std::nullopt;
    }
  }
  return result + std::string(expression.substr(begin));
}

}  // namespace glidepod::condor
