#include "tests/identity/stage.h"

#include <fmt/format.h>

#include <utility>

namespace holdfast {
namespace {

constexpr const char* kSubject = "telemetry.a";
constexpr auto kPatience = std::chrono::seconds(60);  // for a loaded machine; usually a second or two
constexpr auto kPause = std::chrono::milliseconds(10);

// As long as a site is away, and longer than a cell: so the hub keeps what is sent again out of its stream, as it is
// told to in the field; that it was sent again is heard by the ear.
constexpr auto kHubWindow = std::chrono::minutes(10);

// The shortest that may be configured: most cells wait for it once.
std::string source(const std::string& url, const Strategy& strategy) {
  return fmt::format(
      "[[source]]\nname = \"edge\"\ntype = \"nats\"\nurl = \"{}\"\nstream = \"{}\"\nack_wait = \"1s\"\n"
      "identity = {}\n\n",
      url, kEdge, strategy.config);
}

Counts counts_of(const Json& status) {
  const Json& all = status["verdicts"];
  return {
      all["accepted"].count(),
      all["duplicates_in_batch"].count() + all["duplicates_in_custody"].count() + all["duplicates_in_ledger"].count(),
      all["conflicts"].count(), all["refused"].count(), status["sources"].list()[0]["redelivered"].count()};
}

Counts sum(const Counts& a, const Counts& b) {
  return {a.accepted + b.accepted, a.duplicates + b.duplicates, a.conflicts + b.conflicts, a.refused + b.refused,
          a.redelivered + b.redelivered};
}

}  // namespace

Stage::Stage(const Strategy& strategy)
    : box(HOLDFAST_BINARY, {source(relay.url(), strategy) + nats_target("hub", hub.url())}) {
  make_edge_stream();
  StreamRequest at_hub;
  at_hub.name = kHub;
  at_hub.subjects = {kSubject};
  at_hub.duplicate_window = kHubWindow;
  JetStreamClient(hub.url()).make_stream(at_hub);
}

void Stage::make_edge_stream() {
  JetStreamClient(edge.url()).make_stream(kEdge, {kSubject});
}

Told Stage::new_event() {
  const std::uint64_t number = ++events_;
  return {fmt::format("event-{}", number), fmt::format("order-{}", number), fmt::format("words-{}", number)};
}

void Stage::tell(Told told) {
  JetStreamClient(edge.url()).publish(kSubject, told.body(), {{"message-id", told.id}});
  told_.push_back(std::move(told));
}

void Stage::tell_new_events(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) tell(new_event());
}

void Stage::keep_counts() {
  earlier_ = sum(earlier_, counts_of(box.status()));
}

void Stage::kill9() {
  keep_counts();
  box.kill9();
}

void Stage::terminate() {
  keep_counts();
  if (const int code = box.terminate(); code != 0) flaws_.push_back(fmt::format("the program ended with {}", code));
}

Counts Stage::counts() {
  return sum(earlier_, counts_of(box.status()));
}

void Stage::soon(const std::string& what, const std::function<bool()>& condition) {
  if (flaws_.empty() && !eventually(condition, kPatience, kPause))
    flaws_.push_back("in vain it was waited for: " + what);
}

bool Stage::at_rest() {
  JetStreamClient client(edge.url());
  const auto consumer = client.consumer(kEdge, kConsumer);
  const StreamInfo stream = client.stream(kEdge);
  if (!consumer || consumer->floor_sequence != stream.last_sequence || consumer->pending != 0) return false;
  const Json status = box.status();
  return !status.is_null() && status["accounting"]["in_custody"].count() == 0 &&
         status["sources"].list()[0]["state"].text() == "flowing";
}

void Stage::soon_at_rest() {
  soon("everything handed out, acknowledged and forwarded", [&] { return at_rest(); });
}

}  // namespace holdfast
