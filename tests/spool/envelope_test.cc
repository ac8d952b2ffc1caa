// The body of a record: what was put in comes out, and nothing else is taken for a body.
#include "spool/envelope.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/document.h"
#include "tests/support/mutation.h"
#include "tests/support/simulated_loss.h"

namespace holdfast {
namespace {

Envelope small_envelope() {
  Envelope envelope;
  envelope.source = "local";
  envelope.subject = "telemetry.temp";
  envelope.headers = {{"Nats-Msg-Id", "a1"}, {"Unit", ""}};
  envelope.payload = {0x00, 0xff, 0x7b};
  envelope.origin = {"TELEMETRY", 42, 1700000000123456789};
  return envelope;
}

Bytes encoded(const std::string& key, const Envelope& envelope) {
  Bytes out;
  encode_body(key, envelope, out);
  return out;
}

std::string random_text(Dice& dice, std::uint64_t longest) {
  std::string text(dice.below(longest + 1), '\0');
  for (char& c : text) c = static_cast<char>(dice.roll());
  return text;
}

Envelope random_envelope(Dice& dice) {
  Envelope envelope;
  envelope.source = random_text(dice, 10);
  envelope.subject = random_text(dice, 40);
  for (std::uint64_t n = dice.below(6); n > 0; --n) {
    envelope.headers.push_back({random_text(dice, 12), random_text(dice, 30)});
  }
  const std::string payload = random_text(dice, 300);
  envelope.payload.assign(payload.begin(), payload.end());
  envelope.origin = {random_text(dice, 12), dice.roll(), static_cast<std::int64_t>(dice.roll())};
  envelope.payload_omitted = envelope.payload.empty();
  envelope.original_size = dice.roll();
  return envelope;
}

// Where the fields of small_envelope() under the key "k" begin.
constexpr std::size_t kFlagsAt = 1;
constexpr std::size_t kHeaderCountAt = 2 + (4 + 1) + (4 + 5) + (4 + 14) + (4 + 9) + 8 + 8 + 8;

TEST(RecordBody, IsLaidOutAsTheDocumentSays) {
  EXPECT_EQ(to_hex(encoded("seq:truck-07:TELEMETRY:42:1700000000123456789", small_envelope())),
            document_block("spool/FORMAT.md", "record-body"));
}

TEST(RecordBody, ComesBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Dice dice(seed);
    const RecordBody body{random_text(dice, 60), random_envelope(dice)};
    const Bytes bytes = encoded(body.key, body.envelope);
    ASSERT_EQ(bytes.size(), encoded_size(body.key, body.envelope)) << "seed " << seed;
    ASSERT_EQ(decode_body(bytes), body) << "seed " << seed;
  }
}

TEST(RecordBody, ExtremesComeBack) {
  Envelope envelope;
  EXPECT_EQ(decode_body(encoded("", envelope)), (RecordBody{"", envelope}));
  envelope.origin.sequence = std::numeric_limits<std::uint64_t>::max();
  envelope.original_size = std::numeric_limits<std::uint64_t>::max();
  for (const auto time :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}}) {
    envelope.origin.timestamp_ns = time;
    EXPECT_EQ(decode_body(encoded("k", envelope)), (RecordBody{"k", envelope}));
  }
}

TEST(RecordBody, IsAppended_AndManyInOneBufferDoNotCopyItEachTime) {
  Bytes out{1, 2, 3};
  std::size_t moves = 0;
  std::size_t capacity = out.capacity();
  const std::size_t size = encoded_size("k", small_envelope());
  for (std::size_t n = 0; n < 10'000; ++n) {
    encode_body("k", small_envelope(), out);
    moves += out.capacity() != capacity;
    capacity = out.capacity();
  }
  EXPECT_LT(moves, 30U);
  ASSERT_EQ(out.size(), 3 + 10'000 * size);
  EXPECT_EQ(Bytes(out.begin(), out.begin() + 3), (Bytes{1, 2, 3}));
  EXPECT_EQ(decode_body(ByteView(out).last(size)), (RecordBody{"k", small_envelope()}));
}

TEST(RecordBody, CutAnywhere_IsNone) {
  const Bytes bytes = encoded("k", small_envelope());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_body(ByteView(bytes).first(size)), std::nullopt) << size;
  }
}

TEST(RecordBody, WithAByteTooMany_IsNone) {
  Bytes bytes = encoded("k", small_envelope());
  bytes.push_back(0);
  EXPECT_EQ(decode_body(bytes), std::nullopt);
}

TEST(RecordBody, OfAnotherVersion_IsNone) {
  Bytes bytes = encoded("k", small_envelope());
  for (unsigned version = 0; version < 256; ++version) {
    bytes[0] = static_cast<std::uint8_t>(version);
    EXPECT_EQ(decode_body(bytes).has_value(), version == 1) << version;
  }
}

TEST(RecordBody, WithFlagsThatNobodyKnows_IsNone) {
  Envelope envelope = small_envelope();
  envelope.payload.clear();
  Bytes bytes = encoded("k", envelope);
  for (unsigned flags = 0; flags < 256; ++flags) {
    bytes[kFlagsAt] = static_cast<std::uint8_t>(flags);
    EXPECT_EQ(decode_body(bytes).has_value(), flags <= 1) << flags;
  }
}

TEST(RecordBody, ThatSaysItsPayloadIsOmitted_AndHasOne_IsNone) {
  Bytes bytes = encoded("k", small_envelope());
  bytes[kFlagsAt] = 1;
  EXPECT_EQ(decode_body(bytes), std::nullopt);
}

TEST(RecordBody, WhoseHeaderCountLies_IsNone_AndReservesNothing) {
  Bytes bytes = encoded("k", small_envelope());
  ASSERT_EQ(bytes[kHeaderCountAt], 2);
  for (const unsigned count : {0U, 1U, 3U, 255U}) {
    bytes[kHeaderCountAt] = static_cast<std::uint8_t>(count);
    EXPECT_EQ(decode_body(bytes), std::nullopt) << count;
  }
  for (std::size_t i = 0; i < 4; ++i) bytes[kHeaderCountAt + i] = 0xff;
  EXPECT_EQ(decode_body(bytes), std::nullopt);
}

// Bytes mutated at random: no crash, no reading past the end, and whatever is taken is exactly what would be written.
TEST(RecordBody, Mutated_IsNoneOrCanonical) {
  Dice dice(0x626f6479);
  std::size_t taken = 0;
  for (int round = 0; round < 100'000; ++round) {
    Bytes bytes = encoded(random_text(dice, 20), random_envelope(dice));
    for (std::uint64_t n = 1 + dice.below(4); n > 0; --n) mutate(bytes, dice);
    // A copy of exactly that size, so that a sanitizer sees a step past its end.
    const Bytes exact(bytes.begin(), bytes.end());
    const auto body = decode_body(exact);
    if (!body) continue;
    ++taken;
    ASSERT_EQ(encoded(body->key, body->envelope), exact) << "round " << round;
  }
  EXPECT_GT(taken, 1'000U);  // else this tests nothing but the first byte
}

TEST(RecordBodyDeathTest, APayloadThatIsSaidToBeOmitted_IsABug) {
  Envelope envelope = small_envelope();
  envelope.payload_omitted = true;
  EXPECT_DEATH(encoded("k", envelope), "must be true");
}

TEST(FindHeader, ComparesNamesWithoutCase_AndTakesTheFirst) {
  Envelope envelope;
  envelope.headers = {{"Nats-Msg-Idx", "no"}, {"nats-msg-ID", "first"}, {"Nats-Msg-Id", "second"}, {"Empty", ""}};
  EXPECT_EQ(find_header(envelope, "Nats-Msg-Id"), "first");
  EXPECT_EQ(find_header(envelope, "EMPTY"), "");
  EXPECT_EQ(find_header(envelope, "Nats-Msg-I"), std::nullopt);
  EXPECT_EQ(find_header(envelope, ""), std::nullopt);
}

TEST(FindHeader, KnowsNoCaseOutsideAscii) {
  Envelope envelope;
  envelope.headers = {{"\xc3\x84", "A umlaut"}, {"a[", "bracket"}};
  EXPECT_EQ(find_header(envelope, "\xc3\xa4"), std::nullopt);
  EXPECT_EQ(find_header(envelope, "a{"), std::nullopt);
}

Envelope with_size(std::string_view size, Bytes payload) {
  Envelope envelope;
  envelope.headers = {{"nats-msg-size", std::string(size)}};
  envelope.payload = std::move(payload);
  note_omitted_payload(envelope);
  return envelope;
}

TEST(OmittedPayload, IsNoted_WhereTheHeaderIsANumberAndTheBodyEmpty) {
  for (const auto& [text, size] : {std::pair{"1024", 1024ULL},
                                   {"0", 0ULL},
                                   {"007", 7ULL},
                                   {" 12\t", 12ULL},
                                   {"18446744073709551615", 18446744073709551615ULL}}) {
    const Envelope envelope = with_size(text, {});
    EXPECT_TRUE(envelope.payload_omitted) << text;
    EXPECT_EQ(envelope.original_size, size) << text;
  }
}

TEST(OmittedPayload, IsNotNoted_WhereTheHeaderIsNoNumber) {
  for (const auto text : {"", " ", "-1", "+1", "1.0", "1e3", "0x10", "12 3", "ten", "18446744073709551616"}) {
    const Envelope envelope = with_size(text, {});
    EXPECT_FALSE(envelope.payload_omitted) << text;
    EXPECT_EQ(envelope.original_size, 0U) << text;
  }
}

TEST(OmittedPayload, IsNotNoted_WhereThereIsABodyOrNoHeader) {
  EXPECT_FALSE(with_size("3", {1, 2, 3}).payload_omitted);
  Envelope plain;
  note_omitted_payload(plain);
  EXPECT_EQ(plain, Envelope{});
}

}  // namespace
}  // namespace holdfast
