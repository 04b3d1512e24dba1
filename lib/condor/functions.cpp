#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/base/text.hpp"
#include "lib/condor/evaluator.hpp"

namespace glidepod::condor {

namespace {

using Type = Value::Type;

// A real as an integer, if an integer can hold it.
Value to_integer(double real) {
  if (!(real > -9.2e18 && real < 9.2e18)) return unknown("is out of range");
  return Value::of(static_cast<std::int64_t>(real));
}

Value compare(std::string_view symbol, int order) {
  if (symbol == "==") return Value::of(order == 0);
  if (symbol == "!=") return Value::of(order != 0);
  if (symbol == "<") return Value::of(order < 0);
  if (symbol == "<=") return Value::of(order <= 0);
  if (symbol == ">") return Value::of(order > 0);
  return Value::of(order >= 0);
}

bool is_comparison(std::string_view symbol) {
  return symbol == "==" || symbol == "!=" || symbol == "<" || symbol == "<=" || symbol == ">" ||
         symbol == ">=";
}

// The operator "is": the same type and the same value; the case of strings counts.
bool identical(const Value& a, const Value& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::undefined:
    case Type::error:
      return true;
    case Type::boolean:
      return a.boolean == b.boolean;
    case Type::integer:
      return a.integer == b.integer;
    case Type::real:
      return a.real == b.real;
    case Type::string:
      return a.text == b.text;
    case Type::list:
      return a.list.size() == b.list.size() &&
             std::equal(a.list.begin(), a.list.end(), b.list.begin(), identical);
  }
  return false;
}

Value integer_operation(char symbol, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (symbol) {
    case '+':
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case '-':
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case '*':
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    default:
      if (b == 0) return Value::failed("division by zero");
      if (b == -1) return symbol == '/' ? integer_operation('-', 0, a) : Value::of(std::int64_t{0});
      result = symbol == '/' ? a / b : a % b;
  }
  return overflow ? unknown("is out of range") : Value::of(result);
}

std::int64_t to_whole(const Value& value) {
  return value.is(Type::boolean) ? std::int64_t{value.boolean} : value.integer;
}

Value arithmetic(char symbol, const Value& a, const Value& b) {
  if (!a.is(Type::real) && !b.is(Type::real)) return integer_operation(symbol, to_whole(a), to_whole(b));
  const double x = to_real(a), y = to_real(b);
  switch (symbol) {
    case '+':
      return Value::of(x + y);
    case '-':
      return Value::of(x - y);
    case '*':
      return Value::of(x * y);
    case '/':
      if (y == 0 && b.is(Type::boolean)) return unknown("division by false");
      return y == 0 ? Value::failed("division by zero") : Value::of(x / y);
    default:
      return Value::failed("'%' needs whole numbers");
  }
}

Value logic(std::string_view symbol, const Value& left, const Value& right) {
  const bool decides = symbol == "||";  // the operand that decides the result by itself
  auto a = to_truth(left), b = to_truth(right);
  if (a.is(Type::error)) return a;
  if (a.is(Type::boolean) && a.boolean == decides) return a;
  if (b.is(Type::error) || (b.is(Type::boolean) && b.boolean == decides)) return b;
  return a.is(Type::undefined) || b.is(Type::undefined) ? Value::undefined() : Value::of(!decides);
}

Value extreme(const std::vector<Value>& arguments, bool greatest) {
  if (arguments.size() == 1 && arguments[0].is(Type::undefined)) return arguments[0];
  if (arguments.size() != 1 || !arguments[0].is(Type::list)) return Value::failed("max and min take a list");
  Value best;
  bool real = false;  // one real number makes the result real
  for (const auto& element : arguments[0].list) {
    real = real || element.is(Type::real);
    if (element.is(Type::undefined)) continue;  // as HTCondor does
    if (!is_number(element)) return Value::failed("max and min take numbers");
    if (best.is(Type::undefined) ||
        (greatest ? to_real(element) > to_real(best) : to_real(element) < to_real(best)))
      best = element;
  }
  if (real && is_number(best)) return Value::of(to_real(best));
  if (best.is(Type::boolean)) return Value::of(std::int64_t{best.boolean});
  return best;
}

Value convert(const Value& value, bool to_whole) {
  if (value.is(Type::undefined) || value.is(Type::error)) return value;
  double real = 0;
  if (value.is(Type::string)) {
    auto text = std::string_view(value.text);
    const auto token = next_token(text);
    if (token.type != Token::Type::number || !text.empty())
      return unknown("text that is not wholly a number");
    if (to_whole && token.number.is(Type::integer)) return token.number;
    real = to_real(token.number);
  } else if (is_number(value)) {
    if (to_whole && value.is(Type::integer)) return value;
    real = to_real(value);
  } else {
    return Value::failed("is not a number");
  }
  return to_whole ? to_integer(real) : Value::of(real);
}

Value rounded(std::string_view name, const Value& value) {
  if (value.is(Type::error) || value.is(Type::integer)) return value;
  if (value.is(Type::string)) return unknown("is text");
  if (!is_number(value)) return Value::failed("is not a number");
  const double real = to_real(value);
  return to_integer(name == "floor"   ? std::floor(real)
                    : name == "round" ? std::nearbyint(real)
                                      : std::ceil(real));
}

// quantize(): rounds up to the next multiple of a number. With a list, it rounds up to the first number that
// is large enough, or else to a multiple of the list's last.
Value quantize(const Value& value, const Value& step) {
  if (value.is(Type::error)) return value;
  if (value.is(Type::undefined)) return Value::failed("quantize takes a number");
  Value unit = step;
  // For negative numbers, booleans and texts HTCondor gives other results.
  if ((!value.is(Type::integer) && !value.is(Type::real)) || !(to_real(value) >= 0))
    return unknown("quantize takes a number from 0 on");
  if (step.is(Type::list)) {
    if (step.list.empty()) return value;
    for (const auto& element : step.list)
      if (!element.is(Type::integer) && !element.is(Type::real))
        return unknown("quantize takes a list of numbers");
    for (const auto& element : step.list)
      if (to_real(element) >= to_real(value)) return element;
    unit = step.list.back();
  }
  if ((!unit.is(Type::integer) && !unit.is(Type::real)) || !(to_real(unit) > 0))
    return unknown("quantize takes a positive step");
  if (to_real(value) + to_real(unit) > 9e18) return unknown("is out of range");
  if (value.is(Type::integer) && unit.is(Type::integer))
    return Value::of((value.integer / unit.integer + (value.integer % unit.integer > 0 ? 1 : 0)) *
                     unit.integer);
  return Value::of(std::ceil(to_real(value) / to_real(unit)) * to_real(unit));
}

Value strcat(const std::vector<Value>& parts) {
  std::string text;
  bool undefined = false;
  for (const auto& part : parts) {
    if (part.is(Type::real) || part.is(Type::list) || part.is(Type::error))
      return unknown("strcat() takes text, whole numbers and truth here");
    undefined = undefined || part.is(Type::undefined);
    text += part.to_string();
  }
  return undefined ? Value::undefined() : Value::of(std::move(text));
}

Value member(const Value& wanted, const Value& list) {
  const auto plain = [](const Value& value) { return value.is(Type::integer) || value.is(Type::real); };
  const bool text = wanted.is(Type::string);
  if (!list.is(Type::list) || (!text && !plain(wanted))) return unknown("member() takes a list here");
  bool found = false;
  for (const auto& element : list.list) {
    if (text ? !element.is(Type::string) : !plain(element))
      return unknown("member() takes elements of one kind here");
    found = found || apply_operator("==", wanted, element).boolean;
  }
  return Value::of(found);
}

constexpr std::int64_t k_exact = std::int64_t{1} << 53;

Value power(const Value& base, const Value& exponent) {
  const auto good = [](const Value& value) { return value.is(Type::integer) && value.integer >= 0; };
  if (!good(base) || !good(exponent) || exponent.integer > 63)
    return unknown("pow() takes whole numbers from 0 on, and an exponent up to 63 here");
  auto result = Value::of(std::int64_t{1});
  for (auto i = exponent.integer; i > 0 && is_known(result); --i)
    result = integer_operation('*', result.integer, base.integer);
  // HTCondor calculates with reals.
  if (is_known(result) && result.integer > k_exact) return unknown("is out of range");
  return result;
}

// The functions isString(), isUndefined() and their like; none for any other name.
std::optional<bool> is_of_type(std::string_view name, const Value& value) {
  if (name == "isinteger") return value.is(Type::integer);
  if (name == "isreal") return value.is(Type::real);
  if (name == "isstring") return value.is(Type::string);
  if (name == "isboolean") return value.is(Type::boolean);
  if (name == "islist") return value.is(Type::list);
  return std::nullopt;
}

}  // namespace

// An error value has no number. So its integer can mark that the error is unsure.
Value unknown(std::string why) {
  auto value = Value::failed(std::move(why));
  value.integer = 1;
  return value;
}

bool is_known(const Value& value) {
  return !(value.is(Type::error) && value.integer != 0) && std::ranges::all_of(value.list, is_known);
}

bool is_number(const Value& value) {
  return value.is(Type::integer) || value.is(Type::real) || value.is(Type::boolean);
}

double to_real(const Value& value) {
  if (value.is(Type::real)) return value.real;
  return value.is(Type::boolean) ? value.boolean : static_cast<double>(value.integer);
}

Value to_truth(const Value& value) {
  if (value.is(Type::undefined) || value.is(Type::error)) return value;
  return is_number(value) ? Value::of(to_real(value) != 0) : Value::failed("is neither true nor false");
}

Value negate(const Value& value) {
  auto truth = to_truth(value);
  if (truth.is(Type::boolean)) truth.boolean = !truth.boolean;
  return truth;
}

Value apply_operator(std::string_view symbol, const Value& left, const Value& right) {
  // HTCondor compares lists only if both are the same list.
  if (symbol == "||" || symbol == "&&") return logic(symbol, left, right);
  for (const auto* side : {&left, &right})
    if (!is_known(*side)) return *side;
  // In HTCondor two lists are equal only if both are the same list.
  if (left.is(Type::list) || right.is(Type::list))
    return unknown(fmt::format("'{}' does not take lists here", symbol));
  if (symbol == "=?=" || symbol == "is") return Value::of(identical(left, right));
  if (symbol == "=!=" || symbol == "isnt") return Value::of(!identical(left, right));
  for (const auto* side : {&left, &right})
    if (side->is(Type::error)) return *side;
  for (const auto* side : {&left, &right})
    if (side->is(Type::undefined)) return *side;
  const bool numbers = is_number(left) && is_number(right);
  if (is_comparison(symbol)) {
    if (left.is(Type::string) && right.is(Type::string))
      return compare(symbol, lower_case(left.text).compare(lower_case(right.text)));
    if (!numbers) return Value::failed("values of these types cannot be compared");
    if (!left.is(Type::real) && !right.is(Type::real)) {
      const auto a = to_whole(left), b = to_whole(right);
      return compare(symbol, a < b ? -1 : a > b ? 1 : 0);
    }
    const double a = to_real(left), b = to_real(right);
    return compare(symbol, a < b ? -1 : a > b ? 1 : 0);
  }
  if (!numbers) return Value::failed(fmt::format("'{}' needs numbers", symbol));
  return arithmetic(symbol.front(), left, right);
}

Value call_function(std::string_view name, const std::vector<Value>& arguments) {
  if (name == "ifthenelse" && arguments.size() == 3) {
    const auto truth = to_truth(arguments[0]);
    return !truth.is(Type::boolean) ? truth : arguments[truth.boolean ? 1 : 2];
  }
  for (const auto& argument : arguments)
    if (!is_known(argument))
      return unknown(argument.text.empty() ? "an element is not known" : argument.text);
  if (name == "max" || name == "min") return extreme(arguments, name == "max");
  if (name == "strcat") return strcat(arguments);
  if (arguments.size() == 2) {
    if (name == "quantize") return quantize(arguments[0], arguments[1]);
    if (name == "member") return member(arguments[0], arguments[1]);
    if (name == "pow") return power(arguments[0], arguments[1]);
  }
  if (arguments.size() == 1) {
    const auto& argument = arguments[0];
    if (name == "isundefined") return Value::of(argument.is(Type::undefined));
    if (name == "iserror") return Value::of(argument.is(Type::error));
    if (const auto type = is_of_type(name, argument)) return Value::of(*type);
    if (name == "int") return convert(argument, true);
    if (name == "real") return convert(argument, false);
    if (name == "floor" || name == "ceiling" || name == "round") return rounded(name, argument);
    if (name == "size" && argument.is(Type::list))
      return Value::of(static_cast<std::int64_t>(argument.list.size()));
    if (name == "size" && argument.is(Type::string))
      return Value::of(static_cast<std::int64_t>(argument.text.size()));
    if (name == "tolower" && argument.is(Type::string)) return Value::of(lower_case(argument.text));
  }
  return unknown(fmt::format("{}() with {} arguments is not known here", name, arguments.size()));
}

}  // namespace glidepod::condor
