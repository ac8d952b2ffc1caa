// Views, buffers and the strict little-endian codec that every format of ours is written with.
//
// A ByteReader never reads past its end: the first short read makes it bad for good, every later read gives
// zeros, and the caller asks done() once, at the end. So a parser is a straight list of fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

// Appends little-endian fields to a buffer that the caller owns.
class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  void u8(std::uint8_t v) { out_.push_back(v); }
  void u16(std::uint16_t v) { little_endian(v, 2); }
  void u32(std::uint32_t v) { little_endian(v, 4); }
  void u64(std::uint64_t v) { little_endian(v, 8); }
  void raw(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void zeros(std::size_t count) { out_.resize(out_.size() + count); }
  // u32 length, then the bytes.
  void prefixed(ByteView bytes) {
    u32(static_cast<std::uint32_t>(bytes.size()));
    raw(bytes);
  }

 private:
  void little_endian(std::uint64_t v, std::size_t width) {
    std::array<std::uint8_t, 8> field;
    for (std::size_t i = 0; i < field.size(); ++i) field[i] = static_cast<std::uint8_t>(v >> (8 * i));
    raw(ByteView(field).first(width));
  }
  Bytes& out_;
};

// Reads what a ByteWriter wrote. Views point into the bytes given, which must outlive them.
class ByteReader {
 public:
  explicit ByteReader(ByteView in) : in_(in) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(little_endian(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(little_endian(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little_endian(4)); }
  std::uint64_t u64() { return little_endian(8); }
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
  std::uint64_t little_endian(std::size_t width) {
    ByteView field = raw(width);
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < field.size(); ++i) v |= std::uint64_t{field[i]} << (8 * i);
    return v;
  }
  ByteView in_;
  bool good_ = true;
};

}  // namespace holdfast
