#include "appliance/consumer_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "spool/subject.h"

namespace holdfast {
namespace {

constexpr const char* kDescription = "made by holdfast";

using Filters = std::vector<std::string>;

bool all_covered(const Filters& narrow, const Filters& wide) {
  return std::all_of(narrow.begin(), narrow.end(), [&](const std::string& one) {
    return std::any_of(wide.begin(), wide.end(), [&](const std::string& other) { return pattern_covers(other, one); });
  });
}

// What is handed out is what was asked for: the same filters, or none where the stream has nothing else.
bool filters_agree(const Filters& asked, const Filters& made, const StreamInfo& stream) {
  if (made.empty() && asked.empty()) return true;
  if (made.empty()) return stream.only_subjects && all_covered(stream.subjects, asked);
  if (asked.empty()) return stream.only_subjects && all_covered(stream.subjects, made);
  return all_covered(made, asked) && all_covered(asked, made);
}

void add(std::string& list, std::string text) {
  if (!list.empty()) list += "; ";
  list += text;
}

std::string hold_of(const ConsumerConfig& asked, const ConsumerConfig& made, const StreamInfo& stream) {
  if (made.push) return "it is a push consumer";
  if (made.ack_policy != "explicit") return "its acknowledgement policy is not explicit";
  if (made.headers_only && !asked.headers_only) return "it hands out headers only, and payloads would be lost";
  if (filters_agree(asked.filters, made.filters, stream)) return {};
  if (asked.filters.size() > 1 && made.filters.empty()) {
    return "the server ignored the subjects: more than one needs nats-server 2.10";
  }
  return "it hands out other subjects than the configured ones";
}

// One of ours that was made again begins where the earlier one stood.
bool starts_as_asked(const ConsumerConfig& asked, const ConsumerConfig& made) {
  if (is_ours(made) && (made.deliver_policy == "by_start_sequence" || made.deliver_policy == "all")) return true;
  return made.deliver_policy == asked.deliver_policy && made.start_sequence == asked.start_sequence;
}

std::string drift_of(const ConsumerConfig& asked, const ConsumerConfig& made) {
  std::string drift;
  const auto seconds = [](Nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  // A server takes the first wait of a backoff for ack_wait.
  if (made.ack_wait != asked.ack_wait && asked.backoff.empty() && made.backoff.empty())
    add(drift, fmt::format("ack_wait is {} s", seconds(made.ack_wait)));
  if (made.max_deliver > 0 && made.max_deliver != asked.max_deliver) {
    add(drift, fmt::format("max_deliver is {}: messages can be lost while the spool is full", made.max_deliver));
  } else if (made.max_deliver <= 0 && asked.max_deliver > 0) {
    add(drift, "max_deliver is not limited");
  }
  if (made.backoff != asked.backoff) add(drift, made.backoff.empty() ? "it has no backoff" : "it has another backoff");
  if (!starts_as_asked(asked, made)) add(drift, fmt::format("its deliver_policy is {}", made.deliver_policy));
  if (made.max_ack_pending > 0 && made.max_ack_pending != asked.max_ack_pending) {
    add(drift, fmt::format("max_ack_pending is {}", made.max_ack_pending));
  }
  if (asked.headers_only && !made.headers_only) add(drift, "it hands out payloads, too");
  if (made.replay_policy == "original") add(drift, "it replays at the original pace");
  return drift;
}

}  // namespace

ConsumerConfig asked_consumer(const ConsumerWish& wish) {
  ConsumerConfig config;
  config.name = wish.name;
  config.description = kDescription;
  config.filters = wish.subjects;
  config.ack_wait = wish.ack_wait;
  config.deliver_policy = wish.deliver_policy;
  config.start_sequence = wish.start_sequence;
  config.start_time = wish.start_time;
  config.headers_only = wish.headers_only;
  config.max_ack_pending = wish.max_ack_pending;
  config.max_deliver = wish.max_deliver;
  config.backoff = wish.backoff;
  return config;
}

bool is_ours(const ConsumerConfig& made) {
  return made.description == kDescription;
}

ConsumerFit fit_of(const ConsumerConfig& asked, const ConsumerConfig& made, const StreamInfo& stream) {
  return {hold_of(asked, made, stream), drift_of(asked, made)};
}

bool pattern_covers(std::string_view wide, std::string_view narrow) {
  // Its wildcards are taken for tokens: a `*` of `wide` would take a last `>` for one, which stands for more.
  const bool open_end = narrow == ">" || narrow.ends_with(".>");
  if (open_end && !(wide == ">" || wide.ends_with(".>"))) return false;
  return subject_matches(wide, narrow);
}

}  // namespace holdfast
