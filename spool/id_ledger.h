// The part of the ledger that remembers ids: sorted runs in the database, each with a filter and the first id of each
// of its chunks in memory. A question that passes a filter reads one chunk (one page).
//
// Each remember() writes one run; runs of like size and age are merged into one, to at most kLargestRun ids, a piece of
// the work a call, so that a call's work is bounded and there are O(log n) small runs in each age bucket beside the
// full ones. A run's age is that of its newest id; whole runs are forgotten.
//
// Writes happen in the caller's transaction, whose end is told: keep() when it was committed, undo() when it was rolled
// back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crypto/digest.h"
#include "spool/clock.h"
#include "spool/database.h"
#include "spool/id_filter.h"

namespace holdfast {

struct IdEntry {
  IdPrefix prefix{};
  std::array<std::uint8_t, 4> content{};
};
static_assert(sizeof(IdEntry) == 16);

inline IdPrefix prefix_of(const RecordId& id) {
  IdPrefix prefix;
  std::copy_n(id.bytes.begin(), prefix.size(), prefix.begin());
  return prefix;
}

// Each run is one more question for a fresh id, and one more chance that a filter lets it pass: ten for ten million.
inline constexpr std::uint64_t kLargestRun = 1'000'000;  // 16 MB of entries
inline constexpr std::uint64_t kMergePiece = 1 << 15;    // ids that one call merges, beside twice those that it brings

class IdLedger {
 public:
  static Result<std::unique_ptr<IdLedger>> open(Database& database);
  ~IdLedger();

  Result<void> remember(std::vector<IdEntry> entries, Nanoseconds now);
  bool maybe_seen(const IdPrefix& id) const;
  Result<std::optional<IdEntry>> find(const IdPrefix& id);

  // How long ids are to be kept; ages within a sixteenth of it are one bucket.
  void set_window(Nanoseconds window) { window_ = window; }
  // Forgets one run whose newest id was remembered before `oldest_kept`, or the oldest run while `max_ids` are left
  // without it. False: none is.
  Result<bool> forget_oldest(Nanoseconds oldest_kept, std::uint64_t max_ids);
  bool has_old(Nanoseconds oldest_kept, std::uint64_t max_ids) const;

  std::uint64_t ids() const;
  std::size_t runs() const { return runs_.size(); }
  std::size_t memory_bytes() const;

  void keep();
  void undo();

 private:
  struct Run;
  class Writer;
  class Reader;
  using Runs = std::vector<std::shared_ptr<const Run>>;  // in order of their newest id

  explicit IdLedger(Database& database);
  Result<void> prepare();
  Result<void> load();
  static std::shared_ptr<const Run> read_run(const Statement& row);
  Result<void> read(const Run& run, std::size_t chunk, std::vector<IdEntry>& out);
  Result<std::optional<IdEntry>> find_in(const Run& run, const IdPrefix& id);
  Result<std::vector<IdEntry>> only_new(std::vector<IdEntry> entries);
  Runs merge_candidates(Nanoseconds now) const;
  static Runs leftovers(std::span<const std::shared_ptr<const Run>> bucket);
  static Runs full_tier(std::span<const std::shared_ptr<const Run>> bucket);
  Result<void> begin_merge(Runs from);
  Result<void> merge_piece(std::uint64_t ids);
  Result<void> end_merge();
  void abandon_merge();
  Result<void> remove_doomed();
  Result<void> remove(std::uint64_t number);
  void adopt(std::shared_ptr<const Run> run);

  Database& database_;
  Statement read_chunk_, write_chunk_, remove_chunks_, write_run_, remove_run_;
  Runs runs_, kept_;
  std::uint64_t next_number_ = 1;
  Nanoseconds window_ = std::chrono::hours(24 * 7);

  struct Merge;
  std::unique_ptr<Merge> merge_;          // under way; what it has written is not a run yet
  std::optional<std::uint64_t> touched_;  // the number of the merge that this transaction has added to
  std::vector<std::uint64_t> doomed_;     // numbers whose rows are to be removed
  bool doomed_removed_ = false;           // in this transaction
};

}  // namespace holdfast
