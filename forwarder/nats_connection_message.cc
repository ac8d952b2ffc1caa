// What the client library knows of a message that came.
#include <nats/nats.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "crypto/text.h"
#include "forwarder/nats_connection.h"

namespace holdfast {

std::string_view NatsMessage::subject() const {
  const char* text = natsMsg_GetSubject(static_cast<natsMsg*>(raw_));
  return text == nullptr ? "" : text;
}

std::string_view NatsMessage::reply() const {
  const char* text = natsMsg_GetReply(static_cast<natsMsg*>(raw_));
  return text == nullptr ? "" : text;
}

ByteView NatsMessage::payload() const {
  auto* message = static_cast<natsMsg*>(raw_);
  return as_bytes({natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))});
}

std::optional<std::vector<Header>> NatsMessage::headers() const {
  using Texts = std::unique_ptr<const char*, decltype(&std::free)>;
  auto* message = static_cast<natsMsg*>(raw_);
  std::vector<Header> headers;
  const char** raw_names = nullptr;
  int names = 0;
  const natsStatus status = natsMsgHeader_Keys(message, &raw_names, &names);
  if (status == NATS_NOT_FOUND) return headers;
  if (status != NATS_OK) return std::nullopt;
  const Texts owner(raw_names, &std::free);
  for (int i = 0; i < names; ++i) {
    const char** raw_values = nullptr;
    int values = 0;
    if (natsMsgHeader_Values(message, raw_names[i], &raw_values, &values) != NATS_OK) return std::nullopt;
    const Texts values_owner(raw_values, &std::free);
    for (int j = 0; j < values; ++j) headers.push_back({raw_names[i], raw_values[j]});
  }
  std::stable_sort(headers.begin(), headers.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return headers;
}

int NatsMessage::status() const {
  if (!payload().empty()) return 0;
  return std::max(0, parse_decimal<int>(status_header("Status")).value_or(0));
}

std::string_view NatsMessage::status_header(const char* name) const {
  const char* text = nullptr;
  if (natsMsgHeader_Get(static_cast<natsMsg*>(raw_), name, &text) != NATS_OK || text == nullptr) return {};
  return text;
}

}  // namespace holdfast
