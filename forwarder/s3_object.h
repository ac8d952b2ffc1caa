// What an S3 target makes of a record: a contract with whoever reads the bucket (docs/targets.md, "s3"). Pure.
//
// The object's bytes are those that file_content.h has for the format. Its metadata, all of it the same on every
// attempt (x-amz-meta-holdfast-):
//
//     key             the wire key
//     digest          SHA-256 of the record's payload, in hexadecimal
//     subject         site            stream          sequence        timestamp (the stream's, nanoseconds since 1970)
//     spool-sequence  accepted-at     clock (trusted, untrusted)
//     payload-omitted the payload's size, where it was left out
//
// Bytes of a value outside 0x21 to 0x7E, and '%', are %XX; a value that would be longer than 256 bytes is "h:" and the
// SHA-256 of it in hexadecimal: S3 has room for 2 KiB in all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forwarder/file_content.h"
#include "forwarder/http_client.h"
#include "forwarder/target.h"

namespace holdfast {

inline constexpr std::string_view kS3Metadata = "x-amz-meta-holdfast-";

struct S3Object {
  std::string key;
  Bytes content;
  std::string sha256;  // of the content, in hexadecimal
  std::string crc32c;  // of the content, in base64 as x-amz-checksum-crc32c has it
  std::vector<Header> metadata;
};

struct S3Naming {
  std::string prefix;
  std::string suffix;
  FileFormat format = FileFormat::raw;
  std::string site;
};

S3Object s3_object(const Delivery& delivery, const S3Naming& naming);

enum class S3Likeness : std::uint8_t {
  same_try,      // this very record put it there
  same_content,  // another one with the same subject and payload did
  other,
  unsaid,  // it has no metadata of ours, and the size of this object: its bytes would tell
};
// What the store has under the object's key, by the headers with which it answered (HEAD or GET).
S3Likeness s3_likeness(const S3Object& object, const HttpResponse& found);

}  // namespace holdfast
