// How many bytes the device is made to write for each byte of payload that passes through.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "spool/check.h"
#include "tests/bench/bench_spool.h"
#include "tests/bench/figures.h"
#include "tests/support/loop_disk.h"
#include "tests/support/patience.h"
#include "tests/support/remove_tree.h"

namespace holdfast {
namespace {

constexpr std::size_t kRing = 60'000;  // records: somewhat more than the journal holds

// Of the device that holds the directory (Documentation/block/stat.rst: field 7, sectors of 512 bytes).
double bytes_written_to_device_of(const std::string& directory) {
  ::sync();
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return 0;
  std::ifstream stat(fmt::format("/sys/dev/block/{}:{}/stat", major(info.st_dev), minor(info.st_dev)));
  std::uint64_t field = 0;
  for (int i = 0; i < 7; ++i) stat >> field;
  return static_cast<double>(field) * 512;
}

}  // namespace

void measure_device_writes(const Scale& scale) {
  const std::size_t records = scale.quick ? 40'000 : 400'000;
  // A disk of its own, so that nobody else's writes are counted.
  LoopDisk disk(2048);
  if (!disk.mounted())
    std::fprintf(stderr, "write_amplification: of the whole device, not alone: %s\n", disk.trouble().c_str());
  const std::string directory = (disk.mounted() ? disk.path() : scale.directory) + "/device";
  {
    BenchSpool box(directory);
    box.keep_house();
    box.deliver();
    // Once round the ring: its segments are made of written zeros, once for all.
    for (std::size_t put = 0; put < kRing; put += kBatch) box.put(box.batch(kBatch));
    CHECK(eventually([&] { return box.spool().status().in_custody == 0; }, std::chrono::minutes(5)));
    const double before = bytes_written_to_device_of(directory);
    for (std::size_t put = 0; put < records; put += kBatch) box.put(box.batch(kBatch));
    CHECK(eventually([&] { return box.spool().status().in_custody == 0; }, std::chrono::minutes(5)));
    const double written = bytes_written_to_device_of(directory) - before;
    report("write_amplification", written, static_cast<double>((records + kBatch - 1) / kBatch * kBatch * kPayload),
           "bytes");

    // Not bounded: what the same costs when it must be kept in files.
    BenchSpool away(directory + "-away");
    away.keep_house();
    const double at = bytes_written_to_device_of(directory);
    for (std::size_t put = 0; put < records / 4; put += kBatch) away.put(away.batch(kBatch));
    away.close();
    report("write_amplification_disconnected", bytes_written_to_device_of(directory) - at,
           static_cast<double>((records / 4 + kBatch - 1) / kBatch * kBatch * kPayload), "bytes");
  }
  remove_tree(directory);
  remove_tree(directory + "-away");
}

}  // namespace holdfast
