#include "tests/powercut/write_log.h"

#include <array>
#include <fstream>

#include "crypto/bytes.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMagic = 0x6a736677736872;
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kSuperSize = 28;
constexpr std::size_t kEntrySize = 32;
constexpr std::uint64_t kFlush = 1;
constexpr std::uint64_t kDiscard = 4;
constexpr std::uint64_t kSector = 512;
constexpr std::uint64_t kMaxWrite = 1u << 30;

bool read_at(std::ifstream& in, std::uint64_t offset, std::uint8_t* to, std::size_t size) {
  in.clear();
  in.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(size)));
}

}  // namespace

std::optional<std::vector<LoggedWrite>> read_write_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::array<std::uint8_t, kSuperSize> super{};
  if (!read_at(in, 0, super.data(), super.size())) return std::nullopt;
  if (load_le<std::uint64_t>(super.data()) != kMagic || load_le<std::uint64_t>(super.data() + 8) != kVersion)
    return std::nullopt;
  const auto count = load_le<std::uint64_t>(super.data() + 16);
  const std::uint64_t unit = load_le<std::uint32_t>(super.data() + 24);
  if (unit < kSector || unit % kSector != 0) return std::nullopt;
  std::vector<LoggedWrite> writes;
  std::uint64_t at = unit;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::array<std::uint8_t, kEntrySize> entry{};
    if (!read_at(in, at, entry.data(), entry.size())) break;
    const auto flags = load_le<std::uint64_t>(entry.data() + 16);
    LoggedWrite write;
    write.sector = load_le<std::uint64_t>(entry.data()) * (unit / kSector);
    write.bytes = load_le<std::uint64_t>(entry.data() + 8) * unit;
    write.flush = (flags & kFlush) != 0;
    write.discard = (flags & kDiscard) != 0;
    write.data = at + unit;
    if (write.bytes > kMaxWrite) break;
    at = write.data + (write.discard ? 0 : write.bytes);
    writes.push_back(write);
  }
  return writes;
}

namespace {

class Disk {
 public:
  Disk(const std::string& log, const std::string& disk)
      : log_(log, std::ios::binary), disk_(disk, std::ios::binary | std::ios::in | std::ios::out) {}

  // Without the sectors that `loses` says, each as a whole.
  template <typename Loses>
  void apply(const LoggedWrite& write, const Loses& loses) {
    data_.assign(write.bytes, 0);
    if (!write.discard && !read_at(log_, write.data, data_.data(), data_.size())) bad_ = true;
    for (std::uint64_t offset = 0; offset < write.bytes; offset += kSector) {
      if (loses(offset)) continue;
      disk_.seekp(static_cast<std::streamoff>(write.sector * kSector + offset));
      disk_.write(reinterpret_cast<const char*>(data_.data() + offset), kSector);
    }
  }
  bool good() { return !bad_ && static_cast<bool>(disk_.flush()); }

 private:
  std::ifstream log_;
  std::fstream disk_;
  Bytes data_;
  bool bad_ = false;
};

// A file system writes its superblock in place, and is lost itself with half of one: ext4's begins at 1 KiB (Linux
// Documentation/filesystems/ext4/super.rst), btrfs's at 64 KiB. Drives write the 4 KiB that it lies in whole.
bool holds_superblock(const LoggedWrite& write) {
  constexpr std::uint64_t kBlockSectors = 4096 / kSector, kBtrfsSector = 65536 / kSector;
  return write.sector < kBlockSectors || (write.sector >= kBtrfsSector && write.sector < kBtrfsSector + kBlockSectors);
}

}  // namespace

bool apply_power_loss(const std::string& log, const std::vector<LoggedWrite>& writes, const PowerLoss& loss,
                      std::mt19937& dice, const std::string& disk) {
  std::size_t flushed = 0;
  for (std::size_t i = 0; i < loss.entries; ++i) flushed = writes[i].flush ? i + 1 : flushed;
  std::uniform_real_distribution<double> chance;
  Disk onto(log, disk);
  for (std::size_t i = 0; i < loss.entries; ++i) {
    const LoggedWrite& write = writes[i];
    const bool safe = i < flushed || write.sector >= loss.safe_from;
    if (!safe && chance(dice) >= loss.keeps) continue;
    const bool torn = !safe && !holds_superblock(write) && chance(dice) < loss.tears;
    onto.apply(write, [&](std::uint64_t) { return torn && dice() % 2 == 0; });
  }
  return onto.good();
}

}  // namespace holdfast
