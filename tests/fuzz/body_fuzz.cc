// Any bytes as what a sealed frame holds: a record, or a note. A body has one form: what can be read is written back as
// the same bytes.
#include <algorithm>

#include "spool/check.h"
#include "spool/envelope.h"
#include "spool/identity.h"
#include "spool/note.h"
#include "tests/fuzz/fuzz_case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const ByteView bytes(data, size);
  if (const auto body = decode_body(bytes)) {
    Bytes again;
    encode_body(body->key, body->envelope, again);
    CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
    CHECK(encoded_size(body->key, body->envelope) == again.size());
    CHECK(wire_key(body->key).size() <= 200);
    for (const auto strategy : {Strategy::stream_sequence, Strategy::message_id, Strategy::payload_hash})
      (void)identify({.strategy = strategy}, "site", body->envelope);
  }
  if (const auto note = decode_note(bytes)) {
    Bytes again;
    encode_note(*note, again);
    CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  }
  return 0;
}
