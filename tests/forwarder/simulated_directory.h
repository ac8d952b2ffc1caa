// A directory on a disk that forgets, files delivered into it, and what must be true of it whenever the power was cut.
#pragma once

#include <map>
#include <set>

#include "forwarder/file_name.h"
#include "forwarder/file_target.h"
#include "tests/forwarder/delivered.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/simulated_file_system.h"

namespace holdfast {

class SimulatedDirectory {
 public:
  explicit SimulatedDirectory(std::uint64_t seed = 1) : fs(seed) {}

  OpenDirectory opener() {
    return [this]() -> Result<std::unique_ptr<FileSystem>> {
      return std::unique_ptr<FileSystem>(
          std::make_unique<FaultyFileSystem>(fs, [](auto, auto) { return std::optional<Error>(); }));
    };
  }
  FileTarget target(FileTargetOptions options = {}) {
    options.writer = "w";
    return {opener(), std::move(options)};
  }

  SimulatedFileSystem fs;
};

inline std::vector<DueRecord> some_records(std::uint64_t count) {
  std::vector<DueRecord> records;
  for (std::uint64_t n = 1; n <= count; ++n) {
    records.push_back(made_record(n, std::string(1 + n * 3001 % 9000, static_cast<char>('a' + n % 26))));
  }
  return records;
}

inline std::string expected_path(const DueRecord& record, const FileTargetOptions& options) {
  const std::string suffix = std::string(file_suffix(options.format)) + compression_suffix(options.compression);
  const std::string directory = record_directory(options.layout, record.envelope);
  return (directory.empty() ? "" : directory + '/') + record_file_name(wire_key(record.key), suffix);
}

// Every file under a final name is whole and right; every record that was reported is there.
inline void expect_sound(const SimulatedFileSystem& fs, const std::vector<DueRecord>& records,
                         const std::set<std::uint64_t>& reported, const FileTargetOptions& options) {
  std::map<std::string, Bytes> expected;
  for (const DueRecord& record : records) {
    const std::string path = expected_path(record, options);
    expected[path] = compress(FileContent(record, wire_key(record.key), options.format).bytes(), options.compression);
    if (reported.contains(record.sequence)) {
      EXPECT_TRUE(fs.there(path)) << path;
    }
  }
  for (const std::string& path : fs.files()) {
    if (path.front() == '.') continue;
    ASSERT_TRUE(expected.contains(path)) << path;
    EXPECT_EQ(fs.bytes(path), expected[path]) << path;
  }
}

// Cuts the power at every step of a delivery, in every way, and delivers again in the next life.
inline void cut_at_every_step(const std::vector<DueRecord>& records, const FileTargetOptions& options) {
  for (std::uint64_t step = 1;; ++step) {
    for (const Loss loss : {Loss::random, Loss::drop_all, Loss::keep_all, Loss::keep_names, Loss::keep_names_and_sizes,
                            Loss::keep_bytes}) {
      SCOPED_TRACE("step " + std::to_string(step) + ", loss " + std::to_string(static_cast<int>(loss)));
      SimulatedDirectory disk(step);
      FileTarget before = disk.target(options);
      std::set<std::uint64_t> reported;
      const auto note = [&](const Delivered& delivered) {
        for (std::size_t place = 0; place < records.size(); ++place) {
          if (is_accepted(delivered.outcomes[place])) reported.insert(records[place].sequence);
        }
      };
      disk.fs.fail_at(step, {.kind = FaultKind::power_cut});
      note(deliver(before, records));
      if (!disk.fs.power_is_off()) {  // the delivery has fewer steps
        EXPECT_EQ(reported.size(), records.size());
        return;
      }
      disk.fs.lose_power(loss);
      expect_sound(disk.fs, records, reported, options);
      FileTarget after = disk.target(options);
      const Delivered again = deliver(after, records);
      ASSERT_TRUE(again.result.ok()) << again.result.error().text;
      EXPECT_EQ(again.count(OutcomeKind::delivered) + again.count(OutcomeKind::duplicate), records.size());
      disk.fs.lose_power(Loss::drop_all);
      reported.clear();
      for (const DueRecord& record : records) reported.insert(record.sequence);
      expect_sound(disk.fs, records, reported, options);
    }
  }
}

}  // namespace holdfast
