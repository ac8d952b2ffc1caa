#include "forwarder/standing.h"

namespace holdfast {

void Standing::accepted() {
  kind_ = StandingKind::good;
  wait_ = {};
  first_failure_.reset();
  another_failed_ = false;
}

void Standing::failed(Sequence sequence, const std::string& subject, bool lane, const char* code) {
  wait_.code = code;
  if (!first_failure_) {
    first_failure_ = {sequence, subject, lane};
    return;
  }
  const bool same_lane = lane && first_failure_->lane && subject == first_failure_->subject;
  if (sequence != first_failure_->sequence && !same_lane) another_failed_ = true;
}

void Standing::judge(bool scouted, std::uint64_t random, Nanoseconds now) {
  if (!another_failed_ || kind_ == StandingKind::cut_off) return;
  const bool begins = kind_ == StandingKind::good;
  kind_ = StandingKind::doubted;
  if (begins || scouted) wait_.until = now + wait_.backoff.next(options_, random);
}

void Standing::cut_off(const char* code, std::uint64_t random, std::optional<Nanoseconds> asked, Nanoseconds now) {
  kind_ = StandingKind::cut_off;
  wait_.code = code;
  wait_.until = now + wait_.backoff.next(options_, random, asked);
}

void Standing::answered() {
  if (kind_ == StandingKind::cut_off) kind_ = StandingKind::good;
}

void Standing::kick() {
  wait_.until = Nanoseconds(0);
  if (kind_ == StandingKind::doubted) kind_ = StandingKind::good;
}

}  // namespace holdfast
