// A spool on a simulated disk, and a plain account of what it has promised: for tests that cut, fail and look.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "spool/spool.h"
#include "tests/support/simulated_clock.h"
#include "tests/support/simulated_file_system.h"

namespace holdfast {

class SpoolWorld {
 public:
  explicit SpoolWorld(std::uint64_t seed = 1);

  // A message number: its identity and content follow from it.
  Arrival message(std::uint64_t number, const std::string& content = "") const;

  // Opens the spool and names its targets: "hub", and with two targets also "shore". Nothing on failure.
  bool open();
  void forget() { spool.reset(); }  // the process is gone
  bool close(Nanoseconds within = std::chrono::seconds(10));

  // Puts messages first..first+count-1; those with a verdict count as acknowledged.
  bool put(std::uint64_t first, std::uint64_t count);
  // Delivers what is due for a target, at most `limit`; the upstream has it from then on, whether or not it is settled.
  // Returns how many; negative on an error.
  int deliver(TargetNumber target, std::size_t limit = 1000, Fate fate = Fate::delivered);
  std::size_t due_count(TargetNumber target);  // to a reader that begins anew
  bool maintain(int rounds = 1);
  // Until nothing is urgent any more.
  bool settle_down(int most = 2000);

  // Every promise that can be looked at, after a start: what was acknowledged is due or was delivered; the accounting
  // balances; no plaintext is on the disk. Delivers everything, and sees that a redelivery makes no second record.
  void expect_promises(const std::string& when);
  // Stops cleanly, starts again: what was delivered stays so.
  void expect_nothing_comes_back(std::uint64_t taken, const std::string& when);

  const bool crypto_ready = init_crypto();
  SimulatedFileSystem fs;
  SimulatedClock clock;
  SpoolOptions options;
  SecretKey key = SecretKey::random();
  std::unique_ptr<Spool> spool;
  bool two_targets = false;
  TargetNumber hub{}, shore{};
  RouteNumber route{};
  std::string last_error;
  std::set<std::uint64_t> acknowledged;                       // message numbers
  std::map<std::uint64_t, std::set<TargetNumber>> delivered;  // upstream has it
  std::map<TargetNumber, DueCursor> cursors;
  std::set<std::uint64_t> may_be_missing;  // the test destroyed them

 private:
  bool open_and_name();
  bool remember(const Error& error);
};

// The number in a message's payload.
std::uint64_t message_number(const Envelope& envelope);

inline constexpr std::string_view kMarker = "PLAINTEXT-MARKER";

}  // namespace holdfast
