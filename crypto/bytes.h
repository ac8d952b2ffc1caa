// Views, buffers and the strict little-endian codec that every format of ours is written with.
//
// A ByteReader never reads past its end: the first short read makes it bad for good, every later read gives
// zeros, and the caller asks done() once, at the end. So a parser is a straight list of fields.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lower-case hexadecimal, two digits a byte.
std::string to_hex(ByteView bytes);

// One little-endian number at a place that is known to be there: for layouts of fixed size.
template <typename T>
void store_le(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
  if constexpr (std::endian::native == std::endian::big) std::reverse(to, to + sizeof value);
}
template <typename T>
T load_le(const std::uint8_t* from) {
  std::uint8_t field[sizeof(T)];
  std::memcpy(field, from, sizeof field);
  if constexpr (std::endian::native == std::endian::big) std::reverse(field, field + sizeof field);
  T value;
  std::memcpy(&value, field, sizeof field);
  return value;
}

// Appends little-endian fields to a buffer that the caller owns.
class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  void u8(std::uint8_t v) { out_.push_back(v); }
  void u16(std::uint16_t v) { number(v); }
  void u32(std::uint32_t v) { number(v); }
  void u64(std::uint64_t v) { number(v); }
  void raw(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void zeros(std::size_t count) { out_.resize(out_.size() + count); }
  // u32 length, then the bytes. A length that u32 cannot say is a bug.
  void prefixed(ByteView bytes) {
    if (bytes.size() > UINT32_MAX) std::abort();
    u32(static_cast<std::uint32_t>(bytes.size()));
    raw(bytes);
  }

 private:
  template <typename T>
  void number(T v) {
    std::uint8_t field[sizeof v];
    store_le(field, v);
    raw(field);
  }
  Bytes& out_;
};

// Reads what a ByteWriter wrote. Views point into the bytes given, which must outlive them.
class ByteReader {
 public:
  explicit ByteReader(ByteView in) : in_(in) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  ByteView raw(std::size_t count) {
    if (count > in_.size()) {
      good_ = false;
      in_ = {};
      return {};
    }
    ByteView head = in_.first(count);
    in_ = in_.subspan(count);
    return head;
  }
  ByteView prefixed() { return raw(u32()); }

  // All fields so far were there.
  bool good() const { return good_; }
  // All fields were there, and nothing is left over.
  bool done() const { return good_ && in_.empty(); }
  std::size_t remaining() const { return in_.size(); }

 private:
  template <typename T>
  T number() {
    const ByteView field = raw(sizeof(T));
    return field.empty() ? T{0} : load_le<T>(field.data());
  }
  ByteView in_;
  bool good_ = true;
};

}  // namespace holdfast
