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

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spool/arrival.h"
#include "spool/clock.h"
#include "spool/due.h"
#include "spool/file_system.h"
#include "spool/record_list.h"
#include "spool/spool_options.h"
#include "spool/spool_status.h"

namespace holdfast {

class Spool {
 public:
  struct Parts;  // its inside: of this room alone

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

  // One verdict an arrival, in their order, once all of them are durable together; or one error, and nothing of these
  // arrivals may be acknowledged: some may be there, and are then found to be duplicates when they come again (I1, I5).
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

  // The next records that wait for the target, behind the cursor, which moves on: at most so many, and of so many
  // bytes, but one whatever its size. None: nothing waits behind the cursor. A record that cannot be opened is passed
  // over, and set aside by housekeeping (I6). What has been handed out stays due until it is settled: who wants it
  // again begins with a fresh cursor.
  Result<std::vector<DueRecord>> due(TargetNumber target, Drain drain, DueCursor& cursor, std::size_t max_records,
                                     std::size_t max_bytes);
  // What became of them, in any order; a record that is not due for the target any more is passed over. A record leaves
  // with the word of its last required target: delivered, or for the quarantine when one of them rejected it (I2).
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
  explicit Spool(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
