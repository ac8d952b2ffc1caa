// Streams that go back, are emptied or are made of others: every new message is committed once, every repeat is
// recognised, and what was found and put right is found once.
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

enum class Away : std::uint8_t {
  ended,   // it knows what its ledger knows
  frozen,  // it still knows what it had seen
};

// Messages large enough, and a journal short enough, that it soon holds few of their places: the rest is in the ledger.
constexpr std::size_t kSize = 60'000;
constexpr const char* kShortJournal = "journal_bytes = \"4MiB\"";

using Case = std::tuple<const char*, Away>;  // the strategy; what the program is while its stream goes back

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(std::get<0>(info.param)) + (std::get<1>(info.param) == Away::ended ? "_ended" : "_frozen");
}

std::uint64_t duplicates(const Json& status) {
  const Json& verdicts = status["verdicts"];
  return verdicts["duplicates_in_batch"].count() + verdicts["duplicates_in_custody"].count() +
         verdicts["duplicates_in_ledger"].count();
}

std::uint64_t went_back(const Json& status) {
  return status["sources"].list()[0]["went_back"].count();
}

class StreamsBack : public testing::TestWithParam<Case> {
 protected:
  static bool by_place() { return std::string(std::get<0>(GetParam())) == "stream_sequence"; }

  void publish(std::uint64_t first, std::uint64_t count) {
    JetStreamClient client(scene_.edge.url());
    for (std::uint64_t number = first; number < first + count; ++number) {
      const std::string text = std::to_string(number);
      std::string payload = text;
      payload.resize(kSize, '.');
      client.publish(kSubject, payload,
                     {{"message-id", "event-" + text}});  // a header that hides nothing at the server
    }
  }

  void go_away() {
    if (std::get<1>(GetParam()) == Away::frozen) {
      scene_.box.freeze();
    } else {
      ASSERT_EQ(scene_.box.terminate(), 0);
    }
  }

  void come_back() { std::get<1>(GetParam()) == Away::frozen ? scene_.box.thaw() : scene_.box.start(); }

  // A request to JetStream of a kind that only these tests make.
  void ask(const std::string& subject, const std::string& request) {
    JetStreamClient client(scene_.edge.url());
    const auto reply = client.connection().request(subject, request, std::chrono::seconds(10));
    ASSERT_TRUE(reply.ok());
    ASSERT_FALSE(parse_api_error(reply->payload).has_value()) << reply->payload;
  }

  bool is_read_to_the_end() {
    JetStreamClient client(scene_.edge.url());
    const auto consumer = client.consumer(kEdgeStream, "holdfast");
    return consumer && consumer->pending == 0 && consumer->floor_sequence == client.stream(kEdgeStream).last_sequence;
  }

  // The numbers up to `count` have arrived, each once, and nothing else was taken.
  void expect_each_once(std::uint64_t count) {
    EXPECT_TRUE(delivered(scene_.box, count)) << pretty_json_text(scene_.box.status());
    EXPECT_TRUE(eventually([&] { return is_read_to_the_end(); }, kPatience)) << pretty_json_text(scene_.box.status());
    const Json status = scene_.box.status();
    EXPECT_EQ(status["accounting"]["taken"].count(), count);
    EXPECT_EQ(status["verdicts"]["conflicts"].count(), 0u);
    EXPECT_EQ(status["targets"].list()[0]["duplicates"].count(), 0u);
    EXPECT_EQ(arrivals(scene_.hub, kHubStream, count), kEachOnce);
  }

  // What was put right stays so: the next life finds nothing more, and nothing comes again.
  void expect_calm() {
    ASSERT_EQ(scene_.box.terminate(), 0);
    scene_.box.start();
    ASSERT_TRUE(
        eventually([&] { return scene_.box.status()["sources"].list()[0]["state"].text() == "flowing"; }, kPatience));
    const Json status = scene_.box.status();
    EXPECT_EQ(went_back(status), 0u);
    EXPECT_EQ(status["sources"].list()[0]["pending"].count(), 0u);
    EXPECT_EQ(duplicates(status), 0u);
  }

  // As a power cut leaves it: the messages are those of some time ago, the consumer stands where it stood.
  std::string messages() const { return scene_.edge.store() + "/jetstream/$G/streams/" + kEdgeStream + "/msgs"; }
  std::string copy() const { return scene_.box.directory() + "/older"; }
  void keep_a_copy(const std::string& what) {
    scene_.edge.stop();
    fs::copy(what, copy(), fs::copy_options::recursive);
    scene_.edge.start();
  }
  void roll_back(const std::string& what, std::chrono::seconds clock_shift = {}) {
    scene_.edge.stop();
    fs::remove_all(what);
    fs::copy(copy(), what, fs::copy_options::recursive);
    scene_.edge.options().clock_shift = clock_shift;
    scene_.edge.start();
  }

  // 150 messages, of which the stream has lost 50; then `count` others.
  void lose_50_of_150_and_publish(std::uint64_t count, std::chrono::seconds clock_shift = {}) {
    lose_50_of_150_and_publish(count, clock_shift, messages());
  }
  void lose_50_of_150_and_publish(std::uint64_t count, std::chrono::seconds clock_shift, const std::string& what) {
    publish(1, 100);
    scene_.box.start();
    expect_each_once(100);
    keep_a_copy(what);
    publish(101, 50);
    expect_each_once(150);
    go_away();
    roll_back(what, clock_shift);
    publish(151, count);
    ASSERT_EQ(JetStreamClient(scene_.edge.url()).stream(kEdgeStream).last_sequence, 100 + count);
    come_back();
  }

  Scene scene_{kShortJournal, std::string("identity = \"") + std::get<0>(GetParam()) + "\""};
};

TEST_P(StreamsBack, ByLessThanWasPublishedSince_NothingIsSkipped) {
  lose_50_of_150_and_publish(60);
  expect_each_once(210);
  EXPECT_EQ(went_back(scene_.box.status()), 1u);
  expect_calm();
}

TEST_P(StreamsBack, ByMoreThanWasPublishedSince_NothingIsSkipped) {
  lose_50_of_150_and_publish(20);
  expect_each_once(170);
  EXPECT_EQ(went_back(scene_.box.status()), 1u);
  expect_calm();
}

TEST_P(StreamsBack, TogetherWithTheClock_NothingIsSkipped) {
  if (const std::string why = why_no_clock_shift(); !why.empty()) GTEST_SKIP() << why;
  lose_50_of_150_and_publish(60, -std::chrono::hours(1000));
  expect_each_once(210);
  expect_calm();
}

// Of two messages that had one number, the one that is there now is the older by its time.
TEST_P(StreamsBack, TogetherWithTheClockByMoreThanWasPublishedSince_NothingIsSkipped) {
  if (const std::string why = why_no_clock_shift(); !why.empty()) GTEST_SKIP() << why;
  lose_50_of_150_and_publish(20, -std::chrono::hours(1000));
  expect_each_once(170);
  expect_calm();
}

// Its whole store is that of some time ago, the consumer with it.
TEST_P(StreamsBack, WithItsConsumer_NothingIsSkipped) {
  lose_50_of_150_and_publish(60, {}, scene_.edge.store());
  expect_each_once(210);
  expect_calm();
}

TEST_P(StreamsBack, Twice_NothingIsSkipped) {
  lose_50_of_150_and_publish(60);
  expect_each_once(210);
  go_away();
  roll_back(messages());
  publish(211, 70);
  come_back();
  expect_each_once(280);
  expect_calm();
}

TEST_P(StreamsBack, ConsumerDeleted_EveryRepeatIsRecognised) {
  publish(1, 100);
  scene_.box.start();
  expect_each_once(100);
  go_away();
  JetStreamClient(scene_.edge.url()).delete_consumer(kEdgeStream, "holdfast");
  publish(101, 50);
  come_back();
  expect_each_once(150);
  // A life that had seen the consumer begins behind what it had last heard to be acknowledged.
  if (std::get<1>(GetParam()) == Away::ended) {
    EXPECT_EQ(duplicates(scene_.box.status()), 100u);
  }
  expect_calm();
}

TEST_P(StreamsBack, Purged_WhatComesAfterIsTaken) {
  publish(1, 100);
  scene_.box.start();
  expect_each_once(100);
  go_away();
  ask("$JS.API.STREAM.PURGE.EDGE", "");
  publish(101, 50);
  come_back();
  expect_each_once(150);
  EXPECT_EQ(went_back(scene_.box.status()), 0u);
  expect_calm();
}

// The stream that is read is a copy of another; it is made again.
class StreamsOfOthers : public StreamsBack {
 protected:
  void SetUp() override {
    JetStreamClient(scene_.edge.url()).delete_stream(kEdgeStream);
    JetStreamClient(scene_.edge.url()).make_stream("ORIGIN", {kSubject});
  }

  void make(const std::string& from) {
    ask("$JS.API.STREAM.CREATE.EDGE", R"({"name":"EDGE","storage":"file",)" + from + "}");
  }

  void make_again(const std::string& from) {
    make(from);
    publish(1, 100);
    scene_.box.start();
    expect_each_once(100);
    go_away();
    JetStreamClient(scene_.edge.url()).delete_stream(kEdgeStream);
    make(from);
    publish(101, 50);
    EXPECT_TRUE(eventually([&] { return JetStreamClient(scene_.edge.url()).stream(kEdgeStream).messages == 150; }));
    come_back();
  }
};

// Numbers and times of a mirror are those of its origin.
TEST_P(StreamsOfOthers, MirrorMadeAgain_EveryRepeatIsRecognised) {
  make_again(R"("mirror":{"name":"ORIGIN"})");
  expect_each_once(150);
  EXPECT_EQ(duplicates(scene_.box.status()), 100u);
  expect_calm();
}

// It gives the messages new times: by its place each is a new one (spool/IDENTITY.md), by its id it is known.
TEST_P(StreamsOfOthers, SourcedStreamMadeAgain_IsRecognisedByIdsOnly) {
  make_again(R"("sources":[{"name":"ORIGIN"}])");
  if (!by_place()) {
    expect_each_once(150);
    EXPECT_EQ(duplicates(scene_.box.status()), 100u);
  } else {
    EXPECT_TRUE(delivered(scene_.box, 250)) << pretty_json_text(scene_.box.status());
    EXPECT_EQ(arrivals(scene_.hub, kHubStream, 150), (Arrivals{0, 100, 0}));
  }
  expect_calm();
}

const auto kCases =
    testing::Combine(testing::Values("stream_sequence", "message_id"), testing::Values(Away::ended, Away::frozen));
INSTANTIATE_TEST_SUITE_P(Strategies, StreamsBack, kCases, name_of);
INSTANTIATE_TEST_SUITE_P(Strategies, StreamsOfOthers, kCases, name_of);

}  // namespace
}  // namespace holdfast
