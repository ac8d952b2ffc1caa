// The NATS client protocol cut into its frames, either way: just enough of it to see what is published, delivered and
// acknowledged. Pure; takes bytes as they come.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// Views into the bytes it was read from.
struct NatsFrame {
  std::string_view bytes;  // all of it, line ends included
  std::string_view verb;   // "PUB", "HMSG", "PING", ...
  std::string_view subject;
  std::string_view reply;
  std::string_view payload;  // headers are no part of it

  // A message of a stream on its way to a client: what it is acknowledged by is its reply subject.
  bool is_delivery() const;
  // A client's +ACK of one.
  bool is_ack() const;
};

class NatsFrames {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The first that is complete; good until the next call of another member.
  std::optional<NatsFrame> first() const;
  void drop_first();

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // of the first frame
};

}  // namespace holdfast
