// The inside of the spool: what its verbs share. Private to this room. What one source alone needs stands there.
//
// Locks, outer before inner: upkeep_mutex (one housekeeping or operator's change at a time), commit_mutex (the
// journal's end, the sequence), index_mutex (the index and the ledger), state_mutex (everything else in memory; never
// held across a disk access). The group of a commit and the life lock for themselves: nothing is locked meanwhile.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>

#include "spool/crew.h"
#include "spool/expected_names.h"
#include "spool/file_lot.h"
#include "spool/frame_reader.h"
#include "spool/group_commit.h"
#include "spool/journal_custody.h"
#include "spool/keyring.h"
#include "spool/leaving_names.h"
#include "spool/life.h"
#include "spool/pressure_gauge.h"
#include "spool/sealer.h"
#include "spool/spool.h"
#include "spool/stream_places.h"
#include "spool/unwritten.h"

namespace holdfast {

inline constexpr std::size_t kFlushRecords = 1024;  // of one flush, or one change: bounds how long the index is busy
inline constexpr std::size_t kPage = 1024;          // rows of one look: likewise
inline constexpr std::uint64_t kFloorStep = 1ull << 32;  // how far the sequence floor is raised at once
// What was sealed with a data key is written down this many times until it is worn; a life that was cut is taken to
// have sealed one such step more.
inline constexpr std::uint64_t kDataKeySteps = 64;

struct Spool::Parts {
  Parts(FileSystem& fs_in, const Clock& clock_in, const SpoolOptions& options_in, const SecretKey& key)
      : fs(fs_in),
        clock(clock_in),
        options(options_in),
        recipient(SecretKey::copy_of(key.bytes())),
        crew(options.helpers),
        removers(options.removers) {}

  FileSystem& fs;
  const Clock& clock;
  const SpoolOptions options;
  const SecretKey recipient;
  Crew crew, removers;

  std::mutex upkeep_mutex, commit_mutex, index_mutex, state_mutex;
  GroupCommit group;
  Life life;

  // Set while the spool is opened. (The keyring's current key is exchanged under upkeep_mutex and commit_mutex.)
  std::unique_ptr<File> lock_file;
  std::optional<Keyring> keyring;
  std::optional<Sealer> sealer;
  std::optional<StreamPlaces> places;
  std::unique_ptr<RecordFiles> files;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Index> index;
  std::optional<FrameReader> frames;
  std::string site;  // the one in keys
  bool site_changed = false;
  bool whole_sync = false;  // sync_all may stand for the sync of each file
  bool unsafe_fs = false;
  Nanoseconds life_began{0};
  Nanoseconds running_before{0};  // running time of earlier lives
  std::uint32_t boot = 0;
  Sequence first_sequence = 0;  // of this life

  // Under commit_mutex; the sequence may be read by any.
  std::atomic<Sequence> next_sequence{0};
  Bytes batch;                    // reused from commit to commit
  std::optional<FileLot> direct;  // what commits put into files

  // Written under upkeep_mutex and state_mutex, read under either.
  Manifest manifest;
  std::uint64_t manifest_generation = 0;

  // Under state_mutex.
  JournalCustody custody{manifest, clock};
  Unwritten unwritten{custody};
  PressureGauge gauge{options.limits};
  VerdictCounts verdicts;
  std::uint64_t ignored_names = 0;
  std::uint64_t bad_done_frames = 0;
  std::uint64_t journal_disk_bytes = 0;
  std::deque<std::pair<Nanoseconds, Nanoseconds>> slow_syncs;  // when, how long; of the last minute
  struct ToldFloor {
    StreamFloor floor;
    std::optional<Nanoseconds> acknowledged;  // all that was committed until then; running time
  };
  std::map<std::string, ToldFloor> told_floors;  // by source
  std::function<void()> wake;

  // Under upkeep_mutex.
  std::optional<FileLot> lot;
  std::optional<LeavingNames> leaving;
  Nanoseconds tidied{0};
  Totals recovered_damage;  // taken and lost, counted when the damaged segment is retired

  // Reconciliation after a start, under upkeep_mutex; how far it is, and what it counts, by any.
  enum class Reconcile : std::uint8_t { tombstones, rows, names, finished };
  std::atomic<Reconcile> reconcile{Reconcile::tombstones};
  ExpectedNames expected_names;
  Sequence unlinks_finished = 0;
  unsigned reconciled_directories = 0;

  // recover.cc
  Result<void> take_manifest();
  Result<void> recover();
  // spool.cc
  Nanoseconds running_time() const { return running_before + (clock.monotonic() - life_began); }
  // What it names may be used once this has returned (R2).
  Result<void> save(Manifest changed);
  Result<RouteNumber> number_of_route(const Route& route);
  // `in_memory`: what is true from then on, and is seen together with the change; called under index_mutex and
  // state_mutex.
  Result<void> apply(const IndexChange& change, Durability durability, const std::function<void()>& in_memory = {});
  void call_sent_back();  // no lock held: whoever waits learns that readers were sent back
  void notify();          // no lock held: that something became due
  Result<void> update_pressure();
  Result<void> prune_ledger();  // remembered.cc; index_mutex held

  // What follows is done under upkeep_mutex.
  Result<void> write_done_frames();  // commit.cc
  // settle.cc
  Result<void> apply_settled();
  Result<void> unlink(std::span<const LeavingFile> left);
  Result<bool> unlink_some();  // true: there is more, and what was tried could go
  // flush.cc
  Result<bool> flush_lingering();
  Result<void> flush(const std::vector<JournalRecord*>& to_file);
  Result<void> sync_files();
  Result<void> retire_oldest();
  Result<void> free_a_segment();
  // set_aside.cc
  Result<void> set_aside_rejected();
  void give_up_place(Sequence sequence);  // state_mutex held
  Result<void> declare_lost(Sequence sequence, const RecordId& id);
  Result<bool> reconcile_step();  // reconcile.cc; true: there is more to compare
  // quarantine.cc
  Result<QuarantinedRecord> describe_quarantined(const RecordId& id, Sequence sequence, LedgerEntry& identity);
};

}  // namespace holdfast
