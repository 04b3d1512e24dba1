#pragma once

#include <string_view>
#include <vector>

#include "lib/condor/classad.hpp"
#include "lib/condor/tokens.hpp"

namespace glidepod::condor {

// Evaluates ClassAd's arithmetic, comparison, logic, lists and the functions that resource requests are made
// of. What it does not know gives the error value, never a guess. One use only.
class Evaluator {
 public:
  // The limit of its work grows with the bytes of the ad and of the expression.
  explicit Evaluator(const Ad& ad, std::size_t expression_bytes = 0);
  Value attribute(std::string_view lower_name);
  Value expression(std::string_view text);

 private:
  // Parses the operators that bind at least as tightly as level.
  Value binary(int level);
  Value ternary();
  Value unary();
  Value postfix();
  Value primary();
  Value named(const Token& name);
  std::vector<Value> until(std::string_view closing);

  bool at(std::string_view symbol) const {
    return token_.type == Token::Type::symbol && token_.text == symbol;
  }
  bool take(std::string_view symbol);
  void advance();
  // Spends some of the budget; false: the budget is used up.
  bool pay(std::int64_t work);
  Value fail(std::string why);

  const Ad& ad_;
  std::string_view rest_;
  Token token_;
  std::string failure_;  // the whole expression is wrong
  int depth_ = 0;
  std::int64_t budget_;  // tokens, and elements of lists that are copied
};

// The error value where it is not known here what HTCondor makes of something, and so not whether it is an
// error there: it is no operand of `=?=` or isError() as ClassAd's own error value is.
Value unknown(std::string why);
bool is_known(const Value& value);

// A function by its lower-case name; the error value for one that is not known.
Value call_function(std::string_view name, const std::vector<Value>& arguments);

// A strict or logical operator on two values.
Value apply_operator(std::string_view symbol, const Value& left, const Value& right);
Value negate(const Value& value);

// A number, with booleans as 0 and 1, as old ClassAds had them.
bool is_number(const Value& value);
double to_real(const Value& value);
// Truth as && and ?: see it: undefined, error, or true and false, numbers included.
Value to_truth(const Value& value);

}  // namespace glidepod::condor
