// What the ledger promises: what was remembered is found, with its content, until it is pruned; nothing else is; a
// rolled back transaction and a power cut leave it as it was before or after.
#include "spool/ledger.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>

#include "spool/id_ledger.h"
#include "spool/position_ledger.h"
#include "tests/support/simulated_file_system.h"

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr const char* kPath = "ledger.sqlite3";
constexpr Nanoseconds kWindow = hours(16);  // buckets of an hour
constexpr Ledger::PositionLimits kAnyAge{Nanoseconds(0), 0};

RecordId id_of(std::uint64_t number) {
  RecordId id;
  Dice dice(number);
  for (std::size_t i = 0; i < id.bytes.size(); i += 8) {
    const std::uint64_t roll = dice.roll();
    std::memcpy(&id.bytes[i], &roll, 8);
  }
  return id;
}

ContentDigest content_of(std::uint64_t number) {
  ContentDigest digest;
  const std::uint64_t roll = Dice(~number).roll();
  std::memcpy(digest.bytes.data(), &roll, 8);
  return digest;
}

bool is_content(const std::optional<Seen>& seen, std::uint64_t number) {
  const ContentDigest digest = content_of(number);
  return seen && std::equal(seen->content.begin(), seen->content.end(), digest.bytes.begin());
}

LedgerEntry id_entry(std::uint64_t number) {
  return {id_of(number), std::nullopt, false, content_of(number)};
}
LedgerEntry position_entry(const StreamPosition& position, std::uint64_t content) {
  return {{}, position, true, content_of(content)};
}

// A ledger and its database, as the index holds them.
struct House {
  explicit House(FileSystem& fs) {
    auto opened = Database::open(fs, kPath);
    EXPECT_TRUE(opened.ok()) << opened.error().text;
    database = *std::move(opened);
    auto opened_ledger = Ledger::open(*database);
    EXPECT_TRUE(opened_ledger.ok()) << opened_ledger.error().text;
    ledger = *std::move(opened_ledger);
  }

  Result<void> remember(const std::vector<LedgerEntry>& entries, Nanoseconds now,
                        Durability durability = Durability::lazy) {
    HOLDFAST_TRY(database->begin(durability));
    auto done = ledger->remember(entries, now);
    if (!done.ok()) database->rollback();
    if (done.ok()) done = database->commit();
    done.ok() ? ledger->keep() : ledger->undo();
    return done;
  }
  void remember_and_undo(const std::vector<LedgerEntry>& entries, Nanoseconds now) {
    ASSERT_TRUE(database->begin(Durability::lazy).ok());
    ASSERT_TRUE(ledger->remember(entries, now).ok());
    database->rollback();
    ledger->undo();
  }
  std::optional<Seen> find_id(std::uint64_t number) {
    const auto found = ledger->find(id_of(number), std::nullopt);
    EXPECT_TRUE(found.ok()) << found.error().text;
    if (found.ok() && *found) {
      EXPECT_TRUE(ledger->maybe_seen(id_of(number), std::nullopt));
    }
    return *found;
  }
  std::optional<Seen> find_position(const StreamPosition& position) {
    const auto found = ledger->find({}, position);
    EXPECT_TRUE(found.ok()) << found.error().text;
    if (found.ok() && *found) {
      EXPECT_TRUE(ledger->maybe_seen({}, position));
    }
    return *found;
  }

  std::unique_ptr<Database> database;
  std::unique_ptr<Ledger> ledger;
};

// --- The packed row

TEST(PositionRow, RoundTrips_AtTheEdgesOfItsNumbers) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<PositionEntry> entries{{5, kMin, {1, 2, 3, 4}}, {5, 0, {5}},           {5, kMax, {6}},
                                           {6, kMin, {7}},          {1ull << 62, -1, {8}}, {(1ull << 63) - 1, 1, {9}}};
  const Bytes bytes = encode_positions(entries);
  EXPECT_EQ(decode_positions(5, bytes), entries);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode_positions(5, ByteView(bytes).first(size));
    if (cut) {
      EXPECT_LT(cut->size(), entries.size());
    }
  }
  Bytes endless(12, 0xff);
  EXPECT_FALSE(decode_positions(0, endless));
  EXPECT_FALSE(decode_positions(0, {}));
}

TEST(PositionRow, NeighboursTenthOfASecondApart_CostAtMostTenBytes) {
  std::vector<PositionEntry> entries;
  for (std::uint64_t i = 0; i < 400; ++i)
    entries.push_back({1000 + i, 1'700'000'000'000'000'000 + std::int64_t(i) * 100'000'000, {}});
  EXPECT_LE(encode_positions(entries).size(), 400 * 10u + 16);
}

// --- Positions

TEST(Ledger, TheSameSequenceWithAnotherTimestamp_IsAnotherIdentity_AndBothAreKept) {
  SimulatedFileSystem fs;
  House house(fs);
  ASSERT_TRUE(house.remember({position_entry({1, 10, 100}, 1)}, seconds(1)).ok());
  EXPECT_TRUE(is_content(house.find_position({1, 10, 100}), 1));
  EXPECT_FALSE(house.find_position({1, 10, 101}));
  EXPECT_FALSE(house.find_position({2, 10, 100}));
  EXPECT_FALSE(house.find_position({1, 9, 100}));
  ASSERT_TRUE(house.remember({position_entry({1, 10, 50}, 2), position_entry({1, 10, 200}, 3)}, seconds(1)).ok());
  EXPECT_TRUE(is_content(house.find_position({1, 10, 100}), 1));
  EXPECT_TRUE(is_content(house.find_position({1, 10, 50}), 2));
  EXPECT_TRUE(is_content(house.find_position({1, 10, 200}), 3));
  const std::vector<StreamPosition> all{{1, 10, 50}, {1, 10, 100}, {1, 10, 200}};
  EXPECT_EQ(*house.ledger->last_positions(1, 10), all);
  EXPECT_EQ(*house.ledger->last_positions(1, 1'000'000), all);
  EXPECT_TRUE(house.ledger->last_positions(1, 9)->empty());
  EXPECT_TRUE(house.ledger->last_positions(2, 10)->empty());
  EXPECT_EQ(*house.ledger->first_sequence(1), 10u);
  EXPECT_FALSE(*house.ledger->first_sequence(2));
}

TEST(Ledger, RememberedTwice_StaysAsItWasFirst) {
  SimulatedFileSystem fs;
  House house(fs);
  ASSERT_TRUE(house.remember({position_entry({1, 10, 100}, 1), id_entry(7)}, seconds(1)).ok());
  LedgerEntry other = id_entry(7);
  other.content = content_of(8);
  ASSERT_TRUE(house.remember({position_entry({1, 10, 100}, 2), other}, seconds(2)).ok());
  EXPECT_TRUE(is_content(house.find_position({1, 10, 100}), 1));
  EXPECT_TRUE(is_content(house.find_id(7), 7));
  EXPECT_EQ(house.ledger->ids(), 1u);
}

TEST(Ledger, AFreshPosition_IsToldApartWithoutTheDisk) {
  SimulatedFileSystem fs;
  House house(fs);
  ASSERT_TRUE(house.remember({position_entry({1, 10, 100}, 1)}, seconds(1)).ok());
  fs.count_reads(true);
  const auto steps = fs.steps();
  EXPECT_FALSE(house.ledger->maybe_seen({}, StreamPosition{1, 11, 100}));
  EXPECT_FALSE(house.ledger->maybe_seen({}, StreamPosition{2, 1, 100}));
  EXPECT_FALSE(house.find_position({1, 11, 100}));
  EXPECT_EQ(fs.steps(), steps);
}

// Random batches of two streams, in order and out of it, some undone, some lives; against a map of all of them.
class PositionModel {
 public:
  explicit PositionModel(std::uint64_t seed) : dice_(seed), house_(std::make_unique<House>(fs_)) {}

  void run(int rounds) {
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      const auto batch = make_batch();
      if (dice_.percent(10)) {
        house_->remember_and_undo(batch, seconds(round));
        expect_unknown(batch);
      } else {
        ASSERT_TRUE(house_->remember(batch, seconds(round)).ok());
        for (const auto& entry : batch) {
          // What was forgotten may still be there, as it was.
          if (entry.position->sequence < forgotten_[entry.position->stream_tag]) continue;
          known_.try_emplace(key(*entry.position), entry.content.bytes[0]);
        }
      }
      if (dice_.percent(10)) prune();
      if (dice_.percent(5)) reopen();
      if (round % 8 == 0) compare();
    }
    compare();
    EXPECT_TRUE(house_->database->check_integrity().ok());
  }

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;
  static Key key(const StreamPosition& position) {
    return {position.stream_tag, position.sequence, position.timestamp_ns};
  }

  std::vector<LedgerEntry> make_batch() {
    std::vector<LedgerEntry> batch;
    const std::uint64_t stream = 1 + dice_.below(2);
    std::uint64_t& top = top_[stream];
    std::uint64_t sequence = dice_.percent(60) ? top + 1 : 1 + dice_.below(top + 50);
    for (std::uint64_t left = 1 + dice_.below(dice_.percent(10) ? 1500 : 60); left > 0; --left) {
      const std::int64_t timestamp =
          dice_.percent(90) ? std::int64_t(sequence) * 1000 : std::int64_t(dice_.below(5)) - 2;
      batch.push_back(position_entry({stream, sequence, timestamp}, dice_.below(200)));
      top = std::max(top, sequence);
      sequence += dice_.percent(80) ? 1 : dice_.below(30);
    }
    return batch;
  }

  void expect_unknown(const std::vector<LedgerEntry>& batch) {
    for (const auto& entry : batch) {
      if (known_.contains(key(*entry.position)) || forgotten_[entry.position->stream_tag] > entry.position->sequence)
        continue;
      ASSERT_FALSE(house_->find_position(*entry.position));
    }
  }

  // What lies below the floor may be found or not from now on.
  void prune() {
    const std::uint64_t stream = 1 + dice_.below(2);
    const std::uint64_t floor = dice_.below(top_[stream] / 2 + 1);
    const auto pruned = house_->ledger->prune_positions(stream, {floor, floor}, seconds(0), kAnyAge);
    ASSERT_TRUE(pruned.ok());
    forgotten_[stream] = std::max(forgotten_[stream], floor);
    std::erase_if(known_, [&](const auto& entry) {
      return std::get<0>(entry.first) == stream && std::get<1>(entry.first) < floor;
    });
  }

  void reopen() {
    house_ = nullptr;
    dice_.percent(50) ? fs_.restart_without_power_loss() : fs_.lose_power(Loss::keep_all);
    house_ = std::make_unique<House>(fs_);
  }

  void compare() {
    for (const auto& [known, content] : known_) {
      if (known_.size() > 1000 && !dice_.percent(10)) continue;
      const auto [stream, sequence, timestamp] = known;
      const auto found = house_->find_position({stream, sequence, timestamp});
      ASSERT_TRUE(found) << stream << " " << sequence << " " << timestamp;
      ASSERT_EQ(found->content[0], content);
      if (!known_.contains({stream, sequence, timestamp + 1})) {
        ASSERT_FALSE(sequence >= forgotten_[stream] && house_->find_position({stream, sequence, timestamp + 1}));
      }
    }
    for (int i = 0; i < 50; ++i) compare_last();
  }

  void compare_last() {
    const std::uint64_t stream = 1 + dice_.below(2);
    const std::uint64_t sequence = forgotten_[stream] + dice_.below(top_[stream] + 10);
    auto above = known_.upper_bound({stream, sequence, std::numeric_limits<std::int64_t>::max()});
    if (above == known_.begin() || std::get<0>(std::prev(above)->first) != stream) return;
    const auto& wanted = std::prev(above)->first;
    if (std::get<1>(wanted) < forgotten_[stream]) return;
    const auto last = house_->ledger->last_positions(stream, sequence);
    ASSERT_TRUE(last.ok() && !last->empty());
    ASSERT_EQ(last->back(), (StreamPosition{stream, std::get<1>(wanted), std::get<2>(wanted)}));
    ASSERT_EQ(last->front().sequence, last->back().sequence);
  }

  Dice dice_;
  SimulatedFileSystem fs_;
  std::unique_ptr<House> house_;
  std::map<Key, std::uint8_t> known_;
  std::map<std::uint64_t, std::uint64_t> top_, forgotten_;
};

TEST(Ledger, PositionsInAnyOrder_AreFoundAsAMapWouldFindThem) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PositionModel(seed).run(120);
    if (HasFailure()) return;
  }
}

TEST(Ledger, PrunedPositions_GiveTheirRowsBack_AndNoneAboveTheFloorGoes) {
  SimulatedFileSystem fs;
  House house(fs);
  std::vector<LedgerEntry> batch;
  for (std::uint64_t n = 1; n <= 20'000; ++n) batch.push_back(position_entry({1, n, std::int64_t(n)}, n));
  ASSERT_TRUE(house.remember(batch, seconds(1)).ok());
  ASSERT_TRUE(house.ledger->prune_positions(1, {15'000, 15'000}, seconds(0), kAnyAge).ok());
  EXPECT_FALSE(house.find_position({1, 1, 1}));
  EXPECT_FALSE(house.find_position({1, 14'000, 14'000}));
  for (std::uint64_t n = 15'000; n <= 20'000; ++n) ASSERT_TRUE(house.find_position({1, n, std::int64_t(n)}));
  EXPECT_TRUE(house.ledger->last_positions(1, 10)->empty());
  EXPECT_EQ(house.ledger->last_positions(1, 14'999)->size(), 1u);
  EXPECT_TRUE(house.ledger->maybe_seen({}, StreamPosition{1, 20'000, 0})) << "what was seen stays no news";
  ASSERT_TRUE(house.ledger->prune_positions(1, {1'000'000, 1'000'000}, seconds(0), kAnyAge).ok());
  ASSERT_EQ(house.ledger->last_positions(1, 1'000'000)->size(), 1u) << "what a stream is compared with";
  EXPECT_EQ(house.ledger->last_positions(1, 1'000'000)->front().sequence, 20'000u);
  EXPECT_LE(house.ledger->positions(1), kPositionsInRow);
  EXPECT_LE(*house.ledger->first_sequence(1), 20'000u);
}

class FloorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    house_ = std::make_unique<House>(fs_);
    std::vector<LedgerEntry> batch;
    for (std::uint64_t n = 1; n <= 10'000; ++n) batch.push_back(position_entry({1, n, std::int64_t(n)}, n));
    ASSERT_TRUE(house_->remember(batch, seconds(1)).ok());
  }

  void tell(std::uint64_t floor, Nanoseconds now, std::uint64_t max_positions = 1'000'000) {
    for (bool more = true; more;) {
      const auto pruned = house_->ledger->prune_positions(1, {floor, acknowledged_}, now, {kWindow, max_positions});
      ASSERT_TRUE(pruned.ok()) << pruned.error().text;
      more = *pruned;
    }
  }
  bool knows(std::uint64_t n) { return house_->find_position({1, n, std::int64_t(n)}).has_value(); }
  void start_again() {
    house_ = nullptr;
    house_ = std::make_unique<House>(fs_);
  }

  SimulatedFileSystem fs_;
  std::unique_ptr<House> house_;
  std::uint64_t acknowledged_ = 10'001;
};

// A store that a power cut set back hands out again what had been acknowledged.
TEST_F(FloorTest, PositionsBelowTheFloor_AreKeptForAWindow) {
  tell(8'000, hours(1));
  EXPECT_TRUE(knows(1));
  tell(9'000, hours(16));
  EXPECT_TRUE(knows(1));
  tell(9'000, hours(17));
  EXPECT_FALSE(knows(1));
  EXPECT_TRUE(knows(8'000));
  EXPECT_TRUE(knows(8'500)) << "its floor is younger";
  tell(9'000, hours(33));
  EXPECT_FALSE(knows(8'200));
  EXPECT_TRUE(knows(9'000));
}

TEST_F(FloorTest, AFloorThatCameDown_CountsFromThenOn) {
  tell(8'000, hours(1));
  tell(100, hours(10));
  tell(8'000, hours(12));
  tell(8'000, hours(18));
  EXPECT_TRUE(knows(5'000)) << "it could be redelivered eight hours ago";
  tell(8'000, hours(29));
  EXPECT_FALSE(knows(5'000));
}

TEST_F(FloorTest, FloorsAreRememberedOverLives_ButNothingGoesBeforeTheStreamIsSeenAgain) {
  tell(8'000, hours(1));
  start_again();
  tell(0, hours(18));
  EXPECT_TRUE(knows(1)) << "the stream has it again";
  start_again();
  tell(8'000, hours(20));
  EXPECT_TRUE(knows(1));
  tell(8'000, hours(37));
  EXPECT_FALSE(knows(1));
}

// A stream without limits has them all for ever; what is acknowledged comes again only when a consumer is made again.
TEST_F(FloorTest, WithMoreThanMayBeKept_TheOldestThatAreAcknowledgedGo_AndNoneAbove) {
  acknowledged_ = 4'000;
  tell(1, hours(1), 8'000);
  EXPECT_FALSE(knows(1));
  EXPECT_LE(house_->ledger->positions(1), 8'000u);
  EXPECT_GE(house_->ledger->positions(1), 8'000u - kPositionsInRow);
  tell(1, hours(1), 100);
  for (std::uint64_t n = 4'000; n <= 10'000; ++n) ASSERT_TRUE(knows(n)) << n;
  EXPECT_LT(house_->ledger->positions(1), 6'001u + kPositionsInRow);
  start_again();
  EXPECT_GE(house_->ledger->positions(1), 6'001u);
}

TEST_F(FloorTest, FewFloorsAreKept) {
  for (int hour = 1; hour < 500; ++hour) tell(1, hours(hour));
  Statement row;
  ASSERT_TRUE(house_->database->prepare(row, "SELECT length(floors) FROM position_stream").ok());
  ASSERT_TRUE(*row.step());
  EXPECT_LE(row.u64(0), (kFloorSamples + 2) * 16u);
}

// --- Ids

// Random batches, some undone, some forgotten, some lives; against a map from id to the time it was remembered.
class IdModel {
 public:
  explicit IdModel(std::uint64_t seed) : dice_(seed) { enter(); }

  void run(int rounds) {
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      now_ += seconds(dice_.below(3000));
      const auto batch = make_batch();
      if (dice_.percent(15)) {
        house_->remember_and_undo(batch, now_);
      } else {
        // One that is old and still there stays as old as it is.
        std::erase_if(numbers_, [&](std::uint64_t number) { return house_->find_id(number).has_value(); });
        ASSERT_TRUE(house_->remember(batch, now_).ok());
        for (const std::uint64_t number : numbers_) known_.try_emplace(number, now_);
      }
      if (dice_.percent(20)) prune();
      if (dice_.percent(8)) reopen();
      if (round % 10 == 0) compare();
    }
    compare();
    EXPECT_TRUE(house_->database->check_integrity().ok());
  }

 private:
  // The window is known from the first pruning on.
  void enter() {
    house_ = std::make_unique<House>(fs_);
    EXPECT_TRUE(house_->ledger->prune(Nanoseconds(0), {kWindow, 1'000'000}).ok());
  }

  std::vector<LedgerEntry> make_batch() {
    numbers_.clear();
    std::vector<LedgerEntry> batch;
    for (std::uint64_t left = 1 + dice_.below(dice_.percent(15) ? 15'000 : 200); left > 0; --left) {
      numbers_.push_back(dice_.percent(90) ? next_++ : dice_.below(next_));
      batch.push_back(id_entry(numbers_.back()));
    }
    return batch;
  }

  void prune() {
    for (Result<bool> more = true; *more;) {
      more = house_->ledger->prune(now_, {kWindow, 1'000'000});
      ASSERT_TRUE(more.ok()) << more.error().text;
    }
    const Nanoseconds oldest = now_ - kWindow;
    std::erase_if(known_, [&](const auto& entry) {
      if (entry.second >= oldest) return false;
      if (entry.second < oldest - hours(1)) gone_.push_back(entry.first);
      return true;
    });
    for (const std::uint64_t number : gone_) {
      if (!known_.contains(number)) {
        ASSERT_FALSE(house_->find_id(number));
      }
    }
    gone_.clear();
  }

  void reopen() {
    house_ = nullptr;
    dice_.percent(50) ? fs_.restart_without_power_loss() : fs_.lose_power(Loss::keep_all);
    enter();
  }

  void compare() {
    for (const auto& [number, when] : known_) {
      if (known_.size() > 3000 && !dice_.percent(5)) continue;
      ASSERT_TRUE(is_content(house_->find_id(number), number)) << number;
    }
    for (std::uint64_t i = 0; i < 500; ++i) ASSERT_FALSE(house_->find_id((1ull << 40) + i));
    EXPECT_GE(house_->ledger->ids(), known_.size());
  }

  Dice dice_;
  SimulatedFileSystem fs_;
  std::unique_ptr<House> house_;
  Nanoseconds now_{0};
  std::uint64_t next_ = 1;
  std::vector<std::uint64_t> numbers_, gone_;
  std::map<std::uint64_t, Nanoseconds> known_;
};

TEST(Ledger, IdsInAnyOrder_AreFoundUntilTheirWindowIsOver) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    IdModel(seed).run(150);
    if (HasFailure()) return;
  }
}

TEST(Ledger, TheNewestIdsUpToTheLimit_AreNeverForgotten) {
  SimulatedFileSystem fs;
  House house(fs);
  std::uint64_t next = 0;
  for (int batch = 0; batch < 60; ++batch) {
    std::vector<LedgerEntry> entries;
    for (int i = 0; i < 100; ++i) entries.push_back(id_entry(next++));
    ASSERT_TRUE(house.remember(entries, hours(batch)).ok());
    for (Result<bool> more = true; *more;) {
      more = house.ledger->prune(hours(batch), {hours(10'000), 1000});
      ASSERT_TRUE(more.ok());
    }
    for (std::uint64_t n = next > 1000 ? next - 1000 : 0; n < next; ++n) ASSERT_TRUE(house.find_id(n)) << n;
  }
  EXPECT_LT(house.ledger->ids(), 6000u);
}

std::unique_ptr<IdLedger> open_ids(Database& database) {
  auto ids = IdLedger::open(database);
  EXPECT_TRUE(ids.ok());
  return *std::move(ids);
}

TEST(IdLedger, ManySmallCalls_LeaveFewRuns_AndEachWritesABoundedAmount) {
  SimulatedFileSystem fs;
  auto database = Database::open(fs, kPath);
  ASSERT_TRUE(database.ok());
  const auto ids = open_ids(**database);
  std::uint64_t next = 0;
  std::uint64_t most = 0;
  std::size_t most_runs = 0;
  for (int call = 0; call < 1500; ++call) {
    std::vector<IdEntry> entries;
    const int size = call % 50 == 0 ? 4000 : 20;
    for (int i = 0; i < size; ++i) entries.push_back({prefix_of(id_of(next++)), {}});
    const auto before = fs.counts().bytes_written;
    ASSERT_TRUE((*database)->begin(Durability::lazy).ok());
    ASSERT_TRUE(ids->remember(std::move(entries), seconds(call)).ok());
    ASSERT_TRUE((*database)->commit().ok());
    ids->keep();
    most = std::max(most, fs.counts().bytes_written - before);
    most_runs = std::max(most_runs, ids->runs());
    if (call % 40 == 0) {
      ASSERT_TRUE((*database)->checkpoint().ok());
    }
  }
  EXPECT_EQ(ids->ids(), next);
  EXPECT_LE(most_runs, 40u);
  EXPECT_LE(most, 3u << 20);  // a piece of a merge, and the pages of the runs that it takes out
  EXPECT_LE(ids->memory_bytes(), next * 2 + ids->runs() * 128);
}

TEST(IdFilter, LetsFewStrangersPass_AndAllItKnows) {
  constexpr std::size_t kKeys = 100'000;
  IdFilter filter(kKeys);
  for (std::uint64_t n = 0; n < kKeys; ++n) filter.add(prefix_of(id_of(n)));
  const auto copy = IdFilter::from_bytes(filter.bytes());
  ASSERT_TRUE(copy);
  std::size_t strangers = 0;
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    ASSERT_TRUE(copy->maybe(prefix_of(id_of(n))));
    strangers += copy->maybe(prefix_of(id_of(n + kKeys)));
  }
  EXPECT_LT(strangers, kKeys / 200);
  EXPECT_FALSE(IdFilter::from_bytes({}));
  EXPECT_FALSE(IdFilter::from_bytes(Bytes(65)));
  EXPECT_FALSE(IdFilter().maybe(prefix_of(id_of(1))));
}

// --- Power

// Six calls, each of its own ids and positions; merges begin in the fourth. Says how many were durable.
constexpr std::uint64_t kCalls = 6;
constexpr std::uint64_t kEachCall = 600;

std::vector<LedgerEntry> call_entries(std::uint64_t call) {
  std::vector<LedgerEntry> entries;
  for (std::uint64_t n = call * kEachCall; n < (call + 1) * kEachCall; ++n) {
    entries.push_back(id_entry(n));
    entries.push_back(position_entry({9, n + 1, std::int64_t(n)}, n));
  }
  return entries;
}

TEST(Ledger, PowerCutAtEveryStep_LeavesWholeCalls_AndEveryDurableOne) {
  for (std::uint64_t step = 1;; ++step) {
    SimulatedFileSystem fs(step);
    std::uint64_t durable = 0;
    std::uint64_t base = 0;
    {
      House house(fs);
      base = fs.steps();
      fs.fail_at(base + step, {FaultKind::power_cut});
      for (Result<void> done; done.ok() && durable < kCalls;) {
        done = house.remember(call_entries(durable), seconds(durable), Durability::durable);
        if (done.ok()) ++durable;
      }
    }
    if (fs.counts().struck == 0) break;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto copy = fs.copy();
      seed == 0 ? copy->lose_power(Loss::drop_all) : copy->lose_power(step * 3 + seed);
      House house(*copy);
      const std::uint64_t calls = house.ledger->ids() / kEachCall;
      ASSERT_EQ(house.ledger->ids() % kEachCall, 0u) << "step " << step << " seed " << seed;
      ASSERT_GE(calls, durable);
      ASSERT_LE(calls, durable + 1);
      for (std::uint64_t n = 0; n < kCalls * kEachCall; n += 37) {
        ASSERT_EQ(house.find_id(n).has_value(), n < calls * kEachCall) << "step " << step << " id " << n;
        ASSERT_EQ(house.find_position({9, n + 1, std::int64_t(n)}).has_value(), n < calls * kEachCall);
      }
      // And it goes on.
      ASSERT_TRUE(house.remember(call_entries(calls), seconds(99), Durability::durable).ok());
      ASSERT_TRUE(house.find_id(calls * kEachCall));
    }
  }
}

TEST(Ledger, AMergeCutInTheMiddle_IsTakenUpAnew) {
  SimulatedFileSystem fs;
  std::uint64_t next = 0;
  const auto batch = [&](std::uint64_t count) {
    std::vector<LedgerEntry> entries;
    while (count-- > 0) entries.push_back(id_entry(next++));
    return entries;
  };
  for (int life = 0; life < 5; ++life) {
    House house(fs);
    // The fourth call of 25,000 begins a merge of 100,000, which takes more than one call.
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(house.remember(batch(25'000), seconds(next)).ok());
    if (life % 2 == 1) house.remember_and_undo({id_entry(1ull << 50)}, seconds(next));
    if (life == 3) {
      ASSERT_TRUE(house.remember(batch(1), seconds(next)).ok());
    }
    EXPECT_EQ(house.ledger->ids(), next);
    fs.restart_without_power_loss();
  }
  House house(fs);
  for (int call = 0; call < 40; ++call) ASSERT_TRUE(house.remember(batch(10), seconds(next)).ok());
  EXPECT_EQ(house.ledger->ids(), next);
  for (std::uint64_t n = 0; n < next; n += 97) ASSERT_TRUE(is_content(house.find_id(n), n));
  EXPECT_TRUE(house.database->check_integrity().ok());
  Statement rows;
  ASSERT_TRUE(
      house.database->prepare(rows, "SELECT count(*), (SELECT ifnull(sum(ids), 0) FROM id_run) FROM id_chunk").ok());
  ASSERT_TRUE(*rows.step());
  EXPECT_EQ(rows.u64(1), next);
  EXPECT_LE(rows.u64(0), next / 250 + 60) << "rows of merges that did not end";
  rows.reset();
}

}  // namespace
}  // namespace holdfast
