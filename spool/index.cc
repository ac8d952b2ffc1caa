#include "spool/index.h"

#include "spool/index_rows.h"
#include "spool/reserve.h"

namespace holdfast {

namespace {

constexpr const char* kPath = "index.sqlite3";
constexpr const char* kWalPath = "index.sqlite3-wal";
constexpr const char* kJournalPath = "index.sqlite3-journal";
constexpr const char* kBadPath = "index.bad";
constexpr const char* kBadWalPath = "index.bad-wal";

constexpr std::uint64_t kApplication = 0x686f6c64;  // "hold", in the database's header
constexpr std::uint64_t kSchema = 1;
constexpr std::uint64_t kTidyWalBytes = 4 << 20;    // tidy() checkpoints above it
constexpr std::uint64_t kLargeWalBytes = 16 << 20;  // apply() does, before it adds to it

using Uuid = std::array<std::uint8_t, 16>;

Result<std::uint64_t> ask_number(Database& database, std::string_view sql) {
  Statement statement;
  HOLDFAST_TRY(database.prepare(statement, sql));
  const auto row = statement.step();
  if (!row.ok()) return row.error();
  return *row ? statement.u64(0) : 0;
}

Result<void> move_if_there(FileSystem& fs, const char* from, const char* to) {
  auto moved = fs.rename(from, to, Rename::replace);
  if (!moved.ok() && moved.error().kind != ErrorKind::not_found) return moved;
  return {};
}

Result<void> remove_if_there(FileSystem& fs, const char* path) {
  auto removed = fs.remove(path);
  if (!removed.ok() && removed.error().kind != ErrorKind::not_found) return removed;
  return {};
}

// The database first: a WAL without its database is set aside at the next open, a database without its WAL would be
// believed.
Result<void> set_aside(FileSystem& fs) {
  HOLDFAST_TRY(remove_if_there(fs, kBadWalPath));
  HOLDFAST_TRY(move_if_there(fs, kPath, kBadPath));
  HOLDFAST_TRY(move_if_there(fs, kWalPath, kBadWalPath));
  HOLDFAST_TRY(remove_if_there(fs, kJournalPath));
  return fs.sync_directory("");
}

// What an interrupted set_aside() left.
Result<void> finish_setting_aside(FileSystem& fs) {
  const auto database = fs.inspect(kPath);
  if (database.ok()) return {};
  if (database.error().kind != ErrorKind::not_found) return database.error();
  const auto wal = fs.inspect(kWalPath);
  if (!wal.ok() && wal.error().kind == ErrorKind::not_found) return {};
  HOLDFAST_TRY(move_if_there(fs, kWalPath, kBadWalPath));
  return fs.sync_directory("");
}

}  // namespace

struct Index::Parts {
  Parts(FileSystem& file_system) : fs(file_system), reserve(file_system, kReservePath) {}

  Result<void> open(const Uuid& uuid, const std::string& era);
  Result<bool> is_empty();
  Result<void> make(const Uuid& uuid, const std::string& new_era);
  Result<void> read_owner(const Uuid& uuid);
  Result<void> apply(const IndexChange& change, Durability durability);
  // The same again when it was `full` and the reserve could be given back.
  template <typename Work>
  Result<void> with_reserve(Work work);

  FileSystem& fs;
  Reserve reserve;
  std::unique_ptr<Database> database;
  std::unique_ptr<IndexRows> rows;
  std::unique_ptr<Ledger> ledger;
  Tally tally;
  std::string era;
  bool rebuilt = false;
};

Index::Index(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Index::~Index() = default;

template <typename Work>
Result<void> Index::Parts::with_reserve(Work work) {
  auto done = work();
  if (done.ok() || done.error().kind != ErrorKind::full) return done;
  const auto room = reserve.give_back();
  if (!room.ok()) return room.error();
  return *room ? work() : done;
}

// --- Open

Result<std::unique_ptr<Index>> Index::open(FileSystem& fs, const Uuid& uuid, const std::string& era) {
  HOLDFAST_TRY(finish_setting_aside(fs));
  std::unique_ptr<Parts> parts;
  const auto attempt = [&]() -> Result<void> {
    parts = nullptr;  // the database is let go of first
    parts = std::make_unique<Parts>(fs);
    return parts->with_reserve([&] { return parts->open(uuid, era); });
  };
  auto opened = attempt();
  const auto hopeless = [](ErrorKind kind) { return kind == ErrorKind::corrupt || kind == ErrorKind::invalid; };
  if (!opened.ok() && hopeless(opened.error().kind)) {
    HOLDFAST_TRY(set_aside(fs));
    opened = attempt();
  }
  if (!opened.ok()) return opened.error();
  parts->database->on_corrupt([&fs] { (void)set_aside(fs); });
  return std::unique_ptr<Index>(new Index(std::move(parts)));
}

Result<void> Index::Parts::open(const Uuid& uuid, const std::string& new_era) {
  ledger = nullptr;
  rows = nullptr;
  database = nullptr;
  auto opened = Database::open(fs, kPath);
  if (!opened.ok()) return opened.error();
  database = *std::move(opened);
  const auto empty = is_empty();
  if (!empty.ok()) return empty.error();
  rebuilt = *empty;
  if (rebuilt) HOLDFAST_TRY(make(uuid, new_era));
  HOLDFAST_TRY(read_owner(uuid));

  auto opened_rows = IndexRows::open(*database);
  if (!opened_rows.ok()) return opened_rows.error();
  rows = *std::move(opened_rows);
  auto opened_ledger = Ledger::open(*database);
  if (!opened_ledger.ok()) return opened_ledger.error();
  ledger = *std::move(opened_ledger);
  auto read = rows->read_tally();
  if (!read.ok()) return read.error();
  tally = *std::move(read);
  return {};
}

Result<bool> Index::Parts::is_empty() {
  const auto tables = ask_number(*database, "SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.error();
  return *tables == 0;
}

Result<void> Index::Parts::make(const Uuid& uuid, const std::string& new_era) {
  HOLDFAST_TRY(database->begin(Durability::durable));
  const auto fill = [&]() -> Result<void> {
    HOLDFAST_TRY(database->execute("PRAGMA application_id=" + std::to_string(kApplication)));
    HOLDFAST_TRY(database->execute("PRAGMA user_version=" + std::to_string(kSchema)));
    HOLDFAST_TRY(database->execute("CREATE TABLE owner(uuid BLOB NOT NULL, era TEXT NOT NULL)"));
    HOLDFAST_TRY(IndexRows::make_tables(*database));
    Statement insert;
    HOLDFAST_TRY(database->prepare(insert, "INSERT INTO owner VALUES(?, ?)"));
    return insert.bind(1, uuid).bind_text(2, new_era).run();
  };
  if (auto filled = fill(); !filled.ok()) {
    database->rollback();
    return filled;
  }
  return database->commit();
}

Result<void> Index::Parts::read_owner(const Uuid& uuid) {
  const Error foreign{ErrorKind::corrupt,
                      std::string(kPath) + ": is not an index of this spool that this version can read"};
  const auto application = ask_number(*database, "PRAGMA application_id");
  if (!application.ok()) return application.error();
  const auto schema = ask_number(*database, "PRAGMA user_version");
  if (!schema.ok()) return schema.error();
  if (*application != kApplication || *schema != kSchema) return foreign;
  Statement owner;
  HOLDFAST_TRY(database->prepare(owner, "SELECT uuid, era FROM owner"));
  const auto row = owner.step();
  if (!row.ok()) return row.error();
  const ByteView theirs = *row ? owner.blob(0) : ByteView();
  if (!std::equal(theirs.begin(), theirs.end(), uuid.begin(), uuid.end())) return foreign;
  era = owner.text(1);
  return {};
}

// --- Changes

Result<void> Index::apply(const IndexChange& change, Durability durability) {
  // The reserve is for what makes room: a change that takes some leaves it alone.
  if (!change.filed.empty()) return parts_->apply(change, durability);
  return parts_->with_reserve([&] { return parts_->apply(change, durability); });
}

bool Index::reserve_spent() const {
  return parts_->reserve.spent();
}

Result<void> Index::Parts::apply(const IndexChange& change, Durability durability) {
  if (database->wal_bytes() > kLargeWalBytes) HOLDFAST_TRY(database->checkpoint());
  Tally next = tally;
  HOLDFAST_TRY(database->begin(durability));
  const auto write = [&]() -> Result<void> {
    HOLDFAST_TRY(rows->apply(change, next));
    HOLDFAST_TRY(rows->write_tally(tally, next));
    return ledger->remember(change.remember, next.running_time);
  };
  auto written = write();
  if (!written.ok()) database->rollback();
  if (written.ok()) written = database->commit();
  if (!written.ok()) {
    ledger->undo();
    return written;
  }
  ledger->keep();
  tally = std::move(next);
  return {};
}

Result<void> Index::tidy() {
  if (parts_->database->wal_bytes() > kTidyWalBytes) {
    HOLDFAST_TRY(parts_->with_reserve([&] { return parts_->database->checkpoint(); }));
  }
  return parts_->reserve.make();
}

Result<void> Index::close() {
  return parts_->with_reserve([&] { return parts_->database->close(); });
}

// --- Questions

bool Index::rebuilt() const {
  return parts_->rebuilt;
}
const std::string& Index::era() const {
  return parts_->era;
}
const Totals& Index::totals() const {
  return parts_->tally.totals;
}
std::uint64_t Index::retired_base() const {
  return parts_->tally.retired_base;
}
Nanoseconds Index::running_time() const {
  return parts_->tally.running_time;
}
std::uint64_t Index::records() const {
  return parts_->tally.records;
}
std::uint64_t Index::file_bytes() const {
  return parts_->tally.file_bytes;
}
std::uint64_t Index::quarantined() const {
  return parts_->tally.quarantined;
}
std::uint64_t Index::quarantine_bytes() const {
  return parts_->tally.quarantine_bytes;
}
const std::vector<WaitingCount>& Index::waiting() const {
  return parts_->tally.waiting;
}
Ledger& Index::ledger() {
  return *parts_->ledger;
}

std::uint64_t Index::disk_bytes() const {
  std::uint64_t sum = 0;
  for (const char* path : {kPath, kWalPath, kReservePath, kBadPath, kBadWalPath}) {
    if (const auto info = parts_->fs.inspect(path); info.ok()) sum += info->allocated;
  }
  return sum;
}

Result<std::vector<DueRow>> Index::due(TargetNumber target, Priority priority, Sequence after, std::size_t limit) {
  return parts_->rows->due(target, priority, after, limit);
}

Result<std::optional<IndexedRecord>> Index::find(Sequence sequence) {
  if (sequence == 0) return std::optional<IndexedRecord>{};
  auto next = parts_->rows->list(sequence - 1, 1, parts_->tally);
  if (!next.ok()) return next.error();
  if (next->empty() || next->front().sequence != sequence) return std::optional<IndexedRecord>{};
  return std::optional(std::move(next->front()));
}

Result<std::vector<IndexedRecord>> Index::list(Sequence after, std::size_t limit) {
  return parts_->rows->list(after, limit, parts_->tally);
}

Result<std::vector<QuarantinedRecord>> Index::list_quarantine(Sequence after, std::size_t limit) {
  return parts_->rows->list_quarantine(after, limit);
}

Result<bool> Index::is_tombstone(Sequence sequence) {
  return parts_->rows->is_tombstone(sequence);
}

Result<std::vector<std::pair<Sequence, RecordId>>> Index::tombstones_to_unlink(Sequence after, std::size_t limit) {
  return parts_->rows->tombstones_to_unlink(after, limit);
}

Result<Sequence> Index::highest_sequence() {
  return parts_->rows->highest_sequence();
}

Result<std::optional<std::int64_t>> Index::oldest_waiting(TargetNumber target) {
  return parts_->rows->oldest_waiting(target);
}

}  // namespace holdfast
