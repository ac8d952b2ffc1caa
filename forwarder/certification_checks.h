// The properties that a certification tries, one function each. A check makes its own records and its own targets, and
// leaves nothing to the next but the records that were made.
//
// What must hold of every check: it returns whatever the target does, and calls nothing `passed` that it has not seen.
#pragma once

#include <span>

#include "forwarder/trial.h"

namespace holdfast {

struct Check {
  const char* name;  // snake_case; docs/certification.md has a row for each
  Judgement (*run)(Trial& trial);
};

// Without which nothing else can be tried.
Judgement check_delivery(Trial& trial);

std::span<const Check> stored_checks();  // certification_checks.cc: content, repeats, order
std::span<const Check> fault_checks();   // certification_faults.cc: what a bad link does

// What all that was confirmed has come to, in the end.
Judgement check_in_the_end(Trial& trial);

}  // namespace holdfast
