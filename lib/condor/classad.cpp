#include "lib/condor/classad.hpp"

#include <algorithm>
#include <set>

#include "lib/base/text.hpp"
#include "lib/condor/evaluator.hpp"
#include "lib/condor/job_ad.hpp"
#include "lib/condor/tokens.hpp"

namespace glidepod::condor {

Value Value::failed(std::string why) {
  Value value;
  value.type = Type::error;
  value.text = std::move(why);
  return value;
}

Value Value::of(bool value) {
  Value result;
  result.type = Type::boolean;
  result.boolean = value;
  return result;
}

Value Value::of(std::int64_t value) {
  Value result;
  result.type = Type::integer;
  result.integer = value;
  return result;
}

Value Value::of(double value) {
  Value result;
  result.type = Type::real;
  result.real = value;
  return result;
}

Value Value::of(std::string value) {
  Value result;
  result.type = Type::string;
  result.text = std::move(value);
  return result;
}

Value Value::of(std::vector<Value> value) {
  Value result;
  result.type = Type::list;
  result.list = std::move(value);
  return result;
}

std::string Value::to_string() const {
  switch (type) {
    case Type::undefined:
      return "undefined";
    case Type::error:
      return "error";
    case Type::boolean:
      return boolean ? "true" : "false";
    case Type::integer:
      return std::to_string(integer);
    case Type::real:
      return fmt::format("{}", real);
    case Type::string:
      return text;
    case Type::list: {
      std::vector<std::string> parts;
      for (const auto& element : list) parts.push_back(element.to_string());
      return fmt::format("{{ {} }}", fmt::join(parts, ","));
    }
  }
  return {};
}

namespace {

// A value as an ad has it: strings have their quotes, also in lists.
std::string literal(const Value& value) {
  if (value.is(Value::Type::string)) return quote(value.text);
  if (!value.is(Value::Type::list)) return value.to_string();
  std::vector<std::string> parts;
  for (const auto& element : value.list) parts.push_back(literal(element));
  return fmt::format("{{ {} }}", fmt::join(parts, ","));
}

std::size_t bytes_of(const Value& value) {
  auto bytes = value.text.size() + 1;
  for (const auto& element : value.list) bytes += bytes_of(element);
  return bytes;
}

}  // namespace

void Ad::set(std::string_view name, Value value) {
  bytes_ += name.size() + bytes_of(value);
  attributes_[lower_case(name)] = {std::move(value), {}};
}

void Ad::set_expression(std::string_view name, std::string expression) {
  bytes_ += name.size() + expression.size();
  attributes_[lower_case(name)] = {{}, std::move(expression)};
}

std::vector<std::string> Ad::names() const {
  std::vector<std::string> result;
  for (const auto& attribute : attributes_) result.push_back(attribute.first);
  return result;
}

Value Ad::evaluate(std::string_view name) const {
  return Evaluator(*this).attribute(lower_case(name));
}

Value Ad::evaluate(std::string_view name, const Ad& slot, bool& used) const {
  const auto lower = lower_case(name);
  if (!attributes_.contains(lower)) return Value::undefined();
  Evaluator evaluator(*this, slot);
  auto value = evaluator.attribute(lower);
  used |= evaluator.used_slot();
  return value;
}

std::string Ad::text(std::string_view name) const {
  auto value = evaluate(name);
  return value.is(Value::Type::string) ? std::move(value.text) : std::string();
}

std::string Ad::written(std::string_view name) const {
  const auto found = attributes_.find(lower_case(name));
  if (found == attributes_.end()) return "undefined";
  const auto& [value, expression] = found->second;
  return expression.empty() ? literal(value) : expression;
}

Value Ad::evaluate_expression(std::string_view expression) const {
  return Evaluator(*this, expression.size()).expression(expression);
}

Value Ad::evaluate_expression(std::string_view expression, const Ad& slot) const {
  return Evaluator(*this, slot, expression.size()).expression(expression);
}

Result<std::vector<std::string>> referenced_attributes(std::string_view expression) {
  static const std::set<std::string, std::less<>> words = {"true", "false", "undefined", "error",
                                                           "is",   "isnt",  "my",        "target"};
  std::vector<std::string> result;
  std::set<std::string> seen;
  std::string brackets;
  bool member = false;  // after "x.", where x is not MY or TARGET
  for (auto token = next_token(expression); token.type != Token::Type::end; token = next_token(expression)) {
    if (token.type == Token::Type::invalid) return error("{}", token.text);
    if (token.type == Token::Type::symbol) {
      const auto opened = std::string_view("({[").find(token.text);
      const auto closed = std::string_view(")}]").find(token.text);
      if (token.text.size() == 1 && opened != std::string_view::npos) brackets += ")}]"[opened];
      if (token.text.size() == 1 && closed != std::string_view::npos) {
        if (brackets.empty() || brackets.back() != token.text[0])
          return error("'{}' closes nothing", token.text);
        brackets.pop_back();
      }
    }
    if (token.type != Token::Type::name) continue;
    auto ahead = expression;
    const auto next = next_token(ahead);
    const bool call = next.type == Token::Type::symbol && next.text == "(";
    const bool scope = next.type == Token::Type::symbol && next.text == ".";
    const auto name = lower_case(token.text);
    const bool is_member = member;
    member = scope && !words.contains(name);
    if (!is_member && !call && !words.contains(name) && seen.insert(name).second)
      result.push_back(token.text);
  }
  if (!brackets.empty()) return error("'{}' is missing", brackets.back());
  return result;
}

}  // namespace glidepod::condor
