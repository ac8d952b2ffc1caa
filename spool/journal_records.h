// What this process knows of the records whose frames lie in the journal: by sequence, by id, by priority. Bounded by
// the size of the journal. Rebuilt from it by recovery.
//
// Entries stay where they are until their segment is dropped. Threads: the spool holds its state lock.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <optional>
#include <vector>

#include "crypto/digest.h"
#include "spool/identity.h"
#include "spool/index.h"
#include "spool/journal.h"
#include "spool/route.h"

namespace holdfast {

enum class Place : std::uint8_t {
  journal,  // durable in the journal, and only there
  filed,    // in a file, with a row in the index, which decides from then on
  left,     // otherwise than by delivery, or the index knows that it left; counted there
};

struct JournalRecord {
  Sequence sequence = 0;
  RecordId id;
  ContentDigest content;
  FrameSpot spot;
  RouteNumber route{};
  TargetBits waiting = 0;
  TargetBits handed_out = 0;  // for these targets a try may have reached the upstream
  std::int64_t accepted_wall_ns = 0;
  Nanoseconds accepted{0};  // monotonic, of this boot
  std::optional<StreamPosition> position;
  bool positional = false;  // as LedgerEntry
  Priority priority = 0;
  Place place = Place::journal;
  // `filed` by an earlier life: the file is written again from the frame before the segment is reused.
  bool unproven = false;
  bool this_life = false;  // taken by this life
};

struct IdHash {
  using is_avalanching = void;  // a keyed digest is as good as a hash
  std::size_t operator()(const RecordId& id) const {
    std::size_t hash = 0;
    static_assert(sizeof hash <= sizeof id.bytes);
    std::memcpy(&hash, id.bytes.data(), sizeof hash);
    return hash;
  }
};

// What the header of its frame says of it, and how it is identified.
JournalRecord journal_record(const FrameHeader& header, FrameSpot spot, const LedgerEntry& identity);
// As the ledger is to remember it.
inline LedgerEntry ledger_entry(const JournalRecord& record) {
  return {record.id, record.position, record.positional, record.content};
}

// Its row in the index, once it is in a file.
IndexedRecord row_of(const JournalRecord& record, std::vector<TargetNumber> waiting);
IndexedRecord row_of(const FrameHeader& header, std::vector<TargetNumber> waiting);

class JournalRecords {
 public:
  struct Segment {
    std::uint64_t base = 0;
    std::deque<JournalRecord> records;  // in order of sequence
  };

  void begin_segment(std::uint64_t base) { segments_.push_back({base, {}}); }
  // Its sequence is above all others.
  JournalRecord& add(JournalRecord record);
  void drop_oldest_segment();

  JournalRecord* find(const RecordId& id);
  JournalRecord* find(Sequence sequence);
  std::deque<Segment>& segments() { return segments_; }

  // Records of one priority above `after`, in order, until `visit` returns false.
  template <typename Visit>
  void for_each_above(Priority priority, Sequence after, Visit visit) {
    auto& order = by_priority_[priority];
    auto at = std::upper_bound(order.begin(), order.end(), after, [](Sequence sequence, const JournalRecord* record) {
      return sequence < record->sequence;
    });
    for (; at != order.end(); ++at) {
      if (!visit(**at)) return;
    }
  }

 private:
  std::deque<Segment> segments_;
  boost::unordered_flat_map<RecordId, JournalRecord*, IdHash> by_id_;
  std::array<std::deque<JournalRecord*>, kPriorities> by_priority_;
};

}  // namespace holdfast
