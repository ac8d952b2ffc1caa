// Streams as a whole: making and deleting them, which the demo and the tests do; finding one and asking what it
// promises, which certification does. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "forwarder/nats_messages.h"
#include "spool/clock.h"

namespace holdfast {

struct StreamRequest {
  std::string name;
  std::vector<std::string> subjects;
  std::string retention = "limits";
  std::int64_t max_message_bytes = -1;
  std::int64_t max_messages = -1;
  std::int64_t max_bytes = -1;
  bool discard_new = false;
  Nanoseconds duplicate_window = std::chrono::minutes(2);
  bool file_storage = true;
  int replicas = 1;
};
std::string create_stream_request(const StreamRequest& request);
std::string create_stream_subject(std::string_view stream);
std::string delete_stream_subject(std::string_view stream);

// How it keeps what it takes.
struct StreamKeeping {
  std::uint64_t replicas = 1;
  Nanoseconds duplicate_window{0};  // how long a message id is known
  bool in_memory = false;
};
// Of the answer to stream_info_subject.
ApiReply<StreamKeeping> parse_stream_keeping(std::string_view json);

// The streams that take a subject.
std::string stream_names_subject();
std::string stream_names_request(std::string_view subject);
ApiReply<std::vector<std::string>> parse_stream_names(std::string_view json);

std::string delete_message_subject(std::string_view stream);
std::string delete_message_request(std::uint64_t sequence);

}  // namespace holdfast
