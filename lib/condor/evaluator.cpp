#include "lib/condor/evaluator.hpp"

#include <algorithm>

#include "lib/base/text.hpp"

namespace glidepod::condor {

namespace {

constexpr int k_deepest = 64;
// The work that an evaluation may take: some milliseconds at most, and much less for a small ad.
constexpr std::int64_t k_least_work = 1'000, k_work_per_byte = 4, k_most_work = 10'000;
constexpr std::size_t k_bytes_of_work = 256;  // copying this many bytes of text costs as much as a token
constexpr const char* k_too_much = "is too much work";

std::int64_t work_of_bytes(std::size_t bytes) {
  return static_cast<std::int64_t>(bytes / k_bytes_of_work);
}

// The work of copying a value.
std::int64_t work_of(const Value& value) {
  auto work = work_of_bytes(value.text.size());
  for (const auto& element : value.list) work += 1 + work_of(element);
  return work;
}

// The binary operators, from the loosest to the tightest. ?: is parsed elsewhere.
const std::vector<std::vector<std::string_view>>& levels() {
  static const std::vector<std::vector<std::string_view>> result = {
      {"||"},     {"&&"},         {"==", "!=", "=?=", "=!=", "is", "isnt"}, {"<", "<=", ">", ">="},
      {"+", "-"}, {"*", "/", "%"}};
  return result;
}

}  // namespace

Evaluator::Evaluator(const Ad& ad, std::size_t expression_bytes)
    : ad_(ad),
      budget_(
          std::min(k_least_work + k_work_per_byte * static_cast<std::int64_t>(ad.bytes_ + expression_bytes),
                   k_most_work)) {}

bool Evaluator::pay(std::int64_t work) {
  budget_ -= std::min(work, std::max<std::int64_t>(budget_, 0));
  return budget_ > 0;
}

void Evaluator::advance() {
  const auto before = rest_.size();
  token_ = next_token(rest_);
  if (!pay(1 + work_of_bytes(before - rest_.size()))) static_cast<void>(fail(k_too_much));
}

Value Evaluator::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  // Lets the expression end here, so that every loop stops.
  rest_ = {};
  token_ = {};
  return unknown(failure_);
}

bool Evaluator::take(std::string_view symbol) {
  if (!at(symbol)) return false;
  advance();
  return true;
}

Value Evaluator::attribute(std::string_view lower_name) {
  const auto found = ad_.attributes_.find(lower_name);
  if (found == ad_.attributes_.end()) return of_slot(lower_name);
  if (found->second.expression.empty())
    return pay(work_of(found->second.value)) ? found->second.value : unknown(k_too_much);
  return expression(found->second.expression);
}

Value Evaluator::of_slot(std::string_view lower_name) {
  if (slot_ == nullptr) return Value::undefined();
  const auto found = slot_->attributes_.find(lower_name);
  if (found == slot_->attributes_.end()) return Value::undefined();
  used_slot_ = true;
  return found->second.expression.empty() ? found->second.value : unknown("depends on the slot");
}

Value Evaluator::expression(std::string_view text) {
  if (depth_ >= k_deepest) return unknown("refers to itself or is nested too deeply");
  if (budget_ <= 0) return unknown(k_too_much);
  ++depth_;
  const auto outer_rest = std::exchange(rest_, text);
  auto outer_token = std::exchange(token_, {});
  auto outer_failure = std::exchange(failure_, {});
  advance();
  auto value = ternary();
  if (token_.type == Token::Type::invalid) value = fail(token_.text);
  if (token_.type != Token::Type::end)
    value = fail(fmt::format("'{}' is not expected", one_line(token_.text, 100)));
  if (!failure_.empty()) value = unknown(failure_);
  failure_ = std::move(outer_failure);
  token_ = std::move(outer_token);
  rest_ = outer_rest;
  --depth_;
  return value;
}

Value Evaluator::ternary() {
  if (++depth_ > k_deepest) {
    --depth_;
    return fail("is nested too deeply");
  }
  auto condition = binary(0);
  Value result;
  if (take("?:")) {
    auto other = ternary();
    result = condition.is(Value::Type::undefined) ? std::move(other) : std::move(condition);
  } else if (take("?")) {
    auto yes = ternary();
    if (!take(":")) result = fail("':' is missing");
    auto no = ternary();
    const auto truth = to_truth(condition);
    result = !truth.is(Value::Type::boolean) ? truth : truth.boolean ? std::move(yes) : std::move(no);
  } else {
    result = std::move(condition);
  }
  --depth_;
  return result;
}

Value Evaluator::binary(int level) {
  if (level == static_cast<int>(levels().size())) return unary();
  auto left = binary(level + 1);
  while (true) {
    std::string_view symbol;
    for (const auto candidate : levels()[static_cast<std::size_t>(level)])
      if (at(candidate) || (token_.type == Token::Type::name && token_.text.size() == candidate.size() &&
                            lower_case(token_.text) == candidate))
        symbol = candidate;
    if (symbol.empty()) return left;
    advance();
    left = apply_operator(symbol, left, binary(level + 1));
  }
}

Value Evaluator::unary() {
  // A loop, not recursion: ClassAd allows any number of signs.
  std::string signs;
  while (at("-") || at("+") || at("!")) {
    signs += token_.text;
    advance();
  }
  auto value = postfix();
  for (auto sign = signs.rbegin(); sign != signs.rend(); ++sign) {
    if (*sign == '!') value = negate(value);
    if (*sign == '!') continue;
    // A boolean with a sign is an error, though other operators take booleans as numbers.
    const bool number = value.is(Value::Type::integer) || value.is(Value::Type::real);
    if (value.is(Value::Type::error) || value.is(Value::Type::undefined)) continue;
    if (!number)
      value = Value::failed(fmt::format("'{}' needs a number", *sign));
    else if (*sign == '-')
      value = value.is(Value::Type::real) ? Value::of(-value.real)
                                          : apply_operator("-", Value::of(std::int64_t{0}), value);
  }
  return value;
}

Value Evaluator::postfix() {
  auto value = primary();
  while (take("[")) {
    const auto index = ternary();
    if (!take("]")) return fail("']' is missing");
    const bool inside = value.is(Value::Type::list) && index.is(Value::Type::integer) && index.integer >= 0 &&
                        static_cast<std::size_t>(index.integer) < value.list.size();
    for (const Value* part : std::initializer_list<const Value*>{&value, &index})
      if (!is_known(*part)) return *part;
    auto element = inside ? std::move(value.list[static_cast<std::size_t>(index.integer)])
                          : Value::failed("no such element");
    value = std::move(element);
  }
  return value;
}

std::vector<Value> Evaluator::until(std::string_view closing) {
  std::vector<Value> result;
  if (take(closing)) return result;
  do result.push_back(ternary());
  while (take(","));
  if (!take(closing)) fail(fmt::format("'{}' is missing", closing));
  return result;
}

Value Evaluator::primary() {
  const auto token = token_;
  switch (token.type) {
    case Token::Type::number:
      advance();
      return token.number;
    case Token::Type::string:
      advance();
      if (token.special) return unknown("a string has escapes that are not known here");
      return Value::of(token.text);
    case Token::Type::name:
      advance();
      return named(token);
    case Token::Type::symbol:
      if (take("(")) {
        auto value = ternary();
        return take(")") ? value : fail("')' is missing");
      }
      if (take("{")) return Value::of(until("}"));
      return fail(fmt::format("'{}' is not expected", one_line(token.text, 100)));
    case Token::Type::invalid:
      return fail(token.text);
    case Token::Type::end:
      return fail("ends too early");
  }
  return {};
}

Value Evaluator::named(const Token& name) {
  const auto lower = lower_case(name.text);
  if (take("(")) return call_function(lower, until(")"));
  if (lower == "true" || lower == "false") return Value::of(lower == "true");
  if (lower == "undefined") return Value::undefined();
  if (lower == "error") return Value::failed("error");
  if (lower != "my" && lower != "target") return attribute(lower);
  if (!take(".")) return attribute(lower);
  const auto member = token_;
  if (member.type != Token::Type::name) return fail("a name must follow '.'");
  advance();
  const auto wanted = lower_case(member.text);
  if (lower == "target") return of_slot(wanted);
  return ad_.attributes_.contains(wanted) ? attribute(wanted) : Value::undefined();
}

}  // namespace glidepod::condor
