// Waiting in a test: for a condition, never for time.
#pragma once

#include <functional>

#include "spool/clock.h"

namespace holdfast {

// Looks at a condition again and again; false when it is not met within the limit.
bool eventually(const std::function<bool()>& condition, Nanoseconds limit = std::chrono::seconds(20),
                Nanoseconds pause = std::chrono::milliseconds(5));

// The other way round: false as soon as it is not met; true when it was met all that time.
bool stays(const std::function<bool()>& condition, Nanoseconds time);

}  // namespace holdfast
