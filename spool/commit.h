// One group of arrivals on its way to the disk, from verdicts to one sync (INVARIANTS.md, rules of the commit). Private
// to this room.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "spool/parts.h"

namespace holdfast {

class Commit {
 public:
  explicit Commit(Spool::Parts& parts) : parts_(parts) { parts_.batch.assign(kBatchHeaderSize, 0); }

  // Of so many arrivals at most.
  void expect(std::size_t arrivals);
  // Verdicts are filled in; they count only when finish() has returned well.
  Result<void> take(CommitRequest& request);
  Result<void> finish();
  // That is why something was not taken; others may go on.
  bool quarantine_is_full() const { return quarantine_is_full_; }

 private:
  struct Found {
    SeenIn where = SeenIn::nowhere;
    bool same_content = true;
  };
  Result<Found> look_up(Prepared& prepared);
  Result<Found> look_up_older(Prepared& prepared);
  Result<void> decide_all(CommitRequest& request);
  Result<Verdict> decide(Prepared& prepared);
  Result<Verdict> decide_known(Prepared& prepared, const Found& found);
  Result<Verdict> kept_before(const Prepared& prepared, Verdict verdict);
  // Known by another key from here on. Returns where that is known from.
  Result<SeenIn> rename(Prepared& prepared, std::string key);
  Result<bool> is_redelivery(const Prepared& prepared);
  Result<bool> was_at_place(const Prepared& prepared);
  Result<void> remember_witnesses();
  bool is_too_large(const Prepared& prepared) const;
  Result<Verdict> take_in(Prepared& prepared, Verdict verdict);
  Result<Verdict> quarantine(Prepared& prepared, Verdict verdict);
  Result<Sequence> add_to_batch(Prepared& prepared);
  bool goes_to_file(const Prepared& prepared) const;
  Result<Sequence> add_to_files(Prepared& prepared);
  const ContentDigest& content_of(Prepared& prepared) const;
  FrameHeader header_of(const Prepared& prepared, Sequence sequence) const;
  Result<void> find_segment_for(std::size_t frame_size);
  void seal_batch();
  Result<void> append();
  Result<void> file_direct();
  void add_done_frame();
  void take_custody(FrameSpot first);

  Spool::Parts& parts_;
  std::unique_lock<std::mutex> commit_lock_{parts_.commit_mutex};
  const Accepted accepted_ = parts_.sealer->now();
  boost::unordered_flat_map<RecordId, const Arrival*, IdHash> in_group_;
  std::vector<JournalRecord> batched_;  // in the batch, not appended yet; spots are relative to its first frame
  std::vector<Prepared*> unsealed_;     // one for each of these, until all is there
  std::vector<JournalRecord> direct_;   // in files, not synced yet
  std::vector<LedgerEntry> witnesses_;  // of duplicates: they answer for the stream, too
  std::uint32_t frames_ = 0;
  bool quarantine_is_full_ = false;
};

}  // namespace holdfast
