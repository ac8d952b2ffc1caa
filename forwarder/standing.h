// How a target as a whole stands. Pure.
//
//   good     what has not failed goes, what failed goes again in its own time
//   doubted  more than one record, or lane, has failed and none was accepted since: it is probably not the records.
//            What was never tried still goes at once; of what failed one goes at a time, at the target's backoff
//   cut_off  no connection, or a refusal that does not depend on the record: nothing goes before a probe has succeeded
//
// One accepted record restores it at once.
#pragma once

#include <string>

#include "forwarder/wait.h"
#include "spool/index.h"

namespace holdfast {

enum class StandingKind : std::uint8_t { good, doubted, cut_off };

class Standing {
 public:
  explicit Standing(const BackoffOptions& options) : options_(options) {}

  StandingKind kind() const { return kind_; }
  const Wait& wait() const { return wait_; }

  void accepted();
  // A record failed in a flight in which none was accepted. `lane`: it put its lane on hold, and others of that lane
  // say nothing new.
  void failed(Sequence sequence, const std::string& subject, bool lane, const char* code);
  // After a flight without an accepted record: doubts when there is reason to. `scouted`: one that had failed before
  // was in it.
  void judge(bool scouted, std::uint64_t random, Nanoseconds now);
  void cut_off(const char* code, std::uint64_t random, std::optional<Nanoseconds> asked, Nanoseconds now);
  // It answers: what it says of a record is about the record.
  void answered();
  // Everything may be tried at once.
  void kick();

 private:
  struct Failure {
    Sequence sequence = 0;
    std::string subject;
    bool lane = false;
  };

  const BackoffOptions options_;
  StandingKind kind_ = StandingKind::good;
  Wait wait_;
  std::optional<Failure> first_failure_;  // since a record was accepted
  bool another_failed_ = false;
};

}  // namespace holdfast
