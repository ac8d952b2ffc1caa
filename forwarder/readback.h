// What an upstream holds of given records, as its own tools would find it: for certification, which believes no answer
// of a target that it cannot check. Not on the way of any delivery.
//
// Errors: `unavailable` when the upstream could not be asked. Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forwarder/target.h"

namespace holdfast {

struct Held {
  std::uint64_t copies = 0;  // effects under this record's key: rows, objects, files, messages
  bool as_sent = true;       // each of them has the record's content
  // Where the upstream keeps an order: grows from what it stored earlier to what it stored later.
  std::optional<std::uint64_t> position = {};
};

class Readback {
 public:
  virtual ~Readback() = default;
  // One for each record, by its place.
  virtual Result<std::vector<Held>> look(std::span<const Delivery> records) = 0;
  // Takes them out of the upstream again. Those that are not there are no failure.
  virtual Result<void> remove(std::span<const Delivery> records) = 0;
};

}  // namespace holdfast
