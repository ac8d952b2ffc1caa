// What goes wrong in a cell, played on a stage: messages are told and the fault is done to them. When it returns, the
// program runs, and is about to find out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tests/identity/stage.h"

namespace holdfast {

// What the fault, not the producer, makes of the repeats.
struct Aftermath {
  // Of what was committed, so many come again by the fault: each is a duplicate.
  std::uint64_t repeats = 0;
  // So many more may: the program makes its consumer anew, and where it does not know from where, at the beginning.
  std::uint64_t possible_repeats = 0;
  // A record that was sent and not yet noted as delivered when the program was killed is sent again, under its key.
  bool may_send_again = false;
};

struct Fault {
  std::string_view name;
  Aftermath (*play)(Stage& stage);
};

std::span<const Fault> faults();

}  // namespace holdfast
