// What a hub can see twice, and by what its consumers tell (docs/idempotency.md, "At the hub").
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kCount = 8'000;  // a drain long enough that its middle can be met

// The keys that each payload came under; as many as it came times.
using Copies = std::map<std::string, std::multiset<std::string>>;

Copies copies_at(const NatsServer& hub) {
  Copies copies;
  for (const SeenMessage& message : JetStreamClient(hub.url()).read_all(kHubStream))
    copies[message.payload].insert(message.header("Nats-Msg-Id"));
  return copies;
}

class HubDuplicates : public testing::Test {
 protected:
  void make_hub_stream(Nanoseconds duplicate_window) {
    JetStreamClient hub(scene_.hub.url());
    hub.delete_stream(kHubStream);
    StreamRequest request{.name = kHubStream, .subjects = {"telemetry.>"}};
    request.duplicate_window = duplicate_window;
    hub.make_stream(request);
  }

  // A backlog is being delivered when the box loses its power: some of what the hub has confirmed is not written down.
  void lose_power_in_the_drain() {
    scene_.hub.kill();
    scene_.publish(1, kCount);
    scene_.box.start();
    ASSERT_TRUE(in_files(scene_.box, kCount));
    scene_.hub.start();
    JetStreamClient hub(scene_.hub.url());
    ASSERT_TRUE(eventually([&] { return hub.stream(kHubStream).messages > 0; }, kPatience));
    scene_.box.kill9();
  }

  void expect_everything_delivered() {
    scene_.box.start();
    ASSERT_TRUE(eventually([&] { return scene_.box.status()["accounting"]["in_custody"].count() == 0; }, kPatience))
        << pretty_json_text(scene_.box.status());
    // An audit takes turns with the names that leave.
    ASSERT_TRUE(eventually([&] { return scene_.box.record_files().empty(); }, kPatience));
    const Json audit = scene_.box.audit();
    EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  }

  Scene scene_;
};

TEST_F(HubDuplicates, WithAWindowShorterThanTheRetry_TheSecondCopyHasTheSameKey) {
  make_hub_stream(std::chrono::milliseconds(100));
  lose_power_in_the_drain();
  {  // until the hub has forgotten the ids
    JetStreamClient hub(scene_.hub.url());
    hub.publish(kSubject, "probe", {{"Nats-Msg-Id", "probe"}});
    const std::uint64_t before = hub.stream(kHubStream).messages;
    ASSERT_TRUE(eventually([&] {
      hub.publish(kSubject, "probe", {{"Nats-Msg-Id", "probe"}});
      return hub.stream(kHubStream).messages > before;
    }));
  }
  expect_everything_delivered();
  const Copies copies = copies_at(scene_.hub);
  std::uint64_t second_copies = 0;
  std::set<std::string> keys;
  for (const auto& [payload, of_payload] : copies) {
    if (payload == "probe") continue;
    EXPECT_EQ(std::set(of_payload.begin(), of_payload.end()).size(), 1u) << "one message, one key, for ever";
    keys.insert(*of_payload.begin());
    second_copies += of_payload.size() - 1;
  }
  EXPECT_EQ(keys.size(), kCount) << "a consumer that takes each key once has each message once";
  EXPECT_GT(second_copies, 0u);
  EXPECT_GE(scene_.box.target("hub")["maybe_repeated"].count(), second_copies)
      << "no second copy that is not explained";
}

TEST_F(HubDuplicates, WithinTheWindow_TheHubTellsThem) {
  make_hub_stream(std::chrono::minutes(10));
  lose_power_in_the_drain();
  expect_everything_delivered();
  EXPECT_EQ(arrivals(scene_.hub, kHubStream, kCount), kEachOnce);
  EXPECT_GT(scene_.box.target("hub")["duplicates"].count(), 0u);
}

// A purge takes the messages; whether it takes the ids too is the server's affair.
TEST_F(HubDuplicates, AfterAPurge_EveryMessageWasThereOnceAtLeast) {
  make_hub_stream(std::chrono::minutes(10));
  lose_power_in_the_drain();
  const Copies before = copies_at(scene_.hub);
  JetStreamClient hub(scene_.hub.url());
  ASSERT_TRUE(hub.connection().request(std::string("$JS.API.STREAM.PURGE.") + kHubStream, "", std::chrono::seconds(5)));
  expect_everything_delivered();
  Copies all = copies_at(scene_.hub);
  for (const auto& [payload, keys] : before) all[payload].insert(keys.begin(), keys.end());
  EXPECT_EQ(all.size(), kCount);
  for (const auto& [payload, keys] : all) EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), 1u) << payload;
}

}  // namespace
}  // namespace holdfast
