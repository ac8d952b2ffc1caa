#include "tests/identity/strategy.h"

#include <fmt/format.h>

#include <array>

namespace holdfast {
namespace {

constexpr std::array kStrategies = {
    Strategy{"stream_sequence", "\"stream_sequence\"",
             "seq:", [](std::size_t place, const Told&) { return std::to_string(place); },
             "it names messages: an event told twice is two, and no id is looked at"},
    Strategy{"message_id", "\"message_id\"", "msg:", [](std::size_t, const Told& told) { return told.id; }, ""},
    Strategy{"payload_field", "{ payload_field = \"order.id\" }",
             "field:", [](std::size_t, const Told& told) { return told.order; },
             "it names by one field of the payload: one value is one event, and no id is looked at"},
    Strategy{"payload_hash", "\"payload_hash\"", "hash:", [](std::size_t, const Told& told) { return told.body(); },
             "the payload is the identity: the same is one event and another is two, and no id is looked at"},
};

}  // namespace

std::string Told::body() const {
  return fmt::format(R"({{"order":{{"id":"{}"}},"words":"{}"}})", order, words);
}

std::span<const Strategy> strategies() {
  return kStrategies;
}

}  // namespace holdfast
