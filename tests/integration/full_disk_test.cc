// A disk that is full while the uplink is down: the intake pauses and nothing is lost; once the uplink is there again
// everything drains and the intake goes on, by itself, in the same process.
#include <gtest/gtest.h>

#include "tests/integration/scene.h"
#include "tests/support/loop_disk.h"

namespace holdfast {
namespace {

struct Filling {
  const char* name;
  unsigned inodes;         // of the disk; 0: plenty
  const char* room;        // what of the disk is to stay free
  const char* limits;      // further lines of [spool]
  std::uint64_t messages;  // more than the disk has room for
  std::size_t size;        // of each
  const char* pressure;    // why the intake pauses, as `status` says it
};

std::ostream& operator<<(std::ostream& out, const Filling& filling) {
  return out << filling.name;
}

constexpr const char* kNoReserve = "min_free_bytes = \"0B\"\nmin_free_inodes = \"0%\"";

class FullDisk : public testing::TestWithParam<Filling> {};

TEST_P(FullDisk, PausesTheIntake_AndDrainsAndResumesWithoutARestart) {
  const Filling& filling = GetParam();
  const LoopDisk disk(64, filling.inodes);
  if (!disk.mounted()) GTEST_SKIP() << disk.trouble();

  NatsServer edge, hub;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>"});
  hub.kill();
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("hub", hub.url()),
                                  std::string("journal_bytes = \"4MiB\"\nlinger = \"200ms\"\n") + filling.limits,
                                  disk.path() + "/state", filling.room});
  JetStreamClient(edge.url()).publish_many(kSubject, 1, filling.messages, filling.size);
  box.start();
  const pid_t pid = box.pid();
  ASSERT_TRUE(eventually([&] { return box.status()["disk"]["pressure"].text() != ""; }, kPatience))
      << pretty_json_text(box.status());
  // A commit may find the disk full a moment before the upkeep sees which limit was reached.
  EXPECT_TRUE(eventually(
      [&] { return box.status()["disk"]["pressure"].text().find(filling.pressure) != std::string::npos; }, kPatience))
      << box.status()["disk"]["pressure"].text();
  const Json full = box.status();
  EXPECT_TRUE(needs_attention(box, "intake_paused"));
  EXPECT_LT(full["accounting"]["taken"].count(), filling.messages);
  EXPECT_GT(full["accounting"]["taken"].count(), filling.messages / 20);

  hub.start();
  ASSERT_TRUE(delivered(box, filling.messages)) << pretty_json_text(box.status()) << box.log();
  EXPECT_EQ(box.pid(), pid);
  EXPECT_EQ(box.status()["life"].count(), 1u);
  EXPECT_EQ(arrivals(hub, kHubStream, filling.messages), kEachOnce);
  const Json audit = box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  EXPECT_EQ(audit["lost"].count(), 0u);
  EXPECT_TRUE(eventually([&] { return box.status()["disk"]["pressure"].text().empty(); }, kPatience));
  EXPECT_EQ(box.terminate(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Of, FullDisk,
    testing::Values(Filling{"BytesAboveAReserve", 0, "min_free_bytes = \"8MiB\"\nmin_free_inodes = \"0%\"", "", 9000,
                            6000, "min_free_bytes"},
                    Filling{"BytesToTheLast", 0, kNoReserve, "", 11000, 6000, "the disk"},
                    Filling{"InodesAboveAReserve", 4000, "min_free_bytes = \"1MiB\"\nmin_free_inodes = \"10%\"", "",
                            12000, 1000, "min_free_inodes"},
                    Filling{"InodesToTheLast", 4000, kNoReserve, "", 12000, 1000, "the disk"},
                    Filling{"RecordsOfTheConfiguration", 0, kNoReserve, "max_records = 3000", 8000, 200, "max_records"},
                    Filling{"BytesOfTheConfiguration", 0, kNoReserve, "max_bytes = \"32MiB\"", 8000, 6000,
                            "max_bytes"}),
    [](const auto& with) { return std::string(with.param.name); });

}  // namespace
}  // namespace holdfast
