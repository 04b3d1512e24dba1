#pragma once

#include <string_view>
#include <vector>

#include "lib/condor/classad.hpp"
#include "lib/condor/tokens.hpp"

namespace glidepod::condor {

// Evaluates ClassAd's arithmetic, comparison, logic, lists, and the functions that occur in resource
// requests. What it does not know gives the error value, never a guess. An object is for one use only.
class Evaluator {
 public:
  // The limit of the work grows with the bytes of the ad and of the expression.
  explicit Evaluator(const Ad& ad, std::size_t expression_bytes = 0);
  // With the ad of a slot to match with.
  Evaluator(const Ad& ad, const Ad& slot, std::size_t expression_bytes = 0)
      : Evaluator(ad, expression_bytes) {
    slot_ = &slot;
  }
  Value attribute(std::string_view lower_name);
  Value expression(std::string_view text);
  bool used_slot() const { return used_slot_; }

 private:
  Value of_slot(std::string_view lower_name);
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
  // Spends some of the budget. Returns false if the budget is used up.
  bool pay(std::int64_t work);
  Value fail(std::string why);

  const Ad& ad_;
  const Ad* slot_ = nullptr;
  bool used_slot_ = false;
  std::string_view rest_;
  Token token_;
  std::string failure_;  // why the whole expression is wrong; empty: it is not
  int depth_ = 0;
  std::int64_t budget_;  // tokens, and elements of lists that are copied
};

// The error value for something whose value in HTCondor is not known here. It may be no error there. So `=?=`
// and isError() do not treat it like ClassAd's own error value.
Value unknown(std::string why);
bool is_known(const Value& value);

// Calls a function by its lower-case name. An unknown function gives the error value.
Value call_function(std::string_view name, const std::vector<Value>& arguments);

// Applies a strict or logical operator to two values.
Value apply_operator(std::string_view symbol, const Value& left, const Value& right);
Value negate(const Value& value);

// Whether the value is a number or, as in old ClassAds, a boolean, which counts as 0 or 1.
bool is_number(const Value& value);
double to_real(const Value& value);
// The value as && and ?: take it: undefined, error, true or false. Numbers become true or false.
Value to_truth(const Value& value);

}  // namespace glidepod::condor
