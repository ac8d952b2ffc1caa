// Another reader of record files, written from crypto/FORMAT.md with libsodium's primitives and without a line of
// crypto/: if it reads what we say we write, the document is enough to get the records back without us.
#include <gtest/gtest.h>

#include <string>

#include "tests/crypto/primitives.h"
#include "tests/crypto/vectors.h"

namespace {

using primitives::aead_open;
using primitives::Blob;
using primitives::crc;
using primitives::derive;
using primitives::hash;
using primitives::join;
using primitives::little_endian;
using primitives::number_at;
using primitives::part;
using primitives::poly1305_of_hchacha;
using primitives::siphash;

// "Key file"
Blob read_key_file(const std::string& text) {
  EXPECT_EQ(text.substr(0, 15), "holdfast-key-1:");
  EXPECT_EQ(text.size(), 15u + 64 + 1);
  return vectors::unhex(text.substr(15, 64));
}

// "Key slot"; empty when it does not open.
Blob open_slot(const Blob& slot, const Blob& recipient, std::uint8_t holds) {
  EXPECT_EQ(slot.at(0), 1);
  EXPECT_EQ(slot.at(1), holds);
  EXPECT_EQ(part(slot, 6, 8), part(derive(recipient, "holdfast/1 key id"), 0, 8));
  EXPECT_EQ(number_at(slot, 14, 2), 72u);
  EXPECT_EQ(slot.size(), 88u);
  Blob key;
  const bool opened =
      aead_open(derive(recipient, "holdfast/1 wrap"), part(slot, 16, 24), part(slot, 0, 14), part(slot, 40, 48), key);
  return opened ? key : Blob{};
}

TEST(IndependentReader, RecordFile_IsReadFromTheDocumentAlone) {
  ASSERT_GE(sodium_init(), 0);
  const std::vector<vectors::Vector> all = vectors::load("record_files.txt");
  ASSERT_EQ(all.size(), 1u);
  const vectors::Vector& vector = all.front();

  const Blob recipient = read_key_file(vector.text("key_file"));
  const Blob naming_key = open_slot(vector.bytes("naming_slot"), recipient, 1);
  const Blob data_slot = vector.bytes("data_slot");
  const Blob data_key = open_slot(data_slot, recipient, 2);
  ASSERT_EQ(naming_key.size(), 32u);
  ASSERT_EQ(data_key.size(), 32u);

  // "Frame": the header as it stands, its MAC, its CRC.
  const Blob file = vector.bytes("record_file");
  ASSERT_GE(file.size(), 144u + 16);
  EXPECT_EQ(part(file, 0, 4), vectors::blob("HFR1"));
  EXPECT_EQ(file[4], 1);
  EXPECT_EQ(file[5], 1);
  EXPECT_EQ(file.size(), 144u + number_at(file, 8, 4));
  EXPECT_EQ(number_at(file, 12, 4), number_at(data_slot, 2, 4));
  EXPECT_EQ(number_at(file, 16, 8), 0x500000003u);
  const Blob sealed = part(file, 144, file.size() - 144);
  EXPECT_EQ(part(file, 128, 16), siphash(derive(naming_key, "holdfast/1 frame header"), part(file, 0, 128)));
  EXPECT_EQ(number_at(file, 124, 4), crc(sealed));

  // "Digests": the name it goes by, and what its content was.
  const Blob key_string = vector.bytes("key_string"), subject = vector.bytes("subject"),
             payload = vector.bytes("payload");
  const Blob id = part(file, 52, 32);
  EXPECT_EQ(id, hash(derive(naming_key, "holdfast/1 record id"), 32, key_string));
  const Blob tag = poly1305_of_hchacha(derive(naming_key, "holdfast/1 content"), part(id, 0, 16),
                                       join({little_endian(subject.size(), 4), subject, payload}));
  EXPECT_EQ(part(file, 84, 16), siphash(derive(naming_key, "holdfast/1 content mask"), tag));

  Blob body;
  ASSERT_TRUE(aead_open(data_key, part(file, 100, 24), part(file, 0, 124), sealed, body));
  EXPECT_EQ(body, vector.bytes("body"));
}

}  // namespace
