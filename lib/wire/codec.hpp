#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::wire {

// The bytes of a message: integers of fixed width in little-endian order; strings and lists with a 32-bit
// length in front. This is not JSON, since arguments and environments are bytes, not UTF-8. A message type
// lists its fields once, in a function `fields(archive, message)`, which both Writer and Reader use.

template <typename T>
concept Scalar = std::integral<T> || std::is_enum_v<T>;

class Writer {
 public:
  template <typename... Fields>
  void operator()(const Fields&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void put_integer(std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  template <Scalar T>
  void put(T value) {
    put_integer(static_cast<std::uint64_t>(value), sizeof(T));
  }
  void put(const std::string& value) {
    put(static_cast<std::uint32_t>(value.size()));
    bytes_ += value;
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::uint32_t>(values.size()));
    for (const T& value : values) put(value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void put(const T& value) { fields(*this, value); }
  std::string bytes_;
};

// Reads what Writer wrote. If bytes do not fit, or are left over, finish() fails. Then nothing that was read
// may be used.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename... Fields>
  void operator()(Fields&... values) {
    (get(values), ...);
  }
  Result<void> finish() const {
    if (failed_ || !bytes_.empty()) return error("malformed message");
    return {};
  }

 private:
  std::uint64_t get_integer(std::size_t width) {
    if (bytes_.size() < width) {
      failed_ = true;
      bytes_ = {};
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[i])) << (8 * i);
    bytes_.remove_prefix(width);
    return value;
  }
  template <Scalar T>
  void get(T& value) {
    value = static_cast<T>(get_integer(sizeof(T)));
  }
  void get(std::string& value) {
    const auto length = static_cast<std::size_t>(get_integer(4));
    if (length > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return;
    }
    value.assign(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
  }
  template <typename T>
  void get(std::vector<T>& values) {
    const auto count = static_cast<std::size_t>(get_integer(4));
    // Each element takes at least one byte. So a count beyond the bytes that are left is wrong. This is
    // checked before memory is reserved.
    if (count > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return;
    }
    values.clear();
    for (std::size_t i = 0; i < count && !failed_; ++i) get(values.emplace_back());
  }
  template <typename T>
  requires std::is_class_v<T>
  void get(T& value) { fields(*this, value); }
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace glidepod::wire
