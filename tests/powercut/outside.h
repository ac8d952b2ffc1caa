// What the world outside the box knows: which messages the source was told to forget, which ones each upstream has. No
// power cut of the box can take that back, so it does not lie in the file system under test but behind it, on the raw
// disk, written past the page cache before anything else happens. Being on the same disk it has its place in the order
// of the box's own writes.
//
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

namespace holdfast {

inline constexpr std::uint64_t kOutsideBytes = 1u << 20;  // one a message, at the end of the disk
enum class Upstream : std::uint8_t { hub, shore };

class Outside {
 public:
  // Null when the device cannot be read.
  static std::unique_ptr<Outside> open(const std::string& device);
  ~Outside();

  std::uint64_t acknowledged() const;  // all messages up to this number are
  void acknowledge(std::uint64_t upto);
  bool has(Upstream upstream, std::uint64_t number) const;
  std::uint64_t repeats() const;  // deliveries of what was there already
  void deliver(Upstream upstream, std::span<const std::uint64_t> numbers);
  // Said to the spool, and the spool was closed well: it must never come up again.
  bool settled(Upstream upstream, std::uint64_t number) const;
  void settle(Upstream upstream, std::span<const std::uint64_t> numbers);

  bool full() const;

 private:
  struct Memory;
  explicit Outside(std::unique_ptr<Memory> memory);
  void set(std::span<const std::uint64_t> numbers, std::uint8_t bit);
  void write_blocks(const std::set<std::uint64_t>& blocks);
  bool bit(std::uint64_t number, std::uint8_t mask) const;

  mutable std::mutex mutex_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace holdfast
