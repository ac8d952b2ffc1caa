// No room, in the middle of something.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/support/faulty_file_system.h"
#include "tests/support/patience.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

// A commit writes into blocks that are there. When that fails for "no room", as on a disk that promised more than it
// has, the segment's state is as unknown as after any other error.
TEST(SpoolFull, NoRoomInsideASegment_IsTheEndOfTheLife) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 2));
  world.forget();
  bool no_room = false;
  FaultyFileSystem faulty(world.fs, [&](std::string_view verb, std::string_view path) -> std::optional<Error> {
    if (!no_room || verb != "write" || !path.starts_with("journal/")) return std::nullopt;
    return Error{ErrorKind::full, "no space left"};
  });
  auto opened = Spool::open(faulty, world.clock, world.options, world.key);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE((*opened)->put_batch(std::vector<Arrival>{world.message(3)}).ok());
  no_room = true;
  auto verdicts = (*opened)->put_batch(std::vector<Arrival>{world.message(4)});
  ASSERT_FALSE(verdicts.ok());
  EXPECT_EQ(verdicts.error().kind, ErrorKind::io);
  no_room = false;
  EXPECT_FALSE((*opened)->put_batch(std::vector<Arrival>{world.message(5)}).ok());
  opened->reset();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  world.acknowledged.insert(3);
  EXPECT_EQ(world.due_count(world.hub), 3u);
  world.expect_promises("no room inside a segment");
}

// The thread waits for something: here, for its turn to commit.
bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return state == "S";
}

// Two sources queue up behind one commit, in this order, and are committed together; there is no room for the first row
// of a file.
struct Told {
  bool first_taken = true, second_taken = false;
};

Told no_room_for_the_first_file(SpoolWorld& world, const std::vector<Arrival>& first,
                                const std::vector<Arrival>& second) {
  std::thread first_source, second_source;
  std::atomic<pid_t> first_thread{0}, second_thread{0};
  Told told;
  bool struck = false;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (verb == "sync" && path.starts_with("journal/") && !first_source.joinable()) {
      first_source = std::thread([&] {
        first_thread = ::gettid();
        told.first_taken = world.spool->put_batch(first).ok();
      });
      EXPECT_TRUE(eventually([&] { return sleeps(first_thread); }));
      second_source = std::thread([&] {
        second_thread = ::gettid();
        told.second_taken = world.spool->put_batch(second).ok();
      });
      EXPECT_TRUE(eventually([&] { return sleeps(second_thread); }));
    }
    if (verb == "sync_all" && !struck) {
      struck = true;
      world.fs.fail_next({FaultKind::full, false, false});
    }
  });
  EXPECT_TRUE(world.put(1, 1));
  first_source.join();
  second_source.join();
  world.fs.observe({});
  world.fs.clear_faults();
  EXPECT_TRUE(struck);
  return told;
}

Arrival large_message(const SpoolWorld& world, std::uint64_t number) {
  Arrival arrival = world.message(number);
  arrival.envelope.payload.resize(30'000, 'y');
  return arrival;
}

// The file of the first goes again; there is room for the second.
TEST(SpoolFull, RepeatOfARecordThatHadNoRoom_IsNotADuplicate) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  const Told told =
      no_room_for_the_first_file(world, {large_message(world, 2), world.message(3)}, {large_message(world, 2)});
  EXPECT_FALSE(told.first_taken);
  if (told.second_taken) world.acknowledged.insert(2);
  EXPECT_EQ(world.spool->audit()->taken, told.second_taken ? 2u : 1u);
  world.expect_promises("a repeat of what had no room");
}

TEST(SpoolFull, NoRoomForTheRecordOfOneSource_IsToldToThatOne) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  const Told told = no_room_for_the_first_file(world, {large_message(world, 2)}, {world.message(3)});
  EXPECT_FALSE(told.first_taken);
  if (told.first_taken) world.acknowledged.insert(2);
  if (told.second_taken) world.acknowledged.insert(3);
  EXPECT_EQ(world.spool->audit()->taken, told.second_taken ? 2u : 1u);
  world.expect_promises("no room for one of two");
}

// What was settled needs no room to be written down, whatever else a stop has none for.
TEST(SpoolFull, StopOnAFullDisk_KeepsWhatWasSettled) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 10));
  ASSERT_EQ(world.deliver(world.hub, 5), 5);
  world.fs.set_capacity(4096, 1);
  ASSERT_TRUE(world.close());
  world.fs.set_capacity(1ull << 30, 100'000);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.due_count(world.hub), 5u);
  world.expect_promises("stopped on a full disk");
}

// What is in the journal only may have to go to files: its room there is taken.
TEST(SpoolFull, LimitOfBytes_HoldsWhenTheJournalGoesToFiles) {
  SpoolWorld world;
  world.options.limits.max_bytes = 16u << 20;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.maintain());
  std::uint64_t number = 1;
  while (number < 5000 && world.put(number, 20)) {
    number += 20;
    ASSERT_TRUE(world.maintain());
  }
  EXPECT_LT(number, 5000u);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  const SpoolStatus status = world.spool->status();
  EXPECT_EQ(status.in_journal, 0u);
  EXPECT_LE(status.disk_bytes, world.options.limits.max_bytes + (256u << 10));
}

}  // namespace
}  // namespace holdfast
