// What certification is told of an upstream: that it is what is there.
#include "forwarder/readback.h"

#include <gtest/gtest.h>

#include "forwarder/file_readback.h"
#include "forwarder/nats_readback.h"
#include "tests/forwarder/delivered.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

std::vector<Held> look(Readback& readback, const std::vector<DueRecord>& records) {
  std::vector<Delivery> window;
  for (const DueRecord& record : records) window.push_back({&record, wire_key(record.key)});
  const auto held = readback.look(window);
  EXPECT_TRUE(held.ok()) << held.error().text;
  return held.ok() ? *held : std::vector<Held>(records.size());
}

Result<void> remove(Readback& readback, const std::vector<DueRecord>& records) {
  std::vector<Delivery> window;
  for (const DueRecord& record : records) window.push_back({&record, wire_key(record.key)});
  return readback.remove(window);
}

std::vector<DueRecord> three() {
  return {made_record(1, "a"), made_record(2, "b"), made_record(3, "c", "telemetry.b")};
}

void expect_copies(const std::vector<Held>& held, std::vector<std::uint64_t> copies) {
  ASSERT_EQ(held.size(), copies.size());
  for (std::size_t place = 0; place < held.size(); ++place) EXPECT_EQ(held[place].copies, copies[place]) << place;
}

class NatsReadbackTest : public ::testing::Test {
 protected:
  NatsTargetOptions options() {
    NatsTargetOptions options;
    options.site = "truck-07";
    options.nats.url = server.url();
    options.to.stream = "HUB";
    return options;
  }
  NatsServer server;
  JetStreamClient client{server.url()};
};

TEST_F(NatsReadbackTest, Stream_CountsCopiesSinceItWasFirstLookedAt_AndTakesThemOut) {
  client.make_stream("HUB", {"telemetry.>"});
  client.publish("telemetry.a", "an older one", {{"Nats-Msg-Id", "msg:9"}});
  const auto readback = make_nats_readback(options());
  expect_copies(look(*readback, three()), {0, 0, 0});
  NatsTarget target(options());
  ASSERT_EQ(deliver(target, {three()[0], three()[2]}).count(OutcomeKind::delivered), 2u);
  expect_copies(look(*readback, three()), {1, 0, 1});
  EXPECT_TRUE(look(*readback, three())[0].as_sent);
  EXPECT_FALSE(look(*readback, {made_record(1, "other")})[0].as_sent);
  ASSERT_TRUE(remove(*readback, three()).ok());
  expect_copies(look(*readback, three()), {0, 0, 0});
  ASSERT_TRUE(remove(*readback, three()).ok());
}

TEST_F(NatsReadbackTest, Bucket_SaysWhatTheKeyHas) {
  client.make_stream("KV_STATE", {"$KV.STATE.>"});
  NatsTargetOptions bucket = options();
  bucket.to.stream.clear();
  bucket.to.bucket = NatsBucket{"STATE", std::nullopt, ExistingValue::fail};
  const auto readback = make_nats_readback(bucket);
  NatsTarget target(bucket);
  ASSERT_EQ(deliver(target, three()).count(OutcomeKind::delivered), 3u);
  client.publish("$KV.STATE.msg=3A2", "theirs");
  expect_copies(look(*readback, three()), {1, 0, 1});
  ASSERT_TRUE(remove(*readback, three()).ok());
  expect_copies(look(*readback, three()), {0, 0, 0});
}

TEST_F(NatsReadbackTest, AStreamThatIsNotNamed_IsFoundByTheSubject) {
  NatsTargetOptions unnamed = options();
  unnamed.to.stream.clear();
  EXPECT_FALSE(remove(*make_nats_readback(unnamed), three()).ok()) << "there is no such stream";
  EXPECT_FALSE(remove(*make_nats_readback(options()), three()).ok());
  client.make_stream("HUB", {"telemetry.>"});
  NatsTarget target(unnamed);
  ASSERT_EQ(deliver(target, three()).count(OutcomeKind::delivered), 3u);
  const auto readback = make_nats_readback(unnamed);
  ASSERT_TRUE(remove(*readback, three()).ok()) << "what an earlier run has left";
  EXPECT_EQ(client.stream("HUB").messages, 0u);
}

class FileReadbackTest : public ::testing::Test {
 protected:
  OpenDirectory opener() {
    return [this] { return open_posix_file_system(directory_ / ""); };
  }
  TemporaryDirectory directory_;
};

TEST_F(FileReadbackTest, Files_AreLookedAtAndUnlinked) {
  const FileTargetOptions options{FileFormat::json, "w", FileLayout::subject, Compression::gzip};
  const auto readback = make_file_readback(opener(), options);
  expect_copies(look(*readback, three()), {0, 0, 0});
  FileTarget target(opener(), options);
  ASSERT_EQ(deliver(target, {three()[0], three()[2]}).count(OutcomeKind::delivered), 2u);
  expect_copies(look(*readback, three()), {1, 0, 1});
  EXPECT_TRUE(look(*readback, three())[0].as_sent);
  EXPECT_FALSE(look(*readback, {made_record(1, "other")})[0].as_sent);
  ASSERT_TRUE(remove(*readback, three()).ok());
  expect_copies(look(*readback, three()), {0, 0, 0});
}

TEST_F(FileReadbackTest, LinesOfAnArchive_AreCounted_AndStay) {
  ArchiveOptions options;
  options.writer = "w";
  const auto readback = make_archive_readback(opener(), options);
  expect_copies(look(*readback, three()), {0, 0, 0});
  EXPECT_TRUE(remove(*readback, three()).ok());
  ArchiveTarget target(opener(), options);
  ASSERT_EQ(deliver(target, {three()[0], three()[2]}).count(OutcomeKind::delivered), 2u);
  expect_copies(look(*readback, three()), {1, 0, 1});
  EXPECT_FALSE(look(*readback, {made_record(1, "other")})[0].as_sent);
  EXPECT_EQ(remove(*readback, three()).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace holdfast
