// The stage of most integration tests: an edge nats-server, a hub, and the appliance between them; and what arrived.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/appliance.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"

namespace holdfast {

inline constexpr const char* kEdgeStream = "EDGE";
inline constexpr const char* kHubStream = "HUB";
inline constexpr const char* kSubject = "telemetry.a";
// For a loaded machine; usually it takes a second or two.
inline constexpr Nanoseconds kPatience = std::chrono::minutes(3);

struct Scene {
  NatsServer edge;
  NatsServer hub;
  Appliance box;

  explicit Scene(const std::string& spool = "", const std::string& source = "")
      : box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream, source) + nats_target("hub", hub.url()), spool}) {
    make_streams();
  }

  void make_streams() {
    JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
    JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>"});
  }

  // Numbers first..first+count-1.
  void publish(std::uint64_t first, std::uint64_t count, std::size_t size = 256) {
    JetStreamClient(edge.url()).publish_many(kSubject, first, count, size);
  }
};

// What of the numbers 1..most is in a stream, by the content of its messages, as publish_many makes them.
struct Arrivals {
  std::uint64_t missing = 0;
  std::uint64_t twice = 0;    // or more often
  std::uint64_t foreign = 0;  // no such number
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

inline constexpr Arrivals kEachOnce{};

inline std::ostream& operator<<(std::ostream& out, const Arrivals& arrivals) {
  return out << arrivals.missing << " missing, " << arrivals.twice << " twice, " << arrivals.foreign << " foreign";
}

inline Arrivals arrivals(const NatsServer& server, const std::string& stream, std::uint64_t most) {
  std::vector<std::uint32_t> times(most + 1);
  Arrivals arrivals;
  for (const SeenMessage& message : JetStreamClient(server.url()).read_all(stream)) {
    std::uint64_t number = 0;
    std::from_chars(message.payload.data(), message.payload.data() + message.payload.size(), number);
    if (number == 0 || number > most) {
      ++arrivals.foreign;
    } else {
      ++times[number];
    }
  }
  for (std::uint64_t number = 1; number <= most; ++number) {
    arrivals.missing += times[number] == 0 ? 1u : 0u;
    arrivals.twice += times[number] > 1 ? 1u : 0u;
  }
  return arrivals;
}

inline bool taken(Appliance& box, std::uint64_t count) {
  return eventually([&] { return box.status()["accounting"]["taken"].count() >= count; }, kPatience);
}

// Everything that was taken has been delivered, and is `count`.
inline bool delivered(Appliance& box, std::uint64_t count) {
  return eventually(
      [&] {
        const Json status = box.status();
        return status["accounting"]["delivered"].count() == count && status["accounting"]["in_custody"].count() == 0;
      },
      kPatience);
}

// The whole backlog of `count` records lies in files.
inline bool in_files(Appliance& box, std::uint64_t count) {
  return eventually(
      [&] {
        const Json status = box.status();
        return status["backlog"]["in_files"].count() == count && status["backlog"]["in_journal"].count() == 0;
      },
      kPatience);
}

inline bool needs_attention(Appliance& box, const std::string& code) {
  const Json status = box.status();
  const Json::List& all = status["attention"].list();
  return std::any_of(all.begin(), all.end(), [&](const Json& one) { return one["code"].text() == code; });
}

// Reasons of the quarantine, each as often as it is there.
inline std::vector<std::string> quarantine_reasons(Appliance& box) {
  std::vector<std::string> reasons;
  const Json answer = box.ask("quarantine list");
  for (const Json& record : answer["records"].list()) reasons.push_back(record["reason"].text());
  std::sort(reasons.begin(), reasons.end());
  return reasons;
}

}  // namespace holdfast
