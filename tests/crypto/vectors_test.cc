// The vectors of crypto/vectors/: what they are, and that our reader takes the good ones and refuses each bad one for
// the reason it states.
#include <gtest/gtest.h>

#include <set>

#include "crypto/digest.h"
#include "crypto/frame.h"
#include "crypto/key_slot.h"
#include "tests/crypto/key_vector_maker.h"

namespace holdfast {
namespace {

using vectors::Blob;
using vectors::load;
using vectors::Vector;

const bool kReady = init_crypto();

SecretKey key_of(const Blob& bytes) {
  return SecretKey::copy_of(std::span<const std::uint8_t, SecretKey::kSize>(bytes.data(), SecretKey::kSize));
}

TEST(Vectors, Files_AreWhatTheMakerMakes) {
  ASSERT_TRUE(kReady);
  const std::string comment =
      "Made by tests/crypto/vector_maker.h; what the lines mean: crypto/FORMAT.md, \"Test vectors\".";
  const std::vector<std::pair<std::string, std::vector<Vector>>> files = {
      {"frames.txt", vector_maker::frames()},       {"slots.txt", vector_maker::slots()},
      {"key_files.txt", vector_maker::key_files()}, {"digests.txt", vector_maker::digests()},
      {"crc32c.txt", vector_maker::crcs()},         {"record_files.txt", vector_maker::record_files()}};
  for (const auto& [file, made] : files) {
    const std::string text = vectors::render(comment, made);
    if (std::getenv("HOLDFAST_WRITE_VECTORS") != nullptr)
      std::ofstream(vectors::path_of(file), std::ios::binary) << text;
    EXPECT_TRUE(vectors::read_text(vectors::path_of(file)) == text) << file << " is not what the maker makes";
  }
}

// What a reader of record files makes of the bytes; "" when it takes them.
std::string verdict_on(const Blob& frame, const Namer& namer, const SecretKey& data_key, Bytes& body) {
  const Parsed<FrameHeader> header = read_header(frame, namer);
  if (!header) return reject_text(header.reject());
  const Parsed<ByteView> stored = read_body_alone(*header, frame, namer);
  if (!stored) return reject_text(stored.reject());
  body.assign(stored->begin(), stored->end());
  if (header->data_key_id == 0) return "";
  const Parsed<Bytes> opened = open_frame(*header, frame, data_key, namer);
  if (!opened) return reject_text(opened.reject());
  body = *opened;
  return "";
}

TEST(Vectors, Frames_AreTakenOrRefusedAsStated) {
  std::set<std::string> refusals;
  for (const Vector& vector : load("frames.txt")) {
    Bytes body;
    const Namer namer(key_of(vector.bytes("naming_key")));
    const std::string verdict = verdict_on(vector.bytes("frame"), namer, key_of(vector.bytes("data_key")), body);
    EXPECT_EQ(verdict, vector.word("reject")) << vector.word("what");
    if (verdict.empty()) {
      EXPECT_EQ(body, vector.bytes("body")) << vector.word("what");
    }
    refusals.insert(verdict);
  }
  // One vector at least for every way to be refused.
  for (int reject = 0; reject <= static_cast<int>(Reject::bad_seal); ++reject)
    EXPECT_TRUE(refusals.contains(reject_text(static_cast<Reject>(reject)))) << reject;
}

TEST(Vectors, GoodFrames_SayEveryField) {
  int good = 0;
  for (const Vector& vector : load("frames.txt")) {
    if (vector.has("reject")) continue;
    ++good;
    const Namer namer(key_of(vector.bytes("naming_key")));
    const Parsed<FrameHeader> header = read_header(vector.bytes("frame"), namer);
    ASSERT_TRUE(header) << vector.word("what");
    Bytes fields;
    ByteWriter writer(fields);
    writer.u8(static_cast<std::uint8_t>(header->kind));
    writer.u16(static_cast<std::uint16_t>(header->clock_trusted));
    writer.u32(header->data_key_id);
    writer.u64(header->sequence);
    writer.u64(static_cast<std::uint64_t>(header->accepted_wall_ns));
    writer.u64(header->accepted_mono_ns);
    writer.u32(header->boot);
    writer.u32(header->route);
    writer.u8(header->priority);
    writer.raw(header->id.bytes);
    writer.raw(header->content.bytes);
    writer.raw(header->nonce);
    Bytes stated;
    for (const char* name : {"kind", "flags", "data_key_id", "sequence", "accepted_wall", "accepted_mono", "boot",
                             "route", "priority", "record_id", "content", "nonce"}) {
      const Blob value = vector.bytes(name);
      stated.insert(stated.end(), value.begin(), value.end());
    }
    EXPECT_EQ(to_hex(fields), to_hex(stated)) << vector.word("what");
  }
  EXPECT_EQ(good, 7);
}

// Every stage of refusing a slot is nothing to our reader, so this tells which stage it was.
std::string stage_of(const std::string& reject) {
  if (reject.empty()) return "";
  return reject == "other_recipient" || reject == "bad_wrap" ? "unwrap" : "read";
}

TEST(Vectors, Slots_AreTakenOrRefusedAsStated) {
  std::set<std::string> refusals;
  for (const Vector& vector : load("slots.txt")) {
    refusals.insert(vector.word("reject"));
    const Blob bytes = vector.bytes("slot");
    ByteReader reader(bytes);
    const std::optional<KeySlot> slot = read_slot(reader);
    if (!slot) {
      EXPECT_EQ(stage_of(vector.word("reject")), "read") << vector.word("what");
      continue;
    }
    EXPECT_TRUE(reader.done()) << vector.word("what");
    const std::optional<SecretKey> key = vector.has("recipient")
                                             ? unwrap_with_key(*slot, key_of(vector.bytes("recipient")))
                                             : unwrap_with_private_key(*slot, key_of(vector.bytes("private_key")));
    EXPECT_EQ(key ? "" : "unwrap", stage_of(vector.word("reject"))) << vector.word("what");
    if (key) {
      EXPECT_EQ(to_hex(key->bytes()), vector.word("key")) << vector.word("what");
    }
  }
  EXPECT_EQ(refusals, (std::set<std::string>{"", "short_slot", "unknown_recipient", "unknown_holds", "bad_key_number",
                                             "bad_wrapped_length", "other_recipient", "bad_wrap"}));
}

TEST(Vectors, KeyFiles_AreTakenOrRefusedAsStated) {
  const std::vector<Vector> all = load("key_files.txt");
  ASSERT_FALSE(all.empty());
  for (const Vector& vector : all) {
    const std::optional<SecretKey> key = parse_key_file(vector.text("text"));
    EXPECT_EQ(key.has_value(), !vector.has("reject")) << vector.word("what");
    if (!key) continue;
    EXPECT_EQ(to_hex(key->bytes()), vector.word("key"));
    EXPECT_EQ(key->id(), vector.word("key_id"));
  }
}

std::string digest_of(const Vector& vector, const Namer& namer) {
  const std::string digest = vector.word("digest");
  if (digest == "record_id") return to_hex(namer.record_id(vector.text("key_string")).bytes);
  if (digest == "content") {
    RecordId id;
    const Blob bytes = vector.bytes("record_id");
    std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
    return to_hex(namer.content_digest(id, vector.text("subject"), vector.bytes("payload")).bytes);
  }
  if (digest == "stream_tag") {
    Bytes tag;
    ByteWriter(tag).u64(namer.stream_tag(vector.text("stream")));
    return to_hex(tag);
  }
  const Blob bytes = vector.bytes("bytes");
  if (digest == "frame header") return to_hex(namer.header_mac(bytes).bytes);
  if (digest == "done body") return to_hex(namer.body_mac(bytes).bytes);
  if (digest == "batch header") return to_hex(namer.batch_mac(bytes).bytes);
  if (digest == "manifest") return to_hex(namer.manifest_mac(bytes).bytes);
  return "no digest of that name";
}

TEST(Vectors, Digests_HaveTheirValues) {
  std::set<std::string> values;
  const std::vector<Vector> all = load("digests.txt");
  for (const Vector& vector : all) {
    const Namer namer(key_of(vector.bytes("naming_key")));
    EXPECT_EQ(digest_of(vector, namer), vector.word("value")) << vector.word("digest");
    values.insert(vector.word("value"));
  }
  EXPECT_EQ(values.size(), 11u);
  EXPECT_EQ(values.size(), all.size()) << "two digests with one value";
}

TEST(Vectors, Crcs_HaveTheirValues) {
  const std::vector<Vector> all = load("crc32c.txt");
  ASSERT_FALSE(all.empty());
  for (const Vector& vector : all) {
    Bytes value;
    ByteWriter(value).u32(crc32c(vector.bytes("bytes")));
    EXPECT_EQ(to_hex(value), vector.word("crc32c")) << vector.word("what");
  }
}

}  // namespace
}  // namespace holdfast
