// Making and deleting streams, which the demo and the tests do. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace holdfast
