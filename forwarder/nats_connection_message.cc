// What the client library knows of a message that came.
#include <nats/nats.h>

#include <cstring>

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

// The library has no call for it, and its own reading of it (nats_headers.h) writes into it. It makes a message in one
// piece: subject, reply, block and payload stand behind each other, each with a NUL after it (natsMsg_create). What
// does not look like that is no block; the tests against a real server see that it does.
std::string_view NatsMessage::head_bytes() const {
  auto* message = static_cast<natsMsg*>(raw_);
  const char* before = natsMsg_GetReply(message);
  if (before == nullptr || *before == '\0') before = natsMsg_GetSubject(message);
  const char* payload = natsMsg_GetData(message);
  if (before == nullptr || payload == nullptr) return {};
  const char* begin = before + std::strlen(before) + 1;
  return begin < payload ? std::string_view(begin, static_cast<std::size_t>(payload - begin) - 1) : std::string_view();
}

std::optional<std::vector<Header>> NatsMessage::headers() const {
  auto parsed = head();
  if (!parsed) return std::nullopt;
  return std::move(parsed->headers);
}

int NatsMessage::status() const {
  if (!payload().empty()) return 0;
  const auto parsed = head();
  return parsed ? parsed->status : 0;
}

}  // namespace holdfast
