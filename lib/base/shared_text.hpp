#pragma once

#include <fmt/format.h>

#include <atomic>
#include <compare>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace glidepod {

// A text that does not change and that many have: its copies are one, in any thread. An empty one takes a
// pointer and no more, which a std::string does not.
class SharedText {
 public:
  SharedText() = default;
  // As a std::string is made of any text, without a word.
  SharedText(std::string text)  // NOLINT(google-explicit-constructor)
      : block_(text.empty() ? nullptr : new Block{{1}, std::move(text)}) {}
  SharedText(std::string_view text)  // NOLINT(google-explicit-constructor)
      : SharedText(std::string(text)) {}
  SharedText(const char* text)  // NOLINT(google-explicit-constructor)
      : SharedText(std::string_view(text)) {}
  SharedText(const SharedText& other) noexcept : block_(other.block_) {
    if (block_) block_->users.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedText() {
    if (block_ && block_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block_;
  }

  const std::string& str() const {
    static const std::string none;
    return block_ ? block_->text : none;
  }
  std::string_view view() const { return block_ ? std::string_view(block_->text) : std::string_view(); }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return view(); }   // NOLINT(google-explicit-constructor)
  bool empty() const { return !block_; }
  std::size_t size() const { return view().size(); }
  const char* c_str() const { return str().c_str(); }
  std::size_t find(std::string_view part) const { return view().find(part); }
  // Nobody else has it.
  bool only() const { return block_ && block_->users.load(std::memory_order_relaxed) == 1; }

  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const SharedText& a, const Text& b) {
    if constexpr (std::same_as<Text, SharedText>)
      if (a.block_ == b.block_) return true;
    return a.view() == std::string_view(b);
  }
  template <std::convertible_to<std::string_view> Text>
  friend std::strong_ordering operator<=>(const SharedText& a, const Text& b) {
    if constexpr (std::same_as<Text, SharedText>)
      if (a.block_ == b.block_) return std::strong_ordering::equal;
    return a.view() <=> std::string_view(b);
  }

 private:
  struct Block {
    std::atomic<std::uint32_t> users;
    std::string text;
  };
  Block* block_ = nullptr;
};

template <typename Json>
void to_json(Json& json, const SharedText& text) {
  json = text.str();
}

// Finds texts that others have already.
class TextPool {
 public:
  SharedText of(std::string_view text) {
    if (text.empty()) return {};
    const auto found = texts_.find(text);
    if (found != texts_.end()) return found->second;
    SharedText added(text);
    texts_.emplace(added.view(), added);
    return added;
  }
  void share(SharedText& text) { text = of(text.view()); }
  // Of those that nobody else has any more nothing is kept.
  void tidy() {
    std::erase_if(texts_, [](const auto& entry) { return entry.second.only(); });
  }
  std::size_t size() const { return texts_.size(); }

 private:
  std::unordered_map<std::string_view, SharedText> texts_;
};

// A value that few of many objects have: where it is not there, it takes a pointer and no more.
template <typename T>
class Rare {
 public:
  Rare() = default;
  Rare(T value) : value_(new T(std::move(value))) {}  // NOLINT(google-explicit-constructor): as an optional
  Rare(const Rare& other) : value_(other.value_ ? new T(*other.value_) : nullptr) {}
  Rare(Rare&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Rare& operator=(Rare other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Rare() { delete value_; }  // NOLINT(clang-analyzer-cplusplus.NewDelete): not twice by an optional

  T& emplace() { return *(*this = Rare(T{})).value_; }
  explicit operator bool() const { return value_ != nullptr; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_; }
  const T* operator->() const { return value_; }
  std::optional<T> copy() const { return value_ ? std::optional<T>(*value_) : std::nullopt; }

 private:
  T* value_ = nullptr;
};

}  // namespace glidepod

template <>
struct fmt::formatter<glidepod::SharedText> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const glidepod::SharedText& text, Context& context) const {
    return fmt::formatter<std::string_view>::format(text.view(), context);
  }
};
