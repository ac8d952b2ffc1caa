#include "appliance/stream_check.h"

#include <algorithm>
#include <limits>

#include "spool/subject.h"

namespace holdfast {
namespace {

// Committed messages looked for, newest first, before the stream is asked what it has left to compare with (limits
// removed them).
constexpr int kMostStored = 32;
// Positions passed over because they are in hand: more than can be.
constexpr int kMostPositions = 20'000;

enum class Agreement : std::uint8_t { same, other, unknown };

class Check {
 public:
  Check(const StreamInfo& stream, const ConsumerInfo& consumer, const StreamQuestions& ask)
      : stream_(stream), consumer_(consumer), ask_(ask) {}

  // Does the newest committed message that can be found at or below what was handed out still stand there?
  Result<Agreement> newest() {
    const auto agreement = newest_committed();
    if (!agreement.ok() || *agreement != Agreement::unknown || stream_.work_queue) return agreement;
    return newest_stored();
  }

  // A work queue has no message that was acknowledged.
  Result<bool> has_acknowledged() {
    if (!stream_.work_queue) return false;
    const auto first = next(1);
    if (!first.ok()) return first.error();
    return *first <= consumer_.floor_sequence;
  }

  // Below the lowest committed position that does not agree. Halving works because agreement is that of a prefix.
  Result<std::uint64_t> resume_at() {
    if (stream_.work_queue) return std::uint64_t{0};  // its consumers begin at the beginning, by its rules
    std::uint64_t good = 0;                           // all committed positions up to here agree, or there are none
    std::uint64_t bad = std::min(consumer_.delivered_sequence, stream_.last_sequence) + 1;
    bool agreed = false;
    while (bad - good > 1) {
      const std::uint64_t middle = good + (bad - good) / 2;
      const auto committed = ask_.committed(middle);
      if (!committed.ok()) return committed.error();
      Agreement agreement = Agreement::same;
      if (!committed->empty() && committed->front().sequence > good) {
        const auto compared = compare(*committed);
        if (!compared.ok()) return compared.error();
        agreement = *compared;
        agreed = agreed || agreement == Agreement::same;
      }
      (agreement == Agreement::same ? good : bad) = middle;
    }
    if (!agreed) {
      const auto known = anything_is_known();
      if (!known.ok()) return known.error();
      if (*known) return std::uint64_t{0};  // and what it was before that is forgotten: any of it may be new (R59)
    }
    // What was handed out and not acknowledged must come again too.
    const std::uint64_t resume = std::min(good, consumer_.floor_sequence) + 1;
    return resume <= std::max<std::uint64_t>(stream_.first_sequence, 1) ? 0 : resume;
  }

 private:
  Result<Agreement> newest_committed() {
    std::uint64_t below = consumer_.delivered_sequence;
    int asked = 0;
    for (int i = 0; i < kMostPositions && asked < kMostStored; ++i) {
      const auto committed = ask_.committed(below);
      if (!committed.ok()) return committed.error();
      if (committed->empty() || committed->front().sequence == 0) return Agreement::unknown;
      const std::uint64_t sequence = committed->front().sequence;
      below = sequence - 1;
      if (ask_.in_hand(sequence)) continue;
      ++asked;
      const auto agreement = compare(*committed);
      if (!agreement.ok() || *agreement != Agreement::unknown) return agreement;
    }
    return Agreement::unknown;
  }

  // A stream that keeps few messages of a subject has large holes: of what is acknowledged, the newest that it has.
  Result<Agreement> newest_stored() {
    std::uint64_t at_or_below = 0;                       // something is stored from here up to the floor
    std::uint64_t above = consumer_.floor_sequence + 1;  // from here nothing is
    std::uint64_t newest = 0;
    while (above - at_or_below > 1) {
      const std::uint64_t middle = at_or_below + (above - at_or_below) / 2;
      const auto found = next(middle);
      if (!found.ok()) return found.error();
      if (*found > consumer_.floor_sequence) {
        above = middle;
      } else {
        at_or_below = newest = *found;
      }
    }
    if (newest == 0) return Agreement::unknown;
    const auto committed = ask_.committed(newest);
    if (!committed.ok()) return committed.error();
    if (committed->empty() || committed->front().sequence != newest) return Agreement::unknown;
    return compare(*committed);
  }

  // The sequence of the first message from one on that the consumer hands out; none: above all.
  Result<std::uint64_t> next(std::uint64_t at_or_above) {
    std::vector<std::string> filters = consumer_.config.filters;
    if (filters.empty()) filters.emplace_back(">");
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const std::string& filter : filters) {
      const auto found = ask_.next(at_or_above, filter);
      if (!found.ok()) return found.error();
      if (*found) least = std::min(least, (*found)->sequence);
    }
    return least;
  }

  Result<bool> anything_is_known() {
    const auto last = ask_.committed(std::numeric_limits<std::int64_t>::max());
    if (!last.ok()) return last.error();
    return !last->empty();
  }

  // What was committed at one sequence with what the stream has there.
  Result<Agreement> compare(const std::vector<StreamPosition>& committed) {
    const std::uint64_t sequence = committed.front().sequence;
    if (sequence > stream_.last_sequence) return Agreement::other;
    const auto stored = ask_.stored(sequence);
    if (!stored.ok()) return stored.error();
    if (!*stored || !hands_out((*stored)->subject)) return Agreement::unknown;
    const bool known = std::ranges::any_of(
        committed, [&](const StreamPosition& one) { return one.timestamp_ns == (*stored)->timestamp_ns; });
    return known ? Agreement::same : Agreement::other;
  }

  // What the consumer passes over is never committed, whatever stood there before.
  bool hands_out(const std::string& subject) const {
    const auto& filters = consumer_.config.filters;
    return filters.empty() || std::ranges::any_of(filters, [&](const auto& f) { return subject_matches(f, subject); });
  }

  const StreamInfo& stream_;
  const ConsumerInfo& consumer_;
  const StreamQuestions& ask_;
};

}  // namespace

Result<StreamVerdict> check_stream(const StreamInfo& stream, const ConsumerInfo& consumer, const StreamSeen& seen,
                                   const StreamQuestions& questions) {
  if (!seen.created.empty() && seen.created != stream.created) return StreamVerdict{true, 0};
  Check check(stream, consumer, questions);
  bool back = stream.last_sequence < seen.last_sequence || consumer.delivered_sequence > stream.last_sequence;
  if (!back) {
    const auto newest = check.newest();
    if (!newest.ok()) return newest.error();
    back = *newest == Agreement::other;
  }
  if (!back) {
    const auto acknowledged = check.has_acknowledged();
    if (!acknowledged.ok()) return acknowledged.error();
    back = *acknowledged;
  }
  if (!back) return StreamVerdict{};
  const auto resume = check.resume_at();
  if (!resume.ok()) return resume.error();
  return StreamVerdict{true, *resume};
}

}  // namespace holdfast
