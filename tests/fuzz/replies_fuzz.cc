// Any bytes as what a NATS server says: the reply subject of a message, the acknowledgement of a publish, the answers
// of the API.
#include "forwarder/nats_messages.h"
#include "forwarder/nats_url.h"
#include "spool/check.h"
#include "tests/fuzz/fuzz_case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const std::string_view text = as_text(ByteView(data, size));
  if (const auto ack = parse_ack_subject(text)) CHECK(!ack->stream.empty() && !ack->consumer.empty());
  const auto published = parse_pub_ack(text);
  if (const auto* ack = std::get_if<PubAck>(&published)) CHECK(ack->sequence > 0);
  (void)parse_stream_info(text);
  (void)parse_consumer_info(text);
  (void)parse_stored_message(text);
  (void)parse_stored_content(text);
  (void)parse_api_error(text);
  if (const auto time = parse_time(text)) CHECK(parse_time(format_time(*time)) == time);
  if (const auto endpoints = parse_nats_url(text)) {
    for (const auto& endpoint : *endpoints) CHECK(!endpoint.host.empty() && endpoint.port != 0);
  }
  return 0;
}
