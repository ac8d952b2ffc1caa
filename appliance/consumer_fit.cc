#include "appliance/consumer_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "spool/subject.h"

namespace holdfast {
namespace {

constexpr const char* kDescription = "made by holdfast";
constexpr std::int64_t kMaxAckPending = 20'000;  // far above what is ever in hand

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
  if (filters_agree(asked.filters, made.filters, stream)) return {};
  if (asked.filters.size() > 1 && made.filters.empty()) {
    return "the server ignored the subjects: more than one needs nats-server 2.10";
  }
  return "it hands out other subjects than the configured ones";
}

std::string drift_of(const ConsumerConfig& asked, const ConsumerConfig& made) {
  std::string drift;
  const auto seconds = [](Nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  if (made.ack_wait != asked.ack_wait) add(drift, fmt::format("ack_wait is {} s", seconds(made.ack_wait)));
  if (made.max_deliver > 0) {
    add(drift, fmt::format("max_deliver is {}: messages can be lost while the spool is full", made.max_deliver));
  }
  if (made.max_ack_pending > 0 && made.max_ack_pending != asked.max_ack_pending) {
    add(drift, fmt::format("max_ack_pending is {}", made.max_ack_pending));
  }
  if (made.headers_only) add(drift, "it hands out headers only");
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
  config.max_ack_pending = kMaxAckPending;
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
