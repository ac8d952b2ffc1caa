#include "tests/powercut/messages.h"

#include <fmt/format.h>

#include <random>

namespace holdfast {
namespace {

constexpr std::size_t kLarge = 80'000;  // more than a quarter of a segment

bool is_large(std::uint64_t number) {
  return number % 61 == 3;
}

}  // namespace

bool is_refused(std::uint64_t number) {
  return number % 97 == 5;
}
bool is_rejected(std::uint64_t number) {
  return !is_refused(number) && number % 89 == 7;
}

Arrival message(std::uint64_t number, RouteNumber route) {
  std::minstd_rand dice(static_cast<std::uint32_t>(number));
  Arrival arrival;
  Envelope& envelope = arrival.envelope;
  envelope.source = "local";
  envelope.subject = fmt::format("telemetry.{}", number % 7);
  envelope.headers = {{"Number", std::to_string(number)}};
  envelope.payload.resize(is_large(number) ? kLarge : 100 + dice() % 1400);
  for (std::uint8_t& byte : envelope.payload) byte = static_cast<std::uint8_t>(dice() >> 8);
  envelope.origin = {"TELEMETRY", number, static_cast<std::int64_t>(number) * 1000};
  if (is_refused(number)) {
    arrival.refused = Reason::no_route;
    arrival.identity.key = refused_key(kSite, envelope);
  } else {
    arrival.identity = std::get<Identity>(identify({Strategy::stream_sequence, {}}, kSite, envelope));
  }
  arrival.route = route;
  arrival.priority = static_cast<Priority>(number % 3 == 0 ? 0 : kNormalPriority);
  return arrival;
}

std::uint64_t number_of(const std::string& key, const Envelope& envelope) {
  const Arrival sent = message(envelope.origin.sequence, RouteNumber{});
  return key == sent.identity.key && envelope == sent.envelope ? envelope.origin.sequence : 0;
}

}  // namespace holdfast
