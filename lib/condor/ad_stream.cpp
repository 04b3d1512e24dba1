#include "lib/condor/ad_stream.hpp"

#include <nlohmann/json.hpp>

#include "lib/base/text.hpp"

namespace glidepod::condor {

namespace {

constexpr std::size_t k_longest_ad = std::size_t{1} << 20;
constexpr int k_deepest_ad = 100;

// Builds the ad from the parser's events. Nested ads are skipped; lists are kept.
class AdBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Ad ad;
  std::string failure;

  bool null() override { return add(Value::undefined()); }
  bool boolean(bool value) override { return add(Value::of(value)); }
  bool number_integer(number_integer_t value) override { return add(Value::of(std::int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<std::uint64_t>(INT64_MAX);
    return add(fits ? Value::of(static_cast<std::int64_t>(value)) : Value::of(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Value::of(value)); }
  bool string(string_t& value) override {
    constexpr std::string_view open = "/Expr(", close = ")/";
    const bool expression =
        value.size() >= open.size() + close.size() && value.starts_with(open) && value.ends_with(close);
    if (!expression) return add(Value::of(std::move(value)));
    if (depth_ == 1 && lists_.empty())
      ad.set_expression(key_, value.substr(open.size(), value.size() - open.size() - close.size()));
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= k_deepest_ad; }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) key_ = std::move(value);
    return true;
  }
  bool start_array(std::size_t) override {
    lists_.emplace_back();
    return lists_.size() <= k_deepest_ad;
  }
  bool end_array() override {
    auto list = Value::of(std::move(lists_.back()));
    lists_.pop_back();
    return add(std::move(list));
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& why) override {
    failure = fmt::format("not JSON at byte {}: {}", at, one_line(why.what(), 200));
    return false;
  }

 private:
  bool add(Value value) {
    if (depth_ != 1) return true;
    if (lists_.empty())
      ad.set(key_, std::move(value));
    else
      lists_.back().push_back(std::move(value));
    return true;
  }

  int depth_ = 0;
  std::string key_;
  std::vector<std::vector<Value>> lists_;
};

}  // namespace

Result<Ad> ad_from_json(std::string_view text) {
  AdBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return error("{}", builder.failure.empty() ? "nested too deeply" : builder.failure);
  return std::move(builder.ad);
}

void AdStream::feed(std::string_view piece) {
  for (const char c : piece) {
    const char last = std::exchange(last_, c);
    // HTCondor's commands start every ad, and nothing else, on a line of its own. So a line that starts an ad
    // ends one that was cut short.
    if (depth_ > 0 && c == '{' && last == '\n') {
      on_bad_("not JSON: cut short");
      depth_ = 0;
      in_string_ = after_backslash_ = too_long_ = false;
    }
    if (depth_ == 0) {
      // Between the ads stand only "[", "," and "]".
      if (c != '{') continue;
      depth_ = 1;
      ad_ = c;
      continue;
    }
    if (ad_.size() < k_longest_ad)
      ad_ += c;
    else
      too_long_ = true;
    if (in_string_) {
      // A string in an ad has no line end. So a missing quote cannot swallow the ads after it.
      if (c == '\n') {
        in_string_ = after_backslash_ = false;
      } else if (after_backslash_) {
        after_backslash_ = false;
      } else if (c == '\\') {
        after_backslash_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      continue;
    }
    if (c == '"') in_string_ = true;
    if (c == '{') ++depth_;
    if (c == '}' && --depth_ == 0) close_ad();
  }
}

void AdStream::close_ad() {
  auto ad = too_long_ ? Result<Ad>(error("longer than {} bytes", k_longest_ad)) : ad_from_json(ad_);
  too_long_ = false;
  ad_.clear();
  if (ad)
    on_ad_(std::move(ad).value());
  else
    on_bad_(ad.error().message());
}

Result<void> AdStream::end() {
  if (depth_ == 0) return {};
  return error("the answer ends within an ad");
}

}  // namespace glidepod::condor
