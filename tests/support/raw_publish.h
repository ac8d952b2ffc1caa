// A message published byte for byte as it is given: what client libraries would put right, producers send.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// `head` is the whole header block ("NATS/1.0\r\n…\r\n\r\n"). Returns when the server has taken it.
void publish_raw(int port, const std::string& subject, std::string_view head, std::string_view payload);

}  // namespace holdfast
