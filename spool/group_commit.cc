// Who puts at the same time shares a commit, its sync and its fate.

#include <utility>

#include "spool/commit.h"

namespace holdfast {
namespace {

constexpr std::size_t kNameTogether = 32;  // arrivals: what a helper of the crew takes at once

void prepare(Spool::Parts& parts, std::span<const Arrival> arrivals, std::span<Prepared> prepared) {
  const Namer& namer = parts.keyring->namer();
  std::uint64_t tag = 0, other_tag = 0;
  const Prepared* tagged = nullptr;  // that it is of: a batch comes from one stream, and is identified in one way
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Arrival& arrival = arrivals[i];
    Prepared& one = prepared[i];
    one.arrival = &arrival;
    one.id = namer.record_id(arrival.identity.key);
    one.positional = arrival.identity.strategy == Strategy::stream_sequence && arrival.refused == Reason::none;
    const Origin& origin = arrival.envelope.origin;
    const bool same_tag = tagged != nullptr && tagged->positional == one.positional &&
                          tagged->arrival->envelope.origin.stream == origin.stream;
    if (!same_tag) {
      tag = parts.places->tag(origin.stream, one.positional);
      other_tag = parts.places->tag(origin.stream, !one.positional);
    }
    tagged = &one;
    one.other_tag = other_tag;
    one.position = StreamPosition{tag, origin.sequence, origin.timestamp_ns};
    one.frame_size = sealed_frame_size(encoded_size(arrival.identity.key, arrival.envelope));
  }
}

std::vector<Prepared> prepare(Spool::Parts& parts, std::span<const Arrival> arrivals) {
  std::vector<Prepared> prepared(arrivals.size());
  parts.crew.share(arrivals.size(), kNameTogether, [&](std::size_t first, std::size_t last) {
    prepare(parts, arrivals.subspan(first, last - first), std::span(prepared).subspan(first, last - first));
  });
  return prepared;
}

void note_no_room(Spool::Parts& parts) {
  const std::lock_guard lock(parts.state_mutex);
  parts.gauge.note_no_room(parts.clock.monotonic());
}

void commit_group(Spool::Parts& parts, std::span<CommitRequest* const> group) {
  std::function<void()> wake_up;
  {
    Commit commit(parts);
    const auto refuse_all = [&](const Error& error) {
      for (CommitRequest* request : group) {
        if (!request->error) request->error = error;
      }
    };
    if (const auto error = parts.life.over()) return refuse_all(*error);
    {
      const std::lock_guard lock(parts.state_mutex);
      if (const Pressure pressure = parts.gauge.pressure(); pressure.paused())
        return refuse_all({ErrorKind::full, std::string("the spool is full: ") + pressure_text(pressure.kind)});
      wake_up = parts.wake;
    }
    const auto give_up = [&](const Error& error) {
      if (error.kind == ErrorKind::full && !commit.quarantine_is_full()) note_no_room(parts);
      return parts.life.fail(error);
    };
    std::size_t arrivals = 0;
    for (const CommitRequest* request : group) arrivals += request->prepared.size();
    commit.expect(arrivals);
    for (CommitRequest* request : group) {
      if (auto taken = commit.take(*request); !taken) request->error = give_up(taken.error());
      if (const auto error = parts.life.over()) return refuse_all(*error);
    }
    // One sync covers them all before any verdict counts (R7); whoever shares it shares its fate (R14).
    if (auto finished = commit.finish(); !finished) return refuse_all(give_up(finished.error()));
    const std::lock_guard lock(parts.state_mutex);
    for (const CommitRequest* request : group) {
      if (request->error) continue;
      for (const Verdict& verdict : request->verdicts) count(verdict, parts.verdicts);
    }
  }
  if (wake_up) wake_up();
}

}  // namespace

void count(const Verdict& verdict, VerdictCounts& counts) {
  switch (verdict.kind) {
    case VerdictKind::accepted:
      ++counts.accepted;
      break;
    case VerdictKind::refused:
      ++counts.refused;
      break;
    case VerdictKind::conflict:
      ++counts.conflicts;
      break;
    case VerdictKind::duplicate:
      counts.duplicate_in_batch += verdict.seen_in == SeenIn::batch ? 1u : 0u;
      counts.duplicate_in_custody += verdict.seen_in == SeenIn::custody ? 1u : 0u;
      counts.duplicate_in_ledger += verdict.seen_in == SeenIn::ledger ? 1u : 0u;
      break;
  }
}

void GroupCommit::join(CommitRequest& mine, const std::function<void(std::span<CommitRequest* const>)>& commit) {
  std::unique_lock lock(mutex_);
  waiting_.push_back(&mine);
  changed_.wait(lock, [&] { return mine.done || !leading_; });
  if (mine.done) return;
  leading_ = true;
  std::vector<CommitRequest*> group;
  group.swap(waiting_);
  lock.unlock();
  commit(group);
  lock.lock();
  for (CommitRequest* request : group) request->done = true;
  leading_ = false;
  changed_.notify_all();
}

Result<std::vector<Verdict>> Spool::put_batch(std::span<const Arrival> arrivals) {
  Parts& parts = *parts_;
  CommitRequest mine;
  mine.prepared = prepare(parts, arrivals);
  parts.group.join(mine, [&](std::span<CommitRequest* const> group) { commit_group(parts, group); });
  if (mine.error) return *mine.error;
  return std::move(mine.verdicts);
}

}  // namespace holdfast
