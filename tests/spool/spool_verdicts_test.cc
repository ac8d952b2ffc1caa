// What a message is taken for when its identity is known: wherever the spool knows it from.
#include <gtest/gtest.h>

#include "spool/keyring.h"
#include "spool/record_files.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

Arrival message_with_id(SpoolWorld& world, std::uint64_t number, bool positional, const std::string& payload = {}) {
  Arrival arrival = payload.empty() ? world.message(number) : world.message(number, payload);
  if (!positional) arrival.identity = {"msg:" + std::to_string(number), Strategy::message_id};
  return arrival;
}

class SpoolVerdicts : public testing::TestWithParam<bool> {};

TEST_P(SpoolVerdicts, OtherContentUnderAnIdentityThatOnlyTheLedgerKnows_IsAConflict) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{message_with_id(world, 1, GetParam())}).ok());
  ASSERT_EQ(world.deliver(world.hub), 1);
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{message_with_id(world, 1, GetParam(), "other")});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ(verdicts->at(0).kind, VerdictKind::conflict);
  EXPECT_EQ(verdicts->at(0).seen_in, SeenIn::ledger);
  EXPECT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u);
}

// Its key says nothing of a place in the stream: what is kept under it does not answer for the original.
TEST_P(SpoolVerdicts, AConflict_IsKeptUnderItsOwnIdentityAndDigest) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{message_with_id(world, 1, GetParam())}).ok());
  ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{message_with_id(world, 1, GetParam(), "other")}).ok());
  ASSERT_TRUE(world.settle_down());
  const auto kept = world.spool->list_quarantine(0, 10);
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 1u);
  const auto keys = Keyring::open(load_manifest(world.fs)->manifest, world.key);
  ASSERT_TRUE(keys.ok());
  const Namer& namer = keys->namer();
  const Bytes file = world.fs.bytes(quarantine_path(kept->front().id, kept->front().sequence));
  const auto header = read_header(file, namer);
  ASSERT_TRUE(bool(header));
  const Envelope envelope = message_with_id(world, 1, GetParam(), "other").envelope;
  EXPECT_EQ(header->content, namer.content_digest(header->id, envelope.subject, envelope.payload));
}

INSTANTIATE_TEST_SUITE_P(Identities, SpoolVerdicts, testing::Bool(),
                         [](const auto& param) { return param.param ? "stream_sequence" : "message_id"; });

TEST(SpoolVerdictsToo, OtherContentUnderTheIdentityOfAFile_IsAConflict) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  ASSERT_TRUE(world.close());
  world.forget();
  ASSERT_TRUE(world.open());
  ASSERT_EQ(world.spool->status().in_files, 1u);
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(1, "other")});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ(verdicts->at(0).kind, VerdictKind::conflict);
  EXPECT_EQ(verdicts->at(0).seen_in, SeenIn::custody);
}

TEST(SpoolVerdictsToo, TwoStreamsInOneBatch_EachHasItsOwnPositions) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  std::vector<Arrival> two{world.message(1), world.message(2)};
  two[1].envelope.origin.stream = "OTHER";
  two[1].identity.key = "seq:truck-07:OTHER:2:2000";
  ASSERT_TRUE(world.spool->put_batch(two).ok());
  const auto other = world.spool->last_committed("OTHER", 100);
  ASSERT_TRUE(other.ok() && other->size() == 1);
  EXPECT_EQ(other->front().sequence, 2u);
  EXPECT_EQ(world.spool->last_committed("TELEMETRY", 100)->front().sequence, 1u);
}

}  // namespace
}  // namespace holdfast
