// What a disk was told to write, in order: the log that qemu's blklogwrites keeps, in the format of the kernel's
// dm-log-writes (Documentation/admin-guide/device-mapper/log-writes.rst). And the states that a loss of power could
// leave.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace holdfast {

struct LoggedWrite {
  std::uint64_t sector = 0;  // of 512 bytes
  std::uint64_t bytes = 0;
  std::uint64_t data = 0;  // where they lie in the log
  bool flush = false;      // a flush: all before it is on the medium
  bool discard = false;    // reads as zeros from here on
};

// Nothing when it is no such log. A log that ends in the middle of an entry, because its writer was killed, ends before
// it.
std::optional<std::vector<LoggedWrite>> read_write_log(const std::string& path);

// Up to where power was there, and what became of what was written since the last flush before.
struct PowerLoss {
  std::size_t entries = 0;      // of the log: nothing behind them was ever written
  double keeps = 0;             // of the writes since the last flush, each with this chance
  double tears = 0;             // of those kept, each loses some of its sectors with this chance
  std::uint64_t safe_from = 0;  // sectors from here on lose nothing: they are not the box's
};

// Makes of `disk`, a copy of what was there when the log began, the disk as it is found after the loss. False when it
// cannot be written.
bool apply_power_loss(const std::string& log, const std::vector<LoggedWrite>& writes, const PowerLoss& loss,
                      std::mt19937& dice, const std::string& disk);

}  // namespace holdfast
