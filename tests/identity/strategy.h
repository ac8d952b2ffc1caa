// What the matrix knows of a strategy: how a source is told to use it, and which of the told messages are one to it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {

// A message as a producer tells it. Its id travels in the header "message-id", which the edge server does not know: no
// repeat is hidden before it reaches us.
struct Told {
  std::string id;     // names the business event, as the producer sees it
  std::string order;  // in the body, as order.id
  std::string words;  // likewise, the rest
  std::string body() const;
};

struct Strategy {
  std::string_view name;
  std::string_view config;  // the value of `identity`
  std::string_view prefix;  // of its keys
  // What names the message told at this place; messages with one name are one.
  std::string (*name_of)(std::size_t place, const Told& told);
  // Why its records can be more or fewer than the producer's events; empty when they cannot.
  std::string_view why_not_events;
};

// Those that the program knows.
std::span<const Strategy> strategies();

}  // namespace holdfast
