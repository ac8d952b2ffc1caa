// A disk in memory that forgets what was not synced, fails when told to, and tells what was done to it.
//
// It holds two images: the cache, which every call sees, and the medium, which alone outlives a power cut. It is
// stricter than any real file system: File::sync makes bytes and size durable but no name, sync_directory the names of
// that one directory. Of the rest a power cut keeps what it likes: each 4 KiB page in any state it had since its last
// sync, torn at a 512-byte sector, with a sector or the whole block turned to garbage; each size since; each name in
// any state since. Two things never happen: a page without an unsynced write changes; a rename loses the file under
// both names. (It may be found under both: then they are one file, as with a hard link.)
//
// A failed sync leaves the cache as it was, the medium too, and calls the pages clean: a later, successful sync does
// not write them (as in Linux), until they are written anew. A direct read shows the medium there, and the cache
// elsewhere.
//
// Every call that changes something and every sync is one numbered step, the first is 1. The same calls in the same
// order give the same steps.
//
// Threads: any. The disk outlives its users: handles and locks of an earlier life return `io` and do no harm.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "spool/file_system.h"
#include "tests/support/simulated_loss.h"

namespace holdfast {

enum class FaultKind : std::uint8_t {
  power_cut,    // the step may or may not be done, this and every later call returns `io`, until lose_power
  io,           // nothing is done; a sync loses what it should have written
  full,         // strikes calls that make or extend something; others let it pass by
  unavailable,  // strikes anything but a sync
  short_write,  // strikes writes: half of it is written, then `io`
};

struct Fault {
  FaultKind kind = FaultKind::power_cut;
  bool persistent = false;  // strikes every later step that it can strike, too
  bool partly = false;      // of a failing sync: half of the pages reach the medium
};

struct StepCounts {
  std::uint64_t writes = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t file_syncs = 0;
  std::uint64_t directory_syncs = 0;
  std::uint64_t whole_syncs = 0;
  std::uint64_t syncs_after_failure = 0;  // in the same life: there must be none (I4)
  std::uint64_t struck = 0;               // steps that a fault has struck
};

class SimulatedDisk;

class SimulatedFileSystem : public FileSystem {
 public:
  explicit SimulatedFileSystem(std::uint64_t seed = 0);
  ~SimulatedFileSystem() override;

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to, Rename rename) override;
  Result<NameInfo> inspect(const std::string& path) override;
  Result<void> list(const std::string& path, const std::function<bool(std::string_view, NameType)>& visit) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> sync_all() override;
  Result<SpaceInfo> space() override;
  Result<std::unique_ptr<File>> lock(const std::string& path) override;

  // --- Faults
  std::uint64_t steps() const;                    // taken so far, in all lives
  void fail_at(std::uint64_t step, Fault fault);  // strikes the first step from there that it can strike
  void fail_next(Fault fault) { fail_at(steps() + 1, fault); }
  void clear_faults();
  void count_reads(bool on);  // reads, openings, inspections and listings are steps too, and can be struck
  StepCounts counts() const;
  // Called before each step, without a lock: a place to watch, or to hold a call back.
  using Observer = std::function<void(std::uint64_t step, std::string_view verb, std::string_view path)>;
  void observe(Observer observer);
  std::string trace() const;         // the last 64 steps, one a line
  std::uint64_t trace_hash() const;  // of all steps: the same run has the same

  // --- Lives
  void lose_power(std::uint64_t seed);  // Loss::random
  void lose_power(Loss loss);
  void restart_without_power_loss();  // the process died: the cache survives, nothing more is on the medium than before
  bool power_is_off() const;          // a power cut has struck
  // The same disk, cache and faults, with nobody holding anything: to lose power in several ways from one state.
  std::unique_ptr<SimulatedFileSystem> copy() const;

  // --- What kind of disk
  void set_capacity(std::uint64_t bytes, std::uint64_t inodes);  // as large as you like at first; blocks of 4 KiB
  void set_read_only(bool on);
  void set_direct_reads(bool on);                                // off: read_direct is `unavailable`
  void set_tears_blocks(bool on);                                // off: a lost block is never garbage as a whole
  void set_type(std::string type, bool safe, bool syncs_whole);  // "simulated", true, true

  // --- The test's own hands: no steps, no faults, both images at once. Paths must be there unless it says otherwise.
  bool there(const std::string& path) const;
  // All paths that are not directories and begin so, sorted.
  std::vector<std::string> files(std::string_view beginning = "") const;
  Bytes bytes(const std::string& path) const;         // in the cache
  Bytes medium_bytes(const std::string& path) const;  // surely on the medium; empty when the name is not
  void flip(const std::string& path, std::uint64_t offset, std::uint8_t mask = 1);
  void overwrite(const std::string& path, std::uint64_t offset, ByteView with);  // may extend it
  void plant(const std::string& path, ByteView content);  // made, with its directories, or replaced
  void plant_directory(const std::string& path);
  void plant_other(const std::string& path);  // what a symlink or a pipe looks like through the seam
  void cut_to(const std::string& path, std::uint64_t size);
  void erase(const std::string& path);  // a file or a whole tree; need not be there
  void set_owner(const std::string& path, std::uint32_t mode, bool ours);
  // Paths of files that hold the text, in the cache, on the medium or between, names included.
  std::vector<std::string> find(std::string_view text) const;

 private:
  explicit SimulatedFileSystem(std::shared_ptr<SimulatedDisk> disk);
  std::shared_ptr<SimulatedDisk> disk_;
};

}  // namespace holdfast
