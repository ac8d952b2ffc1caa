// The front door of the spool: custody of records on local disk, from commit to departure.
//
//     put_batch   makes arrivals durable; only what it gave a verdict for may be acknowledged (I1)
//     due         records that wait for a target, in order
//     settle      what became of them
//     maintain    one round of the housekeeping: writes what was settled, flushes, reuses, reconciles
//     close       a clean stop
//
// What survives a power cut: everything that put_batch returned a verdict for. What settle() was told survives once a
// later sync has covered it; before that a cut costs a duplicate delivery, nothing else.
//
// Failures. `full`: no room or a limit is reached; nothing was taken, the caller stops pulling until pressure() has
// passed; settling goes on. `io`: this life is over: every later call says the same, the process leaves with 75, and
// the next life recovers (I4). `unavailable`: out of descriptors or memory for the moment; try again. Nothing else
// comes out of put_batch, due, settle, maintain.
//
// Threads: any thread may call anything. Concurrent put_batch calls commit together. maintain() is called by one
// thread, in a loop. Ownership: the FileSystem and the Clock must outlive the spool.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spool/clock.h"
#include "spool/envelope.h"
#include "spool/file_system.h"
#include "spool/identity.h"
#include "spool/index.h"
#include "spool/manifest.h"
#include "spool/priority.h"
#include "spool/reason.h"
#include "spool/spool_status.h"

namespace holdfast {

struct SpoolLimits {
  std::uint64_t max_bytes = 10ull << 30;  // everything of ours on the disk, as allocated
  std::uint64_t max_records = 10'000'000;
  std::uint64_t min_free_bytes = 256ull << 20;
  double min_free_inodes_percent = 1.0;
  std::uint64_t quarantine_max_bytes = 1ull << 30;
  std::uint64_t max_record_bytes = 64ull << 20;  // payload and headers of one message
};

enum class SyncMode : std::uint8_t { automatic, files };

// As many as there are processors for this process beside one; three at most.
unsigned helpers_of_this_machine();
inline constexpr unsigned kRemovers = 3;

struct SpoolOptions {
  std::string site;
  SpoolLimits limits;
  Nanoseconds linger = std::chrono::seconds(1);  // 0: every record is in its own file before its verdict
  std::uint64_t journal_bytes = 64ull << 20;     // four segments
  SyncMode sync = SyncMode::automatic;
  bool allow_unsafe_fs = false;
  std::uint64_t data_key_bytes = 64ull << 30;  // sealed with one data key before another is made
  Nanoseconds ledger_window = std::chrono::hours(24 * 7);
  std::uint64_t ledger_max = 10'000'000;
  // One for each source: until all of a stream's have noted it (note_stream), nothing of it is forgotten.
  std::vector<std::string> source_streams;
  // Threads that share the work: of sealing and opening, and of removing files, which may wait for the device and not
  // for the processor. Without any the order of calls is fixed.
  unsigned helpers = 0, removers = 0;
};

// What becomes of another message with an identity that is known.
enum class OnConflict : std::uint8_t {  // its content is another
  quarantine,
  forward,  // under a key of its own (spool/IDENTITY.md, "Conflicts")
};
enum class OnDuplicate : std::uint8_t {  // its content is the same; a redelivery is skipped in any case
  skip,
  quarantine,
};

struct Arrival {
  Envelope envelope;
  Identity identity;              // for a refused one: its refused_key
  Reason refused = Reason::none;  // otherwise: quarantined with this reason, in custody, in the same commit
  RouteNumber route{};
  Priority priority = kNormalPriority;
  OnConflict on_conflict = OnConflict::quarantine;
  OnDuplicate on_duplicate = OnDuplicate::skip;
};

// What can no longer be redelivered.
struct StreamFloor {
  std::string stream;
  std::uint64_t below = 0;         // sequences: acknowledged, and gone from the stream
  std::uint64_t acknowledged = 0;  // and those below which all are acknowledged
  // All that was committed so long ago, or before, is acknowledged. Nothing: not known.
  std::optional<Nanoseconds> acknowledged_ago;
};

enum class VerdictKind : std::uint8_t {
  accepted,   // a new record
  duplicate,  // the same identity and content is there or was there; with a sequence: kept in quarantine all the same
  conflict,   // the same identity with other content: the newcomer is in quarantine, or forwarded, under its own key
  refused,    // in quarantine with the reason it came with
};
enum class SeenIn : std::uint8_t { nowhere, batch, custody, ledger };

struct Verdict {
  VerdictKind kind = VerdictKind::accepted;
  SeenIn seen_in = SeenIn::nowhere;  // duplicate and conflict: where the earlier one was found
  Reason reason = Reason::none;
  RecordId id;
  Sequence sequence = 0;  // of the new record; 0: there is none
};

void count(const Verdict& verdict, VerdictCounts& counts);

// Where one target's reading stands. A value of the caller's: a fresh one begins at the oldest.
struct DueCursor {
  std::array<Sequence, kPriorities> after{};
  std::uint64_t generation = 0;  // the spool rewinds a cursor of an earlier generation (retarget, what was found again)
};

enum class Drain : std::uint8_t { fifo, priority };

struct DueRecord {
  Sequence sequence = 0;
  RecordId id;
  Priority priority = 0;
  std::string key;  // canonical
  Envelope envelope;
  std::int64_t accepted_wall_ns = 0;
  bool clock_trusted = false;
  bool surely_unsent = false;  // taken in this life and handed out for this target for the first time
  std::size_t bytes = 0;       // what it costs in a window
};

enum class Fate : std::uint8_t { delivered, duplicate, duplicate_unexpected, rejected };

struct Settlement {
  Sequence sequence = 0;
  Fate fate = Fate::delivered;
  Reason reason = Reason::none;  // rejected: why
  std::string words;             // rejected: the target's own, at most 1 KiB is kept, sealed
};

// One record as an operator sees it in a list: nothing that needs opening (I7).
struct RecordSummary {
  Sequence sequence = 0;
  RecordId id;
  RouteNumber route{};
  Priority priority = 0;
  std::uint64_t size = 0;
  std::int64_t accepted_wall_ns = 0;
  std::vector<TargetNumber> waiting;
  bool in_file = false;
};

// A record opened for an operator.
struct OpenedRecord {
  RecordSummary summary;
  RecordBody body;
  Reason reason = Reason::none;  // quarantine only
  std::string words;
};

struct RecordFilter {
  std::optional<TargetNumber> target;    // that still waits for it
  std::optional<std::string> id_prefix;  // hex digits
  std::optional<std::string> subject;    // a pattern; records are opened to find out
  std::optional<Sequence> sequence;
  bool everything = false;  // an empty filter matches nothing unless this says so

  bool is_narrow() const { return target || id_prefix || subject || sequence; }
  // As far as it can be told without the subject and the target.
  bool may_match(Sequence of_sequence, const RecordId& id) const;
};

class Spool {
 public:
  // Takes the lock, reads or makes the manifest, recovers. `unavailable`: another process holds it. `invalid`: the key
  // is wrong (the text says which id is wanted), the directory belongs to or can be read by others, the file system
  // cannot be believed, a newer format. Makes nothing but LOCK when it refuses. `fs` is rooted in the spool directory.
  static Result<std::unique_ptr<Spool>> open(FileSystem& fs, const Clock& clock, const SpoolOptions& options,
                                             const SecretKey& key);
  ~Spool();

  // The number of a target name, or of a set of targets; made durably when new. Not on a hot path.
  Result<TargetNumber> target_number(const std::string& name);
  Result<RouteNumber> route_number(const std::vector<RouteTarget>& targets);
  // Which targets the configuration has: others' records are kept and reported, and do not make the journal wait.
  void set_active_targets(const std::vector<TargetNumber>& targets);
  std::string target_name(TargetNumber target) const;
  const std::string& site() const;  // the one in keys

  Result<std::vector<Verdict>> put_batch(std::span<const Arrival> arrivals);
  // Of messages that went elsewhere (dead letters): durably, that they stood where they stood.
  Result<void> remember_places(std::span<const Arrival* const> arrivals);
  // Of a message that may have gone elsewhere: the ledger knows its place.
  Result<bool> knows_place(const Arrival& arrival);
  // Why the intake must pause now; nothing: it may pull. With hysteresis.
  Pressure pressure() const;
  // What was committed of a stream, whatever it is identified by: the places with the greatest sequence at or below one
  // (several where the stream gave it again), and the least sequence that is remembered.
  Result<std::vector<StreamPosition>> last_committed(const std::string& stream, std::uint64_t at_or_below);
  Result<std::optional<std::uint64_t>> first_committed(const std::string& stream);
  // What a source's server has just said of its stream. What it could redeliver is not forgotten.
  void note_stream(const std::string& source, const StreamFloor& floor);

  Result<std::vector<DueRecord>> due(TargetNumber target, Drain drain, DueCursor& cursor, std::size_t max_records,
                                     std::size_t max_bytes);
  Result<void> settle(TargetNumber target, std::span<const Settlement> settlements);
  // Calls back, from any thread and with no lock held, when something became due. At most one listener.
  void on_due(std::function<void()> wake);

  // One bounded round; returns how long nothing will be urgent.
  Result<Nanoseconds> maintain();
  // Flushes what it can until the deadline (monotonic), syncs, closes. What is left stays in the journal and costs
  // replay only.
  Result<void> close(Nanoseconds deadline);

  SpoolStatus status() const;
  // Proves I3 from disk: walks files, quarantine, journal and index.
  Result<AuditReport> audit();

  // In order of sequence, above `after`.
  Result<std::vector<RecordSummary>> list(Sequence after, std::size_t limit);
  Result<OpenedRecord> show(const std::string& id_prefix);
  // Opens each record above `after`, at most `limit`, reports each bad one; returns the last sequence looked at, 0 at
  // the end.
  Result<Sequence> verify(Sequence after, std::size_t limit,
                          const std::function<void(const RecordSummary&, Reason)>& bad);
  // Both return how many records were changed; `dry_run` only counts.
  Result<std::uint64_t> retarget(TargetNumber from, TargetNumber to);
  Result<std::uint64_t> discard(const RecordFilter& filter, bool dry_run);

  Result<std::vector<QuarantinedRecord>> list_quarantine(Sequence after, std::size_t limit);
  Result<OpenedRecord> show_quarantined(const std::string& id_prefix);
  // Back into custody, with a new sequence and the route that `reroute` finds for it now; nothing: it stays where it
  // is.
  using Reroute = std::function<std::optional<RouteNumber>(const Envelope&)>;
  Result<std::uint64_t> requeue(const RecordFilter& filter, const Reroute& reroute);
  Result<std::uint64_t> drop_quarantined(const RecordFilter& filter);

 private:
  friend class Commit;
  struct Parts;
  explicit Spool(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
