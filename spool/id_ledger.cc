#include "spool/id_ledger.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace holdfast {

namespace {

constexpr std::size_t kChunkEntries = 250;  // 4000 bytes: a row that fills one page and does not overflow it
constexpr unsigned kChunkBits = 12;         // of a chunk's number within its run
constexpr std::size_t kFewToMerge = 4;      // runs of one size
constexpr std::size_t kMostToMerge = 8;
constexpr int kBuckets = 16;  // of the window
static_assert(kLargestRun / kChunkEntries + 1 < (1U << kChunkBits));

constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS id_run(run INTEGER PRIMARY KEY, newest INTEGER NOT NULL, ids INTEGER NOT NULL,"
    " fences BLOB NOT NULL, filter BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS id_chunk(chunk INTEGER PRIMARY KEY, entries BLOB NOT NULL)";

bool before(const IdEntry& a, const IdEntry& b) {
  return a.prefix < b.prefix;
}
bool same(const IdEntry& a, const IdEntry& b) {
  return a.prefix == b.prefix;
}

// The first eight bytes of an id, in its order.
std::uint64_t fence_of(const IdPrefix& id) {
  std::uint64_t fence = 0;
  for (std::size_t i = 0; i < 8; ++i) fence = fence << 8 | id[i];
  return fence;
}

std::uint64_t chunk_number(std::uint64_t run, std::size_t chunk) {
  return run << kChunkBits | chunk;
}

// Runs of one tier hold within a factor of four as many ids.
int tier_of(std::uint64_t ids) {
  int tier = 0;
  for (; ids > 4; ids /= 4) ++tier;
  return tier;
}

ByteView as_blob(std::span<const IdEntry> entries) {
  return {reinterpret_cast<const std::uint8_t*>(entries.data()), entries.size_bytes()};
}

bool to_entries(ByteView blob, std::vector<IdEntry>& out) {
  if (blob.empty() || blob.size() % sizeof(IdEntry) != 0 || blob.size() > kChunkEntries * sizeof(IdEntry)) return false;
  out.resize(blob.size() / sizeof(IdEntry));
  std::memcpy(out.data(), blob.data(), blob.size());
  return true;
}

}  // namespace

struct IdLedger::Run {
  std::uint64_t number = 0;
  Nanoseconds newest{0};
  std::uint64_t ids = 0;
  std::vector<std::uint64_t> fences;  // one a chunk
  IdFilter filter;
};

// Writes one run, chunk by chunk, from entries in order.
class IdLedger::Writer {
 public:
  Writer(IdLedger& ledger, Nanoseconds newest, std::uint64_t expected)
      : ledger_(ledger), run_(std::make_shared<Run>(Run{ledger.next_number_++, newest, 0, {}, IdFilter(expected)})) {}

  Result<void> add(const IdEntry& entry) {
    run_->filter.add(entry.prefix);
    ++run_->ids;
    chunk_.push_back(entry);
    return chunk_.size() == kChunkEntries ? flush() : Result<void>{};
  }

  // A row without ids: what has this number is to be removed if the next life finds it so.
  Result<void> announce() { return write_run(0, {}, {}); }

  Result<std::shared_ptr<const Run>> finish() {
    if (!chunk_.empty()) HOLDFAST_TRY(flush());
    Bytes fences;
    ByteWriter writer(fences);
    for (const std::uint64_t fence : run_->fences) writer.u64(fence);
    HOLDFAST_TRY(write_run(run_->ids, fences, run_->filter.bytes()));
    return std::shared_ptr<const Run>(std::move(run_));
  }

  std::uint64_t number() const { return run_->number; }

 private:
  Result<void> write_run(std::uint64_t ids, ByteView fences, ByteView filter) {
    Statement& write = ledger_.write_run_;
    write.bind(1, run_->number).bind(2, static_cast<std::uint64_t>(run_->newest.count()));
    return write.bind(3, ids).bind(4, fences).bind(5, filter).run();
  }
  Result<void> flush() {
    ledger_.write_chunk_.bind(1, chunk_number(run_->number, run_->fences.size())).bind(2, as_blob(chunk_));
    run_->fences.push_back(fence_of(chunk_.front().prefix));
    auto written = ledger_.write_chunk_.run();
    chunk_.clear();
    return written;
  }

  IdLedger& ledger_;
  std::shared_ptr<Run> run_;
  std::vector<IdEntry> chunk_;
};

// Reads one run from its first id to its last, a chunk at a time.
class IdLedger::Reader {
 public:
  Reader(IdLedger& ledger, const Run& run) : ledger_(&ledger), run_(&run) {}

  const IdEntry& front() const { return entries_[at_]; }
  bool done() const { return at_ == entries_.size(); }
  // To be called once before the first front().
  Result<void> next() {
    if (at_ + 1 < entries_.size()) {
      ++at_;
      return {};
    }
    at_ = 0;
    entries_.clear();
    if (chunk_ == run_->fences.size()) return {};
    return ledger_->read(*run_, chunk_++, entries_);
  }

 private:
  IdLedger* ledger_;
  const Run* run_;
  std::size_t chunk_ = 0;
  std::size_t at_ = 0;
  std::vector<IdEntry> entries_;
};

struct IdLedger::Merge {
  Runs from;
  std::vector<Reader> readers;
  Writer writer;
};

IdLedger::IdLedger(Database& database) : database_(database) {}
IdLedger::~IdLedger() = default;

Result<std::unique_ptr<IdLedger>> IdLedger::open(Database& database) {
  HOLDFAST_TRY(database.execute(kTables));
  std::unique_ptr<IdLedger> ledger(new IdLedger(database));
  HOLDFAST_TRY(ledger->prepare());
  HOLDFAST_TRY(ledger->load());
  return ledger;
}

Result<void> IdLedger::prepare() {
  HOLDFAST_TRY(database_.prepare(read_chunk_, "SELECT entries FROM id_chunk WHERE chunk = ?"));
  HOLDFAST_TRY(database_.prepare(write_chunk_, "INSERT INTO id_chunk(chunk, entries) VALUES(?, ?)"));
  HOLDFAST_TRY(database_.prepare(remove_chunks_, "DELETE FROM id_chunk WHERE chunk BETWEEN ? AND ?"));
  HOLDFAST_TRY(database_.prepare(
      write_run_, "INSERT OR REPLACE INTO id_run(run, newest, ids, fences, filter) VALUES(?, ?, ?, ?, ?)"));
  return database_.prepare(remove_run_, "DELETE FROM id_run WHERE run = ?");
}

Result<void> IdLedger::load() {
  Statement rows;
  // In the order of the rows: SQLite would sort the filters along.
  HOLDFAST_TRY(database_.prepare(rows, "SELECT run, newest, ids, fences, filter FROM id_run"));
  for (;;) {
    const auto row = rows.step();
    if (!row.ok()) return row.error();
    if (!*row) break;
    next_number_ = std::max(next_number_, rows.u64(0) + 1);
    if (rows.u64(2) == 0) {  // a merge that did not come to its end
      doomed_.push_back(rows.u64(0));
      continue;
    }
    auto run = read_run(rows);
    if (!run) return database_.damaged("a run of ids");
    adopt(std::move(run));
  }
  kept_ = runs_;
  return {};
}

std::shared_ptr<const IdLedger::Run> IdLedger::read_run(const Statement& row) {
  auto filter = IdFilter::from_bytes(row.blob(4));
  if (!filter) return nullptr;
  const Nanoseconds newest(static_cast<std::int64_t>(row.u64(1)));
  auto run = std::make_shared<Run>(Run{row.u64(0), newest, row.u64(2), {}, *std::move(filter)});
  ByteReader fences(row.blob(3));
  while (fences.remaining() >= 8) run->fences.push_back(fences.u64());
  const bool whole = fences.done() && run->fences.size() == (run->ids + kChunkEntries - 1) / kChunkEntries;
  return whole ? run : nullptr;
}

Result<void> IdLedger::read(const Run& run, std::size_t chunk, std::vector<IdEntry>& out) {
  read_chunk_.bind(1, chunk_number(run.number, chunk));
  const ResetAtEnd reset(read_chunk_);
  const auto row = read_chunk_.step();
  if (!row.ok()) return row.error();
  if (!*row || !to_entries(read_chunk_.blob(0), out)) return database_.damaged("a chunk of ids");
  return {};
}

bool IdLedger::maybe_seen(const IdPrefix& id) const {
  return std::any_of(runs_.rbegin(), runs_.rend(), [&](const auto& run) { return run->filter.maybe(id); });
}

Result<std::optional<IdEntry>> IdLedger::find(const IdPrefix& id) {
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (!(*run)->filter.maybe(id)) continue;
    auto found = find_in(**run, id);
    if (!found.ok() || found->has_value()) return found;
  }
  return std::optional<IdEntry>{};
}

Result<std::optional<IdEntry>> IdLedger::find_in(const Run& run, const IdPrefix& id) {
  const std::uint64_t fence = fence_of(id);
  const auto above = std::upper_bound(run.fences.begin(), run.fences.end(), fence);
  // The chunk that begins at or below it; and where that begins with the same eight bytes, the one before, too.
  for (auto chunk = static_cast<std::size_t>(above - run.fences.begin()); chunk > 0; --chunk) {
    std::vector<IdEntry> entries;
    HOLDFAST_TRY(read(run, chunk - 1, entries));
    const auto at = std::lower_bound(entries.begin(), entries.end(), IdEntry{id, {}}, before);
    if (at != entries.end() && at->prefix == id) return std::optional(*at);
    if (run.fences[chunk - 1] != fence) break;
  }
  return std::optional<IdEntry>{};
}

Result<std::vector<IdEntry>> IdLedger::only_new(std::vector<IdEntry> entries) {
  std::stable_sort(entries.begin(), entries.end(), before);
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  std::vector<IdEntry> fresh;
  fresh.reserve(entries.size());
  for (const IdEntry& entry : entries) {
    const auto found = find(entry.prefix);
    if (!found.ok()) return found.error();
    if (!*found) fresh.push_back(entry);
  }
  return fresh;
}

Result<void> IdLedger::remember(std::vector<IdEntry> entries, Nanoseconds now) {
  const auto fresh = only_new(std::move(entries));
  if (!fresh.ok()) return fresh.error();
  for (std::span<const IdEntry> rest(*fresh); !rest.empty();) {
    const auto part = rest.first(std::min<std::size_t>(rest.size(), kLargestRun));
    rest = rest.subspan(part.size());
    Writer writer(*this, now, part.size());
    for (const IdEntry& entry : part) HOLDFAST_TRY(writer.add(entry));
    auto run = writer.finish();
    if (!run.ok()) return run.error();
    adopt(*std::move(run));
  }
  HOLDFAST_TRY(remove_doomed());
  if (!merge_) {
    Runs candidates = merge_candidates(now);
    if (candidates.size() < 2) return {};
    HOLDFAST_TRY(begin_merge(std::move(candidates)));
  }
  return merge_piece(kMergePiece + 2 * fresh->size());
}

void IdLedger::adopt(std::shared_ptr<const Run> run) {
  const auto later = [](const auto& a, const auto& b) { return a->newest < b->newest; };
  runs_.insert(std::upper_bound(runs_.begin(), runs_.end(), run, later), run);
}

// Of the bucket that is being filled: a tier that has become full. Of an older bucket: what is left in it.
IdLedger::Runs IdLedger::merge_candidates(Nanoseconds now) const {
  const Nanoseconds width = std::max(window_ / kBuckets, Nanoseconds(1));
  const auto bucket = [&](Nanoseconds age) { return age / width; };
  for (std::size_t begin = 0, end = 0; begin < runs_.size(); begin = end) {
    while (end < runs_.size() && bucket(runs_[end]->newest) == bucket(runs_[begin]->newest)) ++end;
    const bool filling = bucket(runs_[begin]->newest) == bucket(now);
    const std::span<const std::shared_ptr<const Run>> members(runs_.data() + begin, end - begin);
    Runs found = filling ? full_tier(members) : leftovers(members);
    if (found.size() > 1) return found;
  }
  return {};
}

// The smallest runs that together make no more than one.
IdLedger::Runs IdLedger::leftovers(std::span<const std::shared_ptr<const Run>> bucket) {
  Runs found(bucket.begin(), bucket.end());
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a->ids < b->ids; });
  std::uint64_t total = 0;
  std::size_t count = 0;
  while (count < found.size() && count < kMostToMerge && total + found[count]->ids <= kLargestRun)
    total += found[count++]->ids;
  found.resize(count);
  return found;
}

IdLedger::Runs IdLedger::full_tier(std::span<const std::shared_ptr<const Run>> bucket) {
  for (int tier = 0; tier <= tier_of(kLargestRun / kFewToMerge); ++tier) {
    Runs found;
    std::copy_if(bucket.begin(), bucket.end(), std::back_inserter(found),
                 [&](const auto& run) { return tier_of(run->ids) == tier; });
    if (found.size() >= kFewToMerge) return leftovers(found);
  }
  return {};
}

Result<void> IdLedger::begin_merge(Runs from) {
  Nanoseconds newest{0};
  std::uint64_t expected = 0;
  for (const auto& run : from) {
    newest = std::max(newest, run->newest);
    expected += run->ids;
  }
  merge_ = std::make_unique<Merge>(Merge{std::move(from), {}, Writer(*this, newest, expected)});
  touched_ = merge_->writer.number();
  HOLDFAST_TRY(merge_->writer.announce());
  for (const auto& run : merge_->from) {
    merge_->readers.emplace_back(*this, *run);
    HOLDFAST_TRY(merge_->readers.back().next());
  }
  return {};
}

Result<void> IdLedger::merge_piece(std::uint64_t ids) {
  touched_ = merge_->writer.number();
  std::vector<Reader>& readers = merge_->readers;
  const auto lesser = [](const Reader& a, const Reader& b) { return before(a.front(), b.front()); };
  for (; !readers.empty() && ids > 0; --ids) {
    const auto least = std::min_element(readers.begin(), readers.end(), lesser);
    HOLDFAST_TRY(merge_->writer.add(least->front()));
    HOLDFAST_TRY(least->next());
    if (least->done()) readers.erase(least);
  }
  return readers.empty() ? end_merge() : Result<void>{};
}

Result<void> IdLedger::end_merge() {
  auto merged = merge_->writer.finish();
  if (!merged.ok()) return merged.error();
  for (const auto& run : merge_->from) HOLDFAST_TRY(remove(run->number));
  merge_ = nullptr;
  adopt(*std::move(merged));
  return {};
}

void IdLedger::abandon_merge() {
  if (!merge_) return;
  doomed_.push_back(merge_->writer.number());
  merge_ = nullptr;
}

Result<void> IdLedger::remove_doomed() {
  for (const std::uint64_t number : doomed_) HOLDFAST_TRY(remove(number));
  doomed_removed_ = true;
  return {};
}

Result<void> IdLedger::remove(std::uint64_t number) {
  remove_chunks_.bind(1, chunk_number(number, 0)).bind(2, chunk_number(number + 1, 0) - 1);
  HOLDFAST_TRY(remove_chunks_.run());
  HOLDFAST_TRY(remove_run_.bind(1, number).run());
  std::erase_if(runs_, [&](const auto& run) { return run->number == number; });
  return {};
}

void IdLedger::keep() {
  kept_ = runs_;
  touched_.reset();
  if (std::exchange(doomed_removed_, false)) doomed_.clear();
}

// Of a merge that this transaction has added to, the rows of earlier ones stay: they go with the next.
void IdLedger::undo() {
  runs_ = kept_;
  doomed_removed_ = false;
  if (!touched_) return;
  doomed_.push_back(*touched_);
  touched_.reset();
  merge_ = nullptr;
}

bool IdLedger::has_old(Nanoseconds oldest_kept, std::uint64_t max_ids) const {
  if (runs_.empty()) return false;
  const Run& oldest = *runs_.front();
  return oldest.newest < oldest_kept || ids() - oldest.ids >= std::max<std::uint64_t>(max_ids, 1);
}

Result<bool> IdLedger::forget_oldest(Nanoseconds oldest_kept, std::uint64_t max_ids) {
  if (!has_old(oldest_kept, max_ids)) return false;
  const std::uint64_t number = runs_.front()->number;
  const auto is_oldest = [&](const auto& run) { return run->number == number; };
  if (merge_ && std::any_of(merge_->from.begin(), merge_->from.end(), is_oldest)) abandon_merge();
  HOLDFAST_TRY(remove(number));
  return true;
}

std::uint64_t IdLedger::ids() const {
  std::uint64_t sum = 0;
  for (const auto& run : runs_) sum += run->ids;
  return sum;
}

std::size_t IdLedger::memory_bytes() const {
  std::size_t sum = 0;
  for (const auto& run : runs_) sum += run->filter.bytes().size() + run->fences.size() * sizeof(std::uint64_t);
  return sum;
}

}  // namespace holdfast
