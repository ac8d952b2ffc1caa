// A target that does as it is told, and remembers what it took.
//
// Without a script it behaves like a good upstream: it takes every record once, by its wire key, calls a second
// delivery of the same record a duplicate, and refuses other content under a key it has (rejected, exists_otherwise).
//
// Threads: as Target; what the test asks may be asked from any, at any time.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "forwarder/target.h"

namespace holdfast {

struct TakenRecord {
  std::string subject;
  Bytes payload;
};

class ScriptedTarget : public Target {
 public:
  // Called for each record that is delivered. Nothing: as a good upstream would. An outcome that is not delivered or
  // duplicate means that the record is not taken.
  using Script = std::function<std::optional<Outcome>(const Delivery&)>;

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  Result<void> probe() override;
  void interrupt() override;

  void script(Script script);
  // --- What happens to the next delivery only
  void break_after(std::size_t reports);         // so many are taken and reported, then the connection breaks
  void break_after_taking(std::size_t records);  // so many are taken, and none is reported
  void leave_out(std::size_t place);             // one is not reported, and all is said to be well
  void hang();                                   // nothing happens until interrupt()
  // --- Until told otherwise
  void cut_off(bool off);  // deliver and probe fail

  std::map<std::string, TakenRecord> taken() const;  // by wire key
  std::vector<std::string> order() const;            // wire keys, as they were taken
  std::size_t deliveries() const;                    // of windows
  std::size_t delivered_records() const;             // in all windows
  std::size_t probes() const;
  bool hanging() const;

 private:
  struct Fault {
    std::optional<std::size_t> break_after;
    std::optional<std::size_t> break_after_taking;
    std::optional<std::size_t> leave_out;
    bool hang = false;
  };

  Outcome take(const Delivery& delivery);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Script script_;
  Fault fault_;
  bool cut_off_ = false;
  bool hanging_ = false;
  bool interrupted_ = false;
  std::map<std::string, TakenRecord> taken_;
  std::vector<std::string> order_;
  std::size_t deliveries_ = 0;
  std::size_t delivered_records_ = 0;
  std::size_t probes_ = 0;
};

}  // namespace holdfast
