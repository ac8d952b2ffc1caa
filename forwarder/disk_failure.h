// What an error of a target's own disk says. Pure.
#pragma once

#include <optional>

#include "forwarder/outcome.h"
#include "spool/result.h"

namespace holdfast {

// Of everything that is still to be written: no room, no directory, not ours to write. Nothing: it says nothing of any
// record.
std::optional<Outcome> outcome_of_disk(const Error& error);

// `unavailable`, and without the name of a file, which may be made of a key (I7).
Error disk_failed(const char* verb, const Error& error);

}  // namespace holdfast
