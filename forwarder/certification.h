// Certification: whether it is safe to send records to an upstream at least once, tried out on the real one.
//
// It delivers records of its own, every one with the run's name in its key (`certify:{site}:{run}:{n}`), its payload
// and its header `Holdfast-Certification`; does to them whatever can make a record come twice or not at all; and
// believes nothing that it cannot see in the upstream. In the end they are removed again.
//
// Harm: some dozens of small records, a second connection or three, no wrong credentials, nothing that is malformed on
// the wire. Whoever consumes what the upstream takes sees them.
//
// Bounds: `limit` and the time that one delivery may take beyond it, then removal. A target that does not return is
// left behind with its thread, and is a failure. Errors and reasons are words of ours, no peer's (I7).
//
// Threads: certify() blocks; `stop` may be requested from any: what was not tried is then `unproven`, and what was sent
// is removed all the same.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "forwarder/certified_target.h"

namespace holdfast {

enum class Proof : std::uint8_t {
  passed,
  conditional,     // safe if what the reason says holds
  failed,          // records can be lost, stored twice or altered there
  unproven,        // could not be tried: not reached, no time, stopped
  not_applicable,  // there is nothing to try
};
std::string_view proof_text(Proof proof);  // snake_case

struct Property {
  std::string name;
  Proof verdict = Proof::unproven;
  std::string reason;
};

enum class Safety : std::uint8_t { safe, safe_with_conditions, not_safe, unproven };
std::string_view safety_text(Safety safety);  // snake_case

// One that failed: not safe. Else one that is unproven: unproven. Else one that is conditional: safe with conditions.
Safety safety_of(const std::vector<Property>& properties);

struct CertificationOptions {
  std::string site;
  std::string run;               // unique, of a-z, 0-9 and '-'
  std::string subject;           // of every record
  std::optional<Bytes> payload;  // of every record; none: JSON that names the run
  Nanoseconds limit = std::chrono::minutes(3);
  Nanoseconds patience = std::chrono::seconds(10);  // for a record to be taken, and to be seen when it was
  bool keep = false;                                // leave the records there
  std::stop_token stop;
  std::function<void(std::string_view property)> on_begin;  // from the calling thread
};

struct CertificationReport {
  std::vector<Property> properties;  // in the order they were tried
  Safety safety = Safety::unproven;
  std::uint64_t records = 0;  // made, and perhaps sent
  bool may_be_left = false;   // some of them
};

CertificationReport certify(CertifiedTarget target, const CertificationOptions& options);

// Removes what an earlier run may have left.
Result<void> remove_certification_records(CertifiedTarget target, const CertificationOptions& options);

}  // namespace holdfast
