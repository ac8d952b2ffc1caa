#include "appliance/nats_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Remembers what was committed, as the spool's ledger does.
class Ledger {
 public:
  // True: new.
  bool commit(const Origin& origin) {
    const std::lock_guard lock(mutex_);
    return positions_.insert({origin.sequence, origin.timestamp_ns}).second;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return positions_.size();
  }
  StreamMemory memory() {
    StreamMemory memory;
    memory.last_committed = [this](std::uint64_t at_or_below) -> Result<std::vector<StreamPosition>> {
      const std::lock_guard lock(mutex_);
      std::vector<StreamPosition> found;
      for (auto at = positions_.upper_bound({at_or_below, INT64_MAX}); at != positions_.begin();) {
        --at;
        if (!found.empty() && found.back().sequence != at->first) break;
        found.push_back({0, at->first, at->second});
      }
      return found;
    };
    memory.first_committed = [this]() -> Result<std::optional<std::uint64_t>> {
      const std::lock_guard lock(mutex_);
      return positions_.empty() ? std::optional<std::uint64_t>() : positions_.begin()->first;
    };
    memory.note = [this](const StreamFloor& floor) {
      const std::lock_guard lock(mutex_);
      noted_ = floor;
    };
    return memory;
  }
  std::optional<StreamFloor> noted() const {
    const std::lock_guard lock(mutex_);
    return noted_;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::pair<std::uint64_t, std::int64_t>> positions_;
  std::optional<StreamFloor> noted_;
};

std::string text_of(const Incoming& incoming) {
  return std::string(as_text(incoming.envelope.payload));
}

class NatsSourceTest : public ::testing::Test {
 protected:
  NatsSourceOptions options() const {
    NatsSourceOptions options;
    options.name = "local";
    options.nats.url = server_.url();
    options.nats.connect_limit = seconds(5);
    options.stream = "S";
    options.consumer.name = "holdfast";
    options.batch = 64;
    options.consumer.ack_wait = seconds(5);
    return options;
  }
  std::unique_ptr<NatsSource> start(const NatsSourceOptions& options) {
    return std::make_unique<NatsSource>(options, ledger_.memory());
  }
  // Takes, commits and acknowledges until so many new messages were committed.
  std::vector<std::string> take(NatsSource& source, std::size_t count, Nanoseconds limit = seconds(30)) {
    std::vector<std::string> texts;
    const auto deadline = steady_clock::now() + limit;
    while (texts.size() < count && steady_clock::now() < deadline) {
      auto pulled = source.pull(std::min<std::size_t>(100, count - texts.size()), milliseconds(100));
      EXPECT_TRUE(pulled.ok());
      for (const Incoming& incoming : *pulled) {
        if (ledger_.commit(incoming.envelope.origin)) texts.push_back(text_of(incoming));
      }
      (void)source.acknowledge(*pulled);
    }
    return texts;
  }
  std::vector<Incoming> pull_some(NatsSource& source, std::size_t count) {
    std::vector<Incoming> all;
    eventually([&] {
      auto pulled = source.pull(count - all.size(), milliseconds(50));
      std::move(pulled->begin(), pulled->end(), std::back_inserter(all));
      return all.size() == count;
    });
    return all;
  }
  static bool reaches(const NatsSource& source, SourceState state, Nanoseconds limit = seconds(20)) {
    return eventually([&] { return source.status().state == state; }, limit);
  }
  static std::vector<std::string> numbers(std::uint64_t first, std::uint64_t count) {
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < count; ++i) texts.push_back(std::to_string(first + i));
    return texts;
  }
  static std::vector<std::string> sorted(std::vector<std::string> texts) {
    std::sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) { return std::stoull(a) < std::stoull(b); });
    return texts;
  }

  NatsServer server_;
  Ledger ledger_;
};

TEST_F(NatsSourceTest, Messages_ComeInOrderWithAllThatTheyHave) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish("s.a", "first", {{"X-One", "1"}, {"Nats-Msg-Id", "abc"}});
  client.publish("s.b", "", {{"Nats-Msg-Size", "17"}});
  auto source = start(options());
  const auto pulled = pull_some(*source, 2);
  ASSERT_EQ(pulled.size(), 2u);
  const Envelope& first = pulled[0].envelope;
  EXPECT_EQ(first.source, "local");
  EXPECT_EQ(first.subject, "s.a");
  EXPECT_EQ(text_of(pulled[0]), "first");
  EXPECT_EQ(find_header(first, "X-One"), "1");
  EXPECT_EQ(find_header(first, "Nats-Msg-Id"), "abc");
  EXPECT_EQ(first.origin.stream, "S");
  EXPECT_EQ(first.origin.sequence, 1u);
  EXPECT_GT(first.origin.timestamp_ns, 1'600'000'000'000'000'000);
  EXPECT_FALSE(first.payload_omitted);
  EXPECT_EQ(pulled[0].deliveries, 1u);
  EXPECT_TRUE(pulled[1].envelope.payload_omitted);
  EXPECT_EQ(pulled[1].envelope.original_size, 17u);
  ASSERT_TRUE(source->acknowledge(pulled).ok());
  EXPECT_TRUE(eventually([&] { return client.consumer("S", "holdfast")->floor_sequence == 2; }));
  const SourceStatus status = source->status();
  EXPECT_EQ(status.state, SourceState::flowing);
  EXPECT_EQ(status.why, "");
  EXPECT_EQ(status.pulled, 2u);
  EXPECT_EQ(status.acknowledged, 2u);
}

TEST_F(NatsSourceTest, ManyMessages_AllComeOnceAndInOrder) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 5000, 200);
  auto source = start(options());
  std::uint64_t next = 1;
  while (next <= 5000) {
    auto pulled = source->pull(100, seconds(5));
    ASSERT_TRUE(pulled.ok());
    ASSERT_FALSE(pulled->empty()) << next;
    for (const Incoming& incoming : *pulled) EXPECT_EQ(incoming.envelope.origin.sequence, next++);
    ASSERT_TRUE(source->acknowledge(*pulled).ok());
  }
  EXPECT_TRUE(eventually([&] { return client.consumer("S", "holdfast")->floor_sequence == 5000; }));
  EXPECT_EQ(source->status().redelivered, 0u);
}

TEST_F(NatsSourceTest, TrickleOverTheEndOfRequests_ComesAtOnce) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  auto source = start(options());
  ASSERT_TRUE(reaches(*source, SourceState::flowing));
  const auto end = steady_clock::now() + seconds(8);  // requests end after five
  for (std::uint64_t i = 1; steady_clock::now() < end; ++i) {
    client.publish_many("s.a", i, 1);
    const auto begin = steady_clock::now();
    ASSERT_EQ(take(*source, 1), numbers(i, 1));
    EXPECT_LT(steady_clock::now() - begin, milliseconds(900)) << i;
    EXPECT_TRUE(stays([&] { return source->status().state == SourceState::flowing; }, milliseconds(100)));
  }
  EXPECT_EQ(source->status().reconnects, 0u);
}

TEST_F(NatsSourceTest, NotCallingPull_AsksForNoMoreThanTwoBatches) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 1000);
  auto source = start(options());
  const auto handed_out = [&] {
    const auto consumer = client.consumer("S", "holdfast");
    return consumer ? consumer->delivered_sequence : 0;
  };
  ASSERT_TRUE(eventually([&] { return handed_out() >= 128; }));
  EXPECT_TRUE(stays([&] { return handed_out() == 128; }, milliseconds(500)));
}

TEST_F(NatsSourceTest, Paused_AsksForNothingMoreAndKeepsWhatCameAlive) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 1000);
  NatsSourceOptions fast = options();
  fast.consumer.ack_wait = seconds(1);
  auto source = start(fast);
  auto held = pull_some(*source, 10);
  source->pause(true);
  const auto four_times_ack_wait = seconds(4);
  EXPECT_TRUE(stays([&] { return source->status().redelivered == 0; }, four_times_ack_wait));
  EXPECT_GT(source->status().in_progress_sent, 0u);
  EXPECT_LE(client.consumer("S", "holdfast")->delivered_sequence, 10u + 128u + 64u);
  source->pause(false);
  for (const Incoming& incoming : held) ledger_.commit(incoming.envelope.origin);
  ASSERT_TRUE(source->acknowledge(held).ok());
  EXPECT_EQ(take(*source, 990), numbers(11, 990));
  EXPECT_EQ(source->status().redelivered, 0u);
}

TEST_F(NatsSourceTest, LostAcknowledgement_ComesAgain) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 3);
  NatsSourceOptions fast = options();
  fast.consumer.ack_wait = seconds(1);
  auto source = start(fast);
  ASSERT_EQ(pull_some(*source, 3).size(), 3u);  // and then the process ends before it acknowledges
  source.reset();
  source = start(fast);
  const auto again = pull_some(*source, 3);
  ASSERT_EQ(again.size(), 3u);
  for (const Incoming& incoming : again) EXPECT_GT(incoming.deliveries, 1u);
  EXPECT_EQ(source->status().redelivered, 3u);
}

TEST_F(NatsSourceTest, Destroyed_SendsWhatWasAcknowledged) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  for (int round = 0; round < 5; ++round) {
    // No more than is taken: what a source has asked for and not handed out would come again only after ack_wait.
    client.publish_many("s.a", static_cast<std::uint64_t>(round) * 100 + 1, 100);
    auto source = start(options());
    EXPECT_EQ(take(*source, 100).size(), 100u);
    source.reset();
    EXPECT_TRUE(eventually(
        [&] { return client.consumer("S", "holdfast")->floor_sequence == 100u * static_cast<unsigned>(round + 1); }));
  }
}

TEST_F(NatsSourceTest, Destroyed_GivesBackWhatWasNotTaken) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 200);
  NatsSourceOptions patient = options();
  patient.consumer.ack_wait = seconds(60);  // without being told the server would wait for so long
  auto source = start(patient);
  ASSERT_EQ(take(*source, 30), numbers(1, 30));
  source.reset();
  source = start(patient);
  EXPECT_EQ(sorted(take(*source, 170)), numbers(31, 170));
}

TEST_F(NatsSourceTest, Interrupt_EndsAPull) {
  auto source = start(options());
  std::thread interrupter([&] {
    EXPECT_TRUE(stays([&] { return source->status().pulled == 0; }, milliseconds(200)));
    source->interrupt();
  });
  const auto begin = steady_clock::now();
  const auto pulled = source->pull(10, seconds(20));
  interrupter.join();
  ASSERT_TRUE(pulled.ok());
  EXPECT_TRUE(pulled->empty());
  EXPECT_LT(steady_clock::now() - begin, seconds(5));
}

TEST_F(NatsSourceTest, ServerThatIsNotThere_IsAStateUntilItComes) {
  server_.kill();
  auto source = start(options());
  EXPECT_TRUE(source->pull(10, milliseconds(50))->empty());
  ASSERT_TRUE(eventually([&] { return !source->status().why.empty(); }));
  EXPECT_EQ(source->status().state, SourceState::connecting);
  server_.start();
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 3);
  EXPECT_EQ(take(*source, 3), numbers(1, 3));
}

TEST_F(NatsSourceTest, StreamThatIsNotThere_IsAStateUntilItComes) {
  JetStreamClient client(server_.url());
  auto source = start(options());
  ASSERT_TRUE(reaches(*source, SourceState::no_stream));
  EXPECT_NE(source->status().why.find("S"), std::string::npos);
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 3);
  EXPECT_EQ(take(*source, 3), numbers(1, 3));
  EXPECT_EQ(source->status().state, SourceState::flowing);
}

TEST_F(NatsSourceTest, ServerWithoutJetStream_IsNoStream) {
  NatsServer plain({.jetstream = false});
  NatsSourceOptions there = options();
  there.nats.url = plain.url();
  auto source = start(there);
  EXPECT_TRUE(reaches(*source, SourceState::no_stream));
}

TEST_F(NatsSourceTest, NamesThatNatsDoesNotAllow_AreHeld) {
  NatsSourceOptions odd = options();
  odd.stream = "a.b";
  auto source = start(odd);
  EXPECT_EQ(source->status().state, SourceState::held);
  EXPECT_TRUE(source->pull(1, milliseconds(1))->empty());
}

TEST_F(NatsSourceTest, ServerKilledAndRestarted_NothingIsLost) {
  auto client = std::make_unique<JetStreamClient>(server_.url());
  client->make_stream("S", {"s.>"});
  client->publish_many("s.a", 1, 300);
  auto source = start(options());
  std::vector<std::string> all = take(*source, 100);
  for (int i = 0; i < 3; ++i) {
    server_.kill();
    ASSERT_TRUE(reaches(*source, SourceState::connecting));
    server_.start();
    client = std::make_unique<JetStreamClient>(server_.url());
    ASSERT_TRUE(reaches(*source, SourceState::flowing));
    const auto more = take(*source, 50);
    all.insert(all.end(), more.begin(), more.end());
  }
  const auto rest = take(*source, 300 - all.size());
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(sorted(all), numbers(1, 300));
  EXPECT_GE(source->status().reconnects, 3u);
  EXPECT_EQ(source->status().went_back, 0u);
}

TEST_F(NatsSourceTest, ServerFrozen_IsNoticedAndRecovered) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  auto source = start(options());
  ASSERT_TRUE(reaches(*source, SourceState::flowing));
  server_.freeze();
  EXPECT_TRUE(eventually([&] { return source->status().state != SourceState::flowing; }, seconds(40)));
  server_.thaw();
  JetStreamClient after(server_.url());
  after.publish_many("s.a", 1, 10);
  EXPECT_EQ(take(*source, 10), numbers(1, 10));
}

TEST_F(NatsSourceTest, ConsumerDeleted_IsNoticedAndMadeAgainWhereItStood) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 100);
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  ASSERT_TRUE(eventually([&] { return client.consumer("S", "holdfast")->floor_sequence == 100; }));
  // Longer than it takes the source to look at its consumer.
  EXPECT_TRUE(stays([&] { return source->status().state == SourceState::flowing; }, seconds(6)));
  client.delete_consumer("S", "holdfast");
  const auto begin = steady_clock::now();
  client.publish_many("s.a", 101, 10);
  EXPECT_EQ(take(*source, 10), numbers(101, 10));
  EXPECT_LT(steady_clock::now() - begin, seconds(8));
  EXPECT_EQ(client.consumer("S", "holdfast")->config.start_sequence, 101u);
  EXPECT_EQ(source->status().went_back, 0u);
}

TEST_F(NatsSourceTest, ConsumerDeletedBeforeStart_IsMadeFromTheBeginning) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 20);
  auto source = start(options());
  ASSERT_EQ(take(*source, 20), numbers(1, 20));
  source.reset();
  client.delete_consumer("S", "holdfast");
  client.publish_many("s.a", 21, 5);
  source = start(options());
  EXPECT_EQ(take(*source, 5), numbers(21, 5));  // the others came too, and were recognised
}

TEST_F(NatsSourceTest, StreamDeletedAndMadeAgain_NothingNewIsSkipped) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 100);
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  client.delete_stream("S");
  ASSERT_TRUE(reaches(*source, SourceState::no_stream));
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1001, 50);  // with sequences that were there before
  EXPECT_EQ(take(*source, 50), numbers(1001, 50));
  EXPECT_EQ(source->status().went_back, 1u);
}

TEST_F(NatsSourceTest, StreamMadeAgainInABlink_NothingNewIsSkipped) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 100);
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  client.delete_stream("S");
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1001, 150);
  EXPECT_EQ(take(*source, 150), numbers(1001, 150));
}

TEST_F(NatsSourceTest, StreamAndForeignConsumerMadeAgain_AreUsedAgain) {
  JetStreamClient client(server_.url());
  ConsumerConfig foreign;
  foreign.name = "holdfast";
  foreign.ack_wait = seconds(5);
  client.make_stream("S", {"s.>"});
  client.make_consumer("S", foreign);
  client.publish_many("s.a", 1, 100);
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  client.delete_stream("S");
  client.make_stream("S", {"s.>"});
  client.make_consumer("S", foreign);
  client.publish_many("s.a", 1001, 50);
  EXPECT_EQ(take(*source, 50), numbers(1001, 50));
}

TEST_F(NatsSourceTest, OneSubject_IsFiltered) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a.x", 1, 5);
  client.publish_many("s.b.x", 101, 5);
  client.publish_many("s.a.y", 6, 5);
  NatsSourceOptions one = options();
  one.consumer.subjects = {"s.a.>"};
  auto source = start(one);
  EXPECT_EQ(take(*source, 10), numbers(1, 10));
  EXPECT_TRUE(take(*source, 1, seconds(1)).empty());
  EXPECT_EQ(client.consumer("S", "holdfast")->config.filters, std::vector<std::string>{"s.a.>"});
}

TEST_F(NatsSourceTest, SubjectThatIsAllOfTheStream_Flows) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a.x", 1, 5);
  NatsSourceOptions one = options();
  one.consumer.subjects = {"s.>"};
  auto source = start(one);
  EXPECT_EQ(take(*source, 5), numbers(1, 5));
}

TEST_F(NatsSourceTest, SeveralSubjects_FlowWhereTheServerCanAndAreHeldWhereItIgnoresThem) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 5);
  client.publish_many("s.b", 101, 5);
  client.publish_many("s.c", 6, 5);
  NatsSourceOptions two = options();
  two.consumer.subjects = {"s.a", "s.c"};
  auto source = start(two);
  if (server_is_at_least(2, 10)) {
    EXPECT_EQ(take(*source, 10), numbers(1, 10));
    return;
  }
  ASSERT_TRUE(reaches(*source, SourceState::held));
  EXPECT_NE(source->status().why.find("2.10"), std::string::npos) << source->status().why;
  EXPECT_TRUE(take(*source, 1, seconds(1)).empty());
  EXPECT_EQ(client.consumer("S", "holdfast")->delivered_sequence, 0u);
}

TEST_F(NatsSourceTest, ConsumerOfOthers_IsUsedAndItsDifferencesAreSaid) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  ConsumerConfig foreign;
  foreign.name = "holdfast";
  foreign.ack_wait = seconds(17);
  foreign.max_deliver = 5;
  client.make_consumer("S", foreign);
  client.publish_many("s.a", 1, 5);
  auto source = start(options());
  EXPECT_EQ(take(*source, 5), numbers(1, 5));
  const SourceStatus status = source->status();
  EXPECT_EQ(status.state, SourceState::flowing);
  EXPECT_NE(status.why.find("max_deliver is 5"), std::string::npos) << status.why;
  EXPECT_NE(status.why.find("ack_wait is 17 s"), std::string::npos) << status.why;
  EXPECT_EQ(client.consumer("S", "holdfast")->config.ack_wait, seconds(17));  // not touched
}

TEST_F(NatsSourceTest, ConsumerWithOtherSubjects_IsHeldUntilItIsMended) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  ConsumerConfig foreign;
  foreign.name = "holdfast";
  foreign.ack_wait = seconds(5);
  client.make_consumer("S", foreign);  // all of the stream
  client.publish_many("s.b", 101, 5);
  client.publish_many("s.a", 1, 5);
  NatsSourceOptions one = options();
  one.consumer.subjects = {"s.a"};
  auto source = start(one);
  ASSERT_TRUE(reaches(*source, SourceState::held));
  EXPECT_TRUE(take(*source, 1, milliseconds(500)).empty());
  EXPECT_EQ(client.consumer("S", "holdfast")->floor_sequence, 0u);
  client.delete_consumer("S", "holdfast");
  EXPECT_EQ(take(*source, 5), numbers(1, 5));
}

TEST_F(NatsSourceTest, PushConsumer_IsHeld) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  const auto reply =
      client.connection().request("$JS.API.CONSUMER.DURABLE.CREATE.S.holdfast",
                                  R"({"stream_name":"S","config":{"durable_name":"holdfast","deliver_subject":"x.y",)"
                                  R"("ack_policy":"explicit","deliver_policy":"all"}})",
                                  seconds(5));
  ASSERT_TRUE(reply.ok());
  ASSERT_FALSE(parse_api_error(reply->payload));
  auto source = start(options());
  EXPECT_TRUE(reaches(*source, SourceState::held));
}

TEST_F(NatsSourceTest, LargestMessages_AreNotStuck) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  for (std::uint64_t i = 0; i < 40; ++i)
    client.publish("s.a", std::string((1u << 20) - 200, 'x'), {{"X", std::to_string(i)}});
  auto source = start(options());
  EXPECT_EQ(take(*source, 40).size(), 40u);
}

TEST_F(NatsSourceTest, CredentialsRefused_IsSaid) {
  NatsServer closed({.extra = "authorization { user: a, password: b }"});
  NatsSourceOptions there = options();
  there.nats.url = closed.url();
  auto source = start(there);
  EXPECT_TRUE(eventually([&] { return source->status().why.find("credentials") != std::string::npos; }));
  EXPECT_EQ(source->status().state, SourceState::connecting);
}

// The store of a stream goes back to an earlier copy while its consumer stays where it is, as after a power cut.
class StreamThatGoesBack : public NatsSourceTest {
 protected:
  fs::path stream_directory() const { return fs::path(server_.store()) / "jetstream" / "$G" / "streams" / "S"; }
  void keep_copy() {
    server_.stop();
    fs::remove_all(copy_ / "msgs");
    fs::copy(stream_directory() / "msgs", fs::path(copy_ / "msgs"), fs::copy_options::recursive);
    server_.start();
  }
  void go_back() {
    server_.stop();
    fs::remove_all(stream_directory() / "msgs");
    fs::copy(fs::path(copy_ / "msgs"), stream_directory() / "msgs", fs::copy_options::recursive);
    server_.start();
  }
  // The server has taken in the last acknowledgement, and keeps that over a restart.
  bool all_acknowledged(std::uint64_t floor) {
    return eventually(
        [&] { return JetStreamClient(server_.url()).consumer("S", "holdfast")->floor_sequence == floor; });
  }
  TemporaryDirectory copy_;
};

TEST_F(StreamThatGoesBack, WhileWeLive_NothingNewIsSkipped) {
  { JetStreamClient(server_.url()).make_stream("S", {"s.>"}); }
  { JetStreamClient(server_.url()).publish_many("s.a", 1, 100); }
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  keep_copy();
  { JetStreamClient(server_.url()).publish_many("s.a", 101, 50); }
  ASSERT_EQ(take(*source, 50), numbers(101, 50));
  ASSERT_TRUE(all_acknowledged(150));
  go_back();
  { JetStreamClient(server_.url()).publish_many("s.a", 1001, 60); }
  EXPECT_EQ(sorted(take(*source, 60)), numbers(1001, 60));
  EXPECT_GE(source->status().went_back, 1u);
  EXPECT_EQ(ledger_.size(), 210u);
}

TEST_F(StreamThatGoesBack, WhileWeAreDownAndManyNewCame_NothingNewIsSkipped) {
  { JetStreamClient(server_.url()).make_stream("S", {"s.>"}); }
  { JetStreamClient(server_.url()).publish_many("s.a", 1, 100); }
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  keep_copy();
  { JetStreamClient(server_.url()).publish_many("s.a", 101, 50); }
  ASSERT_EQ(take(*source, 50), numbers(101, 50));
  ASSERT_TRUE(all_acknowledged(150));
  source.reset();
  go_back();
  // More than were lost: the numbers look right again.
  { JetStreamClient(server_.url()).publish_many("s.a", 1001, 60); }
  source = start(options());
  EXPECT_EQ(sorted(take(*source, 60)), numbers(1001, 60));
  EXPECT_EQ(source->status().went_back, 1u);
  JetStreamClient client(server_.url());
  EXPECT_EQ(client.consumer("S", "holdfast")->config.start_sequence, 101u);
}

TEST_F(StreamThatGoesBack, WorkQueueWhileWeAreDown_NothingNewIsSkipped) {
  {
    JetStreamClient client(server_.url());
    StreamRequest queue;
    queue.name = "S";
    queue.subjects = {"s.>"};
    queue.retention = "workqueue";
    client.make_stream(queue);
    client.publish_many("s.a", 1, 100);
  }
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  ASSERT_TRUE(eventually([&] { return JetStreamClient(server_.url()).stream("S").messages == 0; }));
  keep_copy();
  { JetStreamClient(server_.url()).publish_many("s.a", 101, 50); }
  ASSERT_EQ(take(*source, 50), numbers(101, 50));
  ASSERT_TRUE(eventually([&] { return JetStreamClient(server_.url()).stream("S").messages == 0; }));
  source.reset();
  go_back();
  { JetStreamClient(server_.url()).publish_many("s.a", 1001, 60); }
  source = start(options());
  EXPECT_EQ(sorted(take(*source, 60)), numbers(1001, 60));
}

TEST_F(StreamThatGoesBack, ConsumerOfOthers_IsHeldAndSaid) {
  {
    JetStreamClient client(server_.url());
    client.make_stream("S", {"s.>"});
    ConsumerConfig foreign;
    foreign.name = "holdfast";
    foreign.ack_wait = seconds(5);
    foreign.max_ack_pending = 20'000;
    client.make_consumer("S", foreign);
    client.publish_many("s.a", 1, 100);
  }
  auto source = start(options());
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  keep_copy();
  { JetStreamClient(server_.url()).publish_many("s.a", 101, 50); }
  ASSERT_EQ(take(*source, 50), numbers(101, 50));
  ASSERT_TRUE(all_acknowledged(150));
  source.reset();
  go_back();
  { JetStreamClient(server_.url()).publish_many("s.a", 1001, 60); }
  source = start(options());
  ASSERT_TRUE(reaches(*source, SourceState::held));
  EXPECT_NE(source->status().why.find("went back"), std::string::npos) << source->status().why;
  EXPECT_TRUE(take(*source, 1, milliseconds(500)).empty());
  // Mended by the operator: it is made by us, from the beginning.
  JetStreamClient(server_.url()).delete_consumer("S", "holdfast");
  EXPECT_EQ(sorted(take(*source, 60)), numbers(1001, 60));
}

TEST_F(StreamThatGoesBack, NothingWentBack_NothingIsMadeAgain) {
  { JetStreamClient(server_.url()).make_stream("S", {"s.>"}); }
  { JetStreamClient(server_.url()).publish_many("s.a", 1, 100); }
  NatsSourceOptions eager = options();
  eager.check_every = milliseconds(100);
  auto source = start(eager);
  ASSERT_EQ(take(*source, 100), numbers(1, 100));
  server_.stop();
  server_.start();
  { JetStreamClient(server_.url()).publish_many("s.a", 101, 500); }
  ASSERT_EQ(take(*source, 500).size(), 500u);
  EXPECT_TRUE(stays([&] { return source->status().went_back == 0; }, seconds(1)));  // ten checks
}

TEST_F(NatsSourceTest, AnotherDomain_IsAskedByItsName) {
  NatsServer edge({.domain = "edge"});
  JetStreamClient client(edge.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 100);
  NatsSourceOptions in_edge = options();
  in_edge.nats.url = edge.url();
  in_edge.domain = "edge";
  auto source = start(in_edge);
  EXPECT_EQ(take(*source, 100), numbers(1, 100));
  EXPECT_TRUE(eventually([&] { return client.consumer("S", "holdfast")->floor_sequence == 100; }));
  source.reset();
  in_edge.domain = "elsewhere";
  source = start(in_edge);
  EXPECT_TRUE(reaches(*source, SourceState::no_stream));
}

// What the ledger may forget is what the server could not hand out again.
TEST_F(NatsSourceTest, WhatIsAcknowledged_IsTold) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.a", 1, 100);
  NatsSourceOptions often = options();
  often.check_every = milliseconds(200);
  auto source = start(often);
  ASSERT_EQ(take(*source, 60), numbers(1, 60));
  ASSERT_TRUE(eventually([&] { return ledger_.noted() && ledger_.noted()->below >= 1; }));
  EXPECT_LE(ledger_.noted()->below, 61u);
  EXPECT_EQ(ledger_.noted()->stream, "S");
  ASSERT_EQ(take(*source, 40), numbers(61, 40));
  ASSERT_TRUE(eventually([&] { return ledger_.noted()->acknowledged_ago.has_value(); }, seconds(20)));
}

// It stands where its last message was. What another source has committed since would be remembered for ever.
TEST_F(NatsSourceTest, AQuietConsumerOfABusyStream_HoldsBackNothing) {
  JetStreamClient client(server_.url());
  client.make_stream("S", {"s.>"});
  client.publish_many("s.quiet", 1, 10);
  NatsSourceOptions often = options();
  often.consumer.subjects = {"s.quiet"};
  often.check_every = milliseconds(200);
  auto source = start(often);
  ASSERT_EQ(take(*source, 10), numbers(1, 10));
  client.publish_many("s.busy", 11, 500);
  ledger_.commit({"S", 510, 1});
  ASSERT_TRUE(eventually([&] { return ledger_.noted() && ledger_.noted()->acknowledged == 511; }, seconds(20)));
  EXPECT_TRUE(eventually([&] { return ledger_.noted()->acknowledged_ago.has_value(); }, seconds(20)));
}

}  // namespace
}  // namespace holdfast
