#include "tests/powercut/outside.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "spool/check.h"

namespace holdfast {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::uint8_t kAcknowledged = 1;
constexpr std::uint8_t kHas[] = {2, 4};
constexpr std::uint8_t kRepeated[] = {8, 16};
constexpr std::uint8_t kSettled[] = {32, 64};

std::uint8_t of(const std::uint8_t (&masks)[2], Upstream upstream) {
  return masks[static_cast<std::size_t>(upstream)];
}

}  // namespace

struct Outside::Memory {
  alignas(kBlock) std::array<std::uint8_t, kOutsideBytes> bytes{};
  int fd = -1;
  off_t start = 0;
  std::uint64_t acknowledged = 0;
};

Outside::Outside(std::unique_ptr<Memory> memory) : memory_(std::move(memory)) {}
Outside::~Outside() {
  ::close(memory_->fd);
}

std::unique_ptr<Outside> Outside::open(const std::string& device) {
  auto memory = std::make_unique<Memory>();
  memory->fd = ::open(device.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  if (memory->fd < 0) return nullptr;
  memory->start = ::lseek(memory->fd, 0, SEEK_END) - static_cast<off_t>(kOutsideBytes);
  if (::pread(memory->fd, memory->bytes.data(), kOutsideBytes, memory->start) != static_cast<ssize_t>(kOutsideBytes))
    return nullptr;
  while ((memory->bytes[memory->acknowledged + 1] & kAcknowledged) != 0) ++memory->acknowledged;
  return std::unique_ptr<Outside>(new Outside(std::move(memory)));
}

std::uint64_t Outside::acknowledged() const {
  const std::lock_guard lock(mutex_);
  return memory_->acknowledged;
}

bool Outside::full() const {
  return acknowledged() + 1024 >= kOutsideBytes;
}

void Outside::acknowledge(std::uint64_t upto) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = acknowledged() + 1; number <= upto; ++number) numbers.push_back(number);
  set(numbers, kAcknowledged);
  const std::lock_guard lock(mutex_);
  memory_->acknowledged = std::max(memory_->acknowledged, upto);
}

bool Outside::bit(std::uint64_t number, std::uint8_t mask) const {
  const std::lock_guard lock(mutex_);
  return (memory_->bytes.at(number) & mask) != 0;
}

bool Outside::has(Upstream upstream, std::uint64_t number) const {
  return bit(number, of(kHas, upstream));
}
bool Outside::settled(Upstream upstream, std::uint64_t number) const {
  return bit(number, of(kSettled, upstream));
}

std::uint64_t Outside::repeats() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint64_t>(std::ranges::count_if(
      memory_->bytes, [](std::uint8_t byte) { return (byte & (kRepeated[0] | kRepeated[1])) != 0; }));
}

void Outside::deliver(Upstream upstream, std::span<const std::uint64_t> numbers) {
  std::vector<std::uint64_t> again;
  for (const std::uint64_t number : numbers) {
    if (has(upstream, number)) again.push_back(number);
  }
  set(again, of(kRepeated, upstream));
  set(numbers, of(kHas, upstream));
}

void Outside::settle(Upstream upstream, std::span<const std::uint64_t> numbers) {
  set(numbers, of(kSettled, upstream));
}

void Outside::set(std::span<const std::uint64_t> numbers, std::uint8_t mask) {
  const std::lock_guard lock(mutex_);
  std::set<std::uint64_t> blocks;
  for (const std::uint64_t number : numbers) {
    memory_->bytes.at(number) |= mask;
    blocks.insert(number / kBlock);
  }
  write_blocks(blocks);
}

void Outside::write_blocks(const std::set<std::uint64_t>& blocks) {
  for (const std::uint64_t block : blocks) {
    const auto offset = static_cast<off_t>(block * kBlock);
    CHECK(::pwrite(memory_->fd, memory_->bytes.data() + offset, kBlock, memory_->start + offset) ==
          static_cast<ssize_t>(kBlock));
  }
}

}  // namespace holdfast
