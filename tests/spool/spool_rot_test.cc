// Bytes that are not what was written, while there is a second place that has them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

// The block that took the segment into use has rotted: the segment is not free for that.
TEST(SpoolRot, FirstBlockOfASegmentRotten_TheBatchesBehindItLive) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_TRUE(world.put(6, 5));
  world.forget();
  world.fs.flip("journal/0.seg", 8);
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.due_count(world.hub), 10u);
  EXPECT_FALSE(world.spool->status().notices.empty());
  world.expect_promises("a rotten first block");
}

// Its row says that it has a file; what is under the name is not the record. The journal still has it, until it is told
// to forget.
TEST(SpoolRot, FileOfZeros_WhileTheJournalHasThePut_IsWrittenAgain) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  const std::string path = world.fs.files("records/").at(1);
  const Bytes whole = world.fs.bytes(path);
  world.fs.overwrite(path, 0, Bytes(whole.size()));
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.close()) << world.last_error;  // the segment goes
  EXPECT_EQ(world.fs.bytes(path), whole);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.due_count(world.hub), 3u);
  world.expect_promises("a file of zeros");
}

TEST(SpoolRot, FileGone_WhileTheJournalHasThePut_IsNoLoss) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  world.fs.erase(world.fs.files("records/").at(1));
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().totals.lost, 0u);
  ASSERT_TRUE(world.close()) << world.last_error;
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.due_count(world.hub), 3u);
  world.expect_promises("a file that is gone");
}

// What was damaged is counted with its own segment, not with each that goes after it.
TEST(SpoolRot, RotInOneOfManySegments_IsCountedOnce) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 40));
  ASSERT_TRUE(world.put(41, 120));
  world.forget();
  world.fs.flip("journal/0.seg", 4096 + 128 + 2 * 697 + 300);
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.spool->status().totals.lost, 1u);
  world.may_be_missing = {3};
  world.expect_promises("rot in one of many segments");
}

// What rots in one place is read from the other, whichever it is.
TEST(SpoolRot, DamagedFile_WhileTheJournalHasThePut_IsDueAllTheSame) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  const std::string path = world.fs.files("records/").at(1);
  const Bytes whole = world.fs.bytes(path);
  world.fs.flip(path, whole.size() - 20);
  EXPECT_EQ(world.due_count(world.hub), 3u);
  world.expect_promises("a damaged file");
}

TEST(SpoolRot, DamagedFrame_WhileItsFileIsSound_IsDueAllTheSame) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  const Bytes file = world.fs.bytes(world.fs.files("records/").at(1));
  const Bytes segment = world.fs.bytes("journal/0.seg");
  const auto frame = std::search(segment.begin(), segment.end(), file.begin(), file.end());
  ASSERT_NE(frame, segment.end());
  world.fs.flip("journal/0.seg", static_cast<std::size_t>(frame - segment.begin()) + file.size() - 20);
  EXPECT_EQ(world.due_count(world.hub), 3u);
  ASSERT_TRUE(world.settle_down());
  EXPECT_TRUE(world.spool->list_quarantine(0, 10)->empty());
}

// A cut while a record is put straight into its file: it was not acknowledged, and what is left has no row.
TEST(SpoolRot, BlankFileOfNobody_Goes_AndOneWithARowStays) {
  for (const bool rows_lost : {false, true}) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(1, 3));
    ASSERT_TRUE(world.close());
    const std::string known = world.fs.files("records/").at(1);
    std::string nobodys = known;
    nobodys.at(known.size() - 5) = known.at(known.size() - 5) == '0' ? '1' : '0';  // in the same directory
    world.fs.overwrite(known, 0, Bytes(world.fs.bytes(known).size()));
    world.fs.plant(nobodys, Bytes());
    if (rows_lost) {
      for (const char* name : {"index.sqlite3", "index.sqlite3-wal"}) (void)world.fs.remove(name);
    }
    ASSERT_TRUE(world.open()) << world.last_error;
    ASSERT_TRUE(world.settle_down());
    EXPECT_EQ(world.fs.there(nobodys), rows_lost);
    if (rows_lost) continue;
    EXPECT_TRUE(world.fs.there(known));
    EXPECT_EQ(world.spool->audit()->files_without_row, 0u);
    EXPECT_EQ(world.due_count(world.hub), 2u);
    ASSERT_TRUE(world.settle_down());
    EXPECT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u);
    EXPECT_TRUE(world.spool->audit()->balanced());
  }
}

}  // namespace
}  // namespace holdfast
