// The inside of the spool: what its verbs share. Private to this room.
//
// Locks, outer before inner: upkeep_mutex (one housekeeping or operator's change at a time), commit_mutex (the
// journal's end, the sequence), index_mutex (the index and the ledger), state_mutex (everything else in memory; never
// held across a disk access). queue_mutex stands alone: nothing is locked while it is held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "spool/crew.h"
#include "spool/done_list.h"
#include "spool/journal.h"
#include "spool/journal_records.h"
#include "spool/keyring.h"
#include "spool/manifest.h"
#include "spool/record_files.h"
#include "spool/spool.h"

namespace holdfast {

inline constexpr std::uint32_t kSegments = 4;
inline constexpr std::size_t kMaxBatchBytes = 4u << 20;  // one append; bounds memory and the time of one sync
inline constexpr std::size_t kFlushRecords = 1024;       // files of one flush: bounds how long the index is busy
inline constexpr std::size_t kSettleBacklog = 65536;     // settlements that may wait for housekeeping
inline constexpr std::size_t kRowsTogether = 64;         // read at once, for neighbours settled together
inline constexpr std::size_t kUnlinksBeforeSync = 4096;
inline constexpr std::size_t kUnlinkBacklog = 65536;  // names of what has left: above, targets wait for them
inline constexpr std::size_t kUnlinksAtOnce = 256;    // between two looks at what else is to be done
inline constexpr std::size_t kRemoveTogether = 8;
inline constexpr std::size_t kMaxNotices = 32;
inline constexpr std::size_t kMaxSlowSyncs = 32;
inline constexpr std::size_t kSealTogether = 16;  // records: what a helper of the crew takes at once
inline constexpr std::size_t kNameTogether = 32;
inline constexpr std::size_t kReadTogether = 16;
inline constexpr std::uint32_t kReadAtOnce = 256u << 10;  // bytes of the journal
inline constexpr std::size_t kMaxRejectMarks = 4096;
inline constexpr std::uint64_t kFloorStep = 1ull << 32;  // how far the sequence floor is raised at once
// What was sealed with a data key is written down this many times until it is worn; a life that was cut is taken to
// have sealed one such step more.
inline constexpr std::uint64_t kDataKeySteps = 64;
// How long a settlement may wait for a commit to ride on.
inline constexpr Nanoseconds kDoneDelay = std::chrono::milliseconds(200);
inline constexpr Nanoseconds kUpkeepPause = std::chrono::milliseconds(100);
inline constexpr Nanoseconds kTidyPause = std::chrono::seconds(1);
inline constexpr Nanoseconds kSlowSync = std::chrono::seconds(1);

// An arrival with what can be computed of it without a lock.
struct Prepared {
  const Arrival* arrival = nullptr;
  RecordId id;
  std::optional<ContentDigest> content;  // made when it is needed first: of a new record when it is sealed
  std::optional<StreamPosition> position;
  bool positional = false;      // as LedgerEntry
  std::uint64_t other_tag = 0;  // that the place would have if it were the identity, or were not
  std::size_t frame_size = 0;
  std::string own_key;  // not the arrival's: of a conflict, of a duplicate that is kept

  const std::string& key() const { return own_key.empty() ? arrival->identity.key : own_key; }
  std::optional<StreamPosition> looked_up_by() const { return positional ? position : std::nullopt; }
  LedgerEntry ledger_entry() const { return {id, position, positional, content.value_or(ContentDigest{})}; }
  // Of a message that is no record: where it stood, and nothing of what it was.
  LedgerEntry witness() const { return {RecordId{}, position, true, ContentDigest{}}; }
};

// One put_batch call on its way through a group commit.
struct CommitRequest {
  std::vector<Prepared> prepared;
  std::vector<Verdict> verdicts;
  std::optional<Error> error;
  bool done = false;
};

struct Rejection {
  Sequence sequence = 0;
  RecordId id;
  TargetNumber target{};  // 0: found by the spool itself
  Reason reason = Reason::none;
  std::string words;
  bool begun = false;  // its file in quarantine may be there
};

// One time by both clocks.
struct Moment {
  WallTime wall;
  Nanoseconds monotonic{0};
};

// What is known of a target besides its records in files.
struct TargetState {
  bool active = false;
  std::uint64_t journal_records = 0;  // that wait for it, in the journal only
  std::uint64_t journal_bytes = 0;
  std::uint64_t delivered = 0, duplicates = 0, duplicates_unexpected = 0, rejected = 0;
  std::uint64_t generation = 1;  // cursors of an earlier one are rewound
  Nanoseconds progress{0};       // when it last settled something, or began to have something to settle
};

// A body that was opened, or the reason why it cannot be.
struct OpenedBody {
  FrameHeader header;
  RecordBody body;
};
std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring);
// With a buffer for the plaintext that is used again and again.
std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring, Bytes& plain);

// A file whose record has left.
struct LeavingFile {
  RecordId id;
  Sequence sequence = 0;
  std::uint64_t bytes = 0;  // on the medium, and in no row any more
  bool expected = false;    // its directory counts it still
};

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
  mutable Crew crew;
  Crew removers;

  std::mutex upkeep_mutex;
  std::mutex commit_mutex;
  std::mutex index_mutex;
  mutable std::mutex state_mutex;

  // Set while the spool is opened. (The keyring's current key is exchanged under upkeep_mutex and commit_mutex.)
  std::unique_ptr<File> lock_file;
  std::optional<Keyring> keyring;
  std::string site;  // the one in keys
  std::unique_ptr<RecordFiles> files;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Index> index;
  bool whole_sync = false;  // sync_all may stand for the sync of each file
  bool unsafe_fs = false;
  Nanoseconds life_began{0};
  Nanoseconds running_before{0};  // running time of earlier lives
  std::uint32_t boot = 0;
  Sequence first_sequence = 0;  // of this life

  std::atomic<std::uint64_t> sealed_bytes{0};  // with the current data key

  // Under commit_mutex; the sequence may be read by any.
  std::atomic<Sequence> next_sequence{0};
  Bytes batch;                    // reused from commit to commit
  DirtyDirectories direct_dirty;  // outlives a commit that failed: what it made there is not synced yet

  // Group commit.
  std::mutex queue_mutex;
  std::condition_variable queue_changed;
  std::vector<CommitRequest*> queue;
  bool leading = false;

  // Written under upkeep_mutex and state_mutex, read under either.
  Manifest manifest;
  std::uint64_t manifest_generation = 0;

  // Under state_mutex.
  JournalRecords records;
  std::vector<TargetState> targets;             // by number - 1
  std::uint64_t journal_live = 0;               // records in the journal only, still in custody
  std::uint64_t journal_live_bytes = 0;         // what they will take on the disk in files
  std::uint64_t journal_delivered = 0;          // delivered from the journal, not yet counted in the index
  std::uint64_t journal_taken = 0;              // committed by segments that are not retired
  std::vector<FiledSettlement> done_unwritten;  // for `done` frames: settlements of records in the journal
  Nanoseconds done_since{0};
  std::deque<FiledSettlement> filed_settled;           // for the index
  std::set<std::pair<Sequence, TargetNumber>> hidden;  // settled or rejected, not yet in the index: not due
  std::deque<Rejection> rejections;
  // Rejected, while another required target still waits; and whether there were more than may be remembered.
  std::map<std::pair<Sequence, TargetNumber>, Rejection> reject_marks;
  bool rejections_forgotten = false;
  VerdictCounts verdicts;
  Pressure pressure;
  struct NoRoom {
    Nanoseconds found{0};
    std::uint64_t free_bytes = 0, free_inodes = 0;  // the least since
  };
  std::optional<NoRoom> no_room;               // a commit found none, though no limit was reached
  std::optional<Nanoseconds> quarantine_full;  // when a commit found it so, the last time
  SpaceInfo space;
  std::vector<std::string> notices;
  std::uint64_t ignored_names = 0;
  std::uint64_t bad_done_frames = 0;
  std::uint64_t journal_disk_bytes = 0;
  std::uint64_t leaving_files = 0, leaving_bytes = 0;          // that have left the index and not the disk
  std::deque<std::pair<Nanoseconds, Nanoseconds>> slow_syncs;  // when, how long; of the last minute
  bool site_changed = false;
  std::optional<Error> dead;
  struct ToldFloor {
    StreamFloor floor;
    std::optional<Nanoseconds> acknowledged;  // all that was committed until then; running time
  };
  std::map<std::string, ToldFloor> told_floors;  // by source
  std::function<void()> wake;
  bool readers_go_back = false;  // a cursor was rewound, and nobody has been called yet

  // Under upkeep_mutex.
  DirtyDirectories dirty;
  std::vector<Sequence> unlinked_unsynced;
  struct {
    std::deque<LeavingFile> records;
    std::vector<std::pair<RecordId, Sequence>> quarantined;
  } unlink_later;  // have left, and their names are still there: the rest is the next life's
  Nanoseconds tidied{0};
  Sequence highest_recovered = 0;
  Totals recovered_damage;  // taken and lost, counted when the damaged segment is retired

  // Reconciliation after a start, under upkeep_mutex.
  enum class Reconcile : std::uint8_t { tombstones, rows, names, finished };
  std::atomic<Reconcile> reconcile{Reconcile::tombstones};
  Sequence unlinks_finished = 0;
  std::atomic<Sequence> reconciled_rows{0};
  unsigned reconciled_directories = 0;
  std::array<std::atomic<std::int64_t>, 256> expected_names{};  // atomics: commits file records, too

  // spool.cc
  std::optional<Error> dead_error() const;
  Error fail(Error error);  // an error that ends this life is remembered; returns what the caller returns
  Result<void> checked(Result<void> result);
  void notice(std::string text);
  Nanoseconds running_time() const;
  Result<void> save(Manifest changed);                       // signs and saves, then it is the manifest
  std::vector<RouteTarget> route(RouteNumber number) const;  // takes state_mutex
  const std::vector<RouteTarget>& route_locked(RouteNumber number) const;
  Result<RouteNumber> number_of_route(const std::vector<RouteTarget>& route_targets);  // upkeep_mutex held
  TargetBits all_bits(RouteNumber route) const;  // state_mutex held, as for the next ones
  TargetBits required_bits(RouteNumber route) const;
  TargetBits bit_of(RouteNumber route, TargetNumber target) const;
  TargetState& target_state(TargetNumber target);
  void send_back(TargetState& target);               // its readers begin again at the oldest
  bool complete(const JournalRecord& record) const;  // every required target has it
  std::vector<TargetNumber> waiting_targets(const JournalRecord& record) const;
  void count_live(const JournalRecord& record, bool add);  // state_mutex held, as for the next one
  void leaves_journal(const JournalRecord& record);        // out of the counts of what is in the journal only
  // Adds what a record waits for to the targets' counts, or takes it out.
  void count_waiting(const JournalRecord& record, TargetBits bits, bool add);
  void oldest_in_journal(std::map<TargetNumber, std::int64_t>& oldest);  // state_mutex held
  // `in_memory`: what is true from then on, and is seen together with the change; called under index_mutex and
  // state_mutex.
  Result<void> apply(const IndexChange& change, Durability durability, const std::function<void()>& in_memory = {});
  void call_back();     // no lock held: whoever waits learns that readers were sent back
  void notify() const;  // no lock held: that something became due
  Result<Nanoseconds> maintain();
  Result<void> tidy();
  Result<void> prune_ledger();
  bool done_frames_are_due() const;
  Result<void> raise_floor_and_rotate();
  Result<void> make_next_segment();

  // pressure.cc
  Result<void> update_pressure();
  void note_no_room();
  bool still_no_room();  // state_mutex held

  // commit.cc
  std::vector<Prepared> prepare(std::span<const Arrival> arrivals) const;
  void prepare(std::span<const Arrival> arrivals, std::span<Prepared> prepared) const;
  void commit_group(std::span<CommitRequest* const> group);
  Result<void> write_done_frames();
  Result<void> start_segment();

  // due.cc
  struct DuePlace {
    Sequence sequence = 0;
    RecordId id;
    Priority priority = 0;
    std::uint64_t size = 0;         // of the frame
    std::optional<FrameSpot> spot;  // while the journal has its frame; else in a file alone
    bool surely_unsent = false;
    bool filed = false;
  };
  Result<std::vector<DuePlace>> due_places(TargetNumber target, Drain drain, const DueCursor& cursor,
                                           std::size_t limit);
  Result<void> read_frame(Sequence sequence, const RecordId& id, const std::optional<FrameSpot>& spot, Bytes& frame);
  struct DueFrame {
    Result<void> read;  // only `unavailable` and `io` are failures
    std::size_t size = 0;
    std::variant<OpenedBody, Reason> opened = Reason::damaged;
  };
  struct Buffers {
    Bytes run, file, plain;
  };
  bool is_frame_of(ByteView bytes, Sequence sequence) const;
  static std::size_t neighbours(std::span<const DuePlace> places);
  void open_neighbours(std::span<const DuePlace> places, std::span<DueFrame> frames, Buffers& buffers);
  std::vector<DueFrame> open_frames(std::span<const DuePlace> places);

  // settle.cc
  Result<void> apply_settled();
  // When its row goes.
  LeavingFile leaving(const RecordId& id, Sequence sequence, std::uint64_t size) const;
  Result<void> unlink(std::span<const LeavingFile> left);
  Result<bool> unlink_some();
  Result<bool> unlink_waiting(const RecordId& id);
  Result<bool> remove_file(const RecordId& id, Sequence sequence);
  Result<void> settle_filed(const std::vector<FiledSettlement>& settlements);
  void settle_one(TargetNumber target, const Settlement& settlement);
  void set_aside_if_only_rejections_wait(const JournalRecord& record);  // state_mutex held
  bool reject(Rejection rejection);  // state_mutex held, as for the next three; false: there are too many
  void drop_reject_marks(Sequence sequence);
  void ask_for_forgotten_rejections();
  void unhide(Sequence sequence);

  // flush.cc
  Result<bool> flush_lingering();
  Result<void> flush(const std::vector<JournalRecord*>& records_to_file);
  struct Flushed {
    JournalRecord* record = nullptr;
    TargetBits waiting = 0;  // as its row says
  };
  Result<void> write_files(const std::vector<JournalRecord*>& records_to_file, std::vector<Flushed>& written);
  Result<void> add_rows(std::vector<Flushed>& written);
  Result<void> remove_without_row(const std::vector<const JournalRecord*>& of);
  void became_filed(JournalRecord& record, TargetBits waiting_in_row);  // state_mutex held
  Result<void> sync_files();
  Result<void> retire_oldest();
  Result<void> make_room();

  // seal.cc
  Moment moment() const;
  FrameHeader header_for(const Moment& accepted, Sequence sequence, const RecordId& id, RouteNumber route,
                         Priority priority) const;
  // With the current data key, which wears. upkeep_mutex or commit_mutex held: a key is exchanged under both.
  void seal(FrameHeader& header, ByteView plain, Bytes& out);
  void seal_at(std::span<std::uint8_t> frame, FrameHeader& header, ByteView plain);
  void append_done(std::vector<FiledSettlement>& settlements, Bytes& out);
  void append_note(const FrameHeader& record, Reason reason, TargetNumber target, std::string_view words, Bytes& out);
  // How it was identified, from the record itself.
  void place_in_stream(LedgerEntry& entry, ByteView frame) const;
  void place_in_stream(LedgerEntry& entry, const RecordBody& body) const;
  std::uint64_t stream_tag(const std::string& stream, bool positional) const;

  // set_aside.cc
  Result<void> set_aside_rejected();
  Result<void> set_aside(Rejection& rejection);
  Result<void> remove_begun(const Rejection& rejection);
  void remember_rejection(const Rejection& rejection);  // state_mutex held
  Result<Bytes> frame_to_set_aside(const Rejection& rejection, const std::optional<IndexedRecord>& row);
  bool other_required_waits(const Rejection& rejection, const std::optional<IndexedRecord>& row);  // state_mutex held
  void back_into_line(Sequence sequence);
  void leave_aside(Sequence sequence);  // state_mutex held
  Result<void> declare_lost(Sequence sequence, const RecordId& id);

  // recover.cc
  Result<void> take_manifest();
  Result<Manifest> first_manifest();
  Result<void> recover();
  // False: the medium could not be read past the cache.
  Result<bool> recover_journal(std::vector<FiledSettlement>& done);
  Result<void> recover_frame(const FrameHeader& header, ByteView bytes, FrameSpot spot,
                             std::vector<FiledSettlement>& done);
  Result<void> recover_damage(const JournalDamage& damage);
  Result<void> match_journal_with_index();
  Result<void> match_quarantine();
  Result<QuarantinedRecord> describe_quarantined(const RecordId& id, Sequence sequence, LedgerEntry& identity);
  void count_recovered();

  // audit.cc
  Result<void> count_rows_without_file(AuditReport& report);
  Result<void> count_files_without_row(AuditReport& report);

  // operate.cc
  RecordSummary summary_of_journalled(const JournalRecord& record) const;  // state_mutex held
  Result<Bytes> frame_of(const RecordSummary& summary);
  Result<bool> matches(const RecordFilter& filter, const RecordSummary& summary);
  Result<bool> discard_one(const RecordSummary& summary);
  Result<std::uint64_t> retarget(const std::vector<Sequence>& page, TargetNumber from, TargetNumber to);

  // quarantine.cc
  Result<std::uint64_t> for_each_quarantined(const RecordFilter& filter,
                                             const std::function<Result<bool>(const QuarantinedRecord&)>& act);
  Result<void> drop_from_quarantine(const QuarantinedRecord& record, IndexChange change);
  Result<void> unlink_quarantined(const std::vector<std::pair<RecordId, Sequence>>& left);
  Result<bool> requeue_one(const QuarantinedRecord& record, const Reroute& reroute);

  // reconcile.cc
  Result<bool> reconcile_step();  // true: there is more to compare
  Result<void> finish_unlinks();
  Result<void> compare_rows();
  Result<void> compare_names();
  Result<void> compare_directory(unsigned first_byte);
  enum class Holder : std::uint8_t { nobody, row, journal, another };
  Result<Holder> holder_of(Sequence sequence, const RecordId& id);
  Result<void> look_at_unreadable(std::set<RecordId> ids);
  Result<void> leave_out_rows(std::set<RecordId>& ids);
  Result<void> adopt(const RecordId& id, std::set<RecordId>& unreadable);
  void note_row(const RecordId& id, Sequence sequence);
  void note_row_left(const RecordId& id, Sequence sequence);
  bool is_expected(Sequence sequence) const;
};

}  // namespace holdfast
