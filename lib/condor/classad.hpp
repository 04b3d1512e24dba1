#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::condor {

// The value of a ClassAd expression. "error" is ClassAd's own error value; `text` then says why.
struct Value {
  enum class Type : std::uint8_t { undefined, error, boolean, integer, real, string, list };
  Type type = Type::undefined;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Value> list;

  static Value undefined() { return {}; }
  static Value failed(std::string why);
  static Value of(bool value);
  static Value of(std::int64_t value);
  static Value of(double value);
  static Value of(std::string value);
  static Value of(std::vector<Value> value);

  bool is(Type wanted) const { return type == wanted; }
  // The value as ClassAd writes it, but strings without their quotes.
  std::string to_string() const;
};

// One ad: attributes that are values, or expressions over other attributes. Names are compared without case.
class Ad {
 public:
  void set(std::string_view name, Value value);
  void set_expression(std::string_view name, std::string expression);
  bool empty() const { return attributes_.empty(); }
  // The names of all attributes, in lower case and sorted.
  std::vector<std::string> names() const;

  // The attribute's value. Its expression is evaluated as HTCondor would with this ad alone. A missing
  // attribute is undefined. The error value is given for references in a circle, for too deep nesting, and
  // for more work than an ad of this many bytes may cause.
  Value evaluate(std::string_view name) const;
  // As evaluate(), with the ad of a slot to match with: TARGET's attributes are the slot's, and so is what an
  // expression names and this ad lacks. used: set to true if the slot's ad had something to say. The slot's
  // own attributes must be values.
  Value evaluate(std::string_view name, const Ad& slot, bool& used) const;
  // The attribute's value if it is a text, else an empty text.
  std::string text(std::string_view name) const;
  // How the attribute is written: its expression, or its value as ClassAd writes it; "undefined" if it is
  // missing.
  std::string written(std::string_view name) const;
  // Evaluates an expression that is not part of the ad, as evaluate() does.
  Value evaluate_expression(std::string_view expression) const;
  // The same with the ad of a slot. An attribute of the slot whose value is the unknown one (evaluator.hpp)
  // makes unknown what depends on it.
  Value evaluate_expression(std::string_view expression, const Ad& slot) const;

 private:
  friend class Evaluator;
  struct Attribute {
    Value value;
    std::string expression;  // if it is not empty, it is evaluated in place of the value
  };
  std::map<std::string, Attribute, std::less<>> attributes_;
  std::size_t bytes_ = 0;  // the size of all that was set, roughly
};

// The names of the attributes that an expression refers to, once each, as they are written. An Error if it is
// not made of ClassAd's tokens, or if its brackets do not match. HTCondor itself has the last word on the
// grammar.
Result<std::vector<std::string>> referenced_attributes(std::string_view expression);

}  // namespace glidepod::condor
