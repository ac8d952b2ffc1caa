// A server whose clock is wrong: what a box has that was without power for long.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"

namespace holdfast {
namespace {

using std::chrono::duration_cast;
using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::system_clock;

// Of the only message of a stream, against this machine's clock.
seconds age_of_message(const NatsServer& server, const std::string& stream) {
  const std::vector<SeenMessage> all = JetStreamClient(server.url()).read_all(stream);
  if (all.size() != 1) return seconds::min();
  return duration_cast<seconds>(system_clock::now().time_since_epoch() - Nanoseconds(all[0].timestamp_ns));
}

NatsServerOptions shifted(seconds shift) {
  NatsServerOptions options;
  options.clock_shift = shift;
  return options;
}

class ClockShift : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_clock_shift(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(ClockShift, GivesMessagesTheServersTime) {
  NatsServer server(shifted(-hours(1000)));
  JetStreamClient client(server.url());
  client.make_stream("S", {"s"});
  client.publish("s", "of old");
  const seconds age = age_of_message(server, "S");
  EXPECT_GE(age, hours(1000));
  EXPECT_LE(age, hours(1001));
}

// Signals reach the server itself, and what it stored is as it would be.
TEST_F(ClockShift, LeavesTheServerWhatItIs) {
  NatsServer server(shifted(hours(1000)));
  JetStreamClient(server.url()).make_stream("S", {"s"});
  JetStreamClient(server.url()).publish("s", "from the future");
  server.freeze();
  server.thaw();
  server.stop();
  server.start();
  EXPECT_LE(age_of_message(server, "S"), -hours(999));
  server.kill();
  server.options().clock_shift = seconds(0);
  server.start();
  EXPECT_LE(age_of_message(server, "S"), -hours(999));
  JetStreamClient(server.url()).make_stream("T", {"t"});
  JetStreamClient(server.url()).publish("t", "of now");
  EXPECT_LE(age_of_message(server, "T"), hours(1));
}

}  // namespace
}  // namespace holdfast
