// What a file target writes for a record: a contract with whoever reads its directory. Pure.
//
// - raw: the payload, byte for byte. Subject and headers are not in it, and of a payload that was left out nothing is.
// - json: one line and a newline, keys in this order:
//     {"key":..,"subject":..,"payload":<base64>,"headers":[{"name":..,"value":..}],
//      "stream":..,"sequence":..,"timestamp_ns":..}
//   and, where the payload was left out, ,"payload_omitted":true,"original_size":.. before the brace. Text that is not
//   UTF-8 is in base64, under its key with "_base64" behind it. Numbers are 64-bit integers.
//
// The same record gives the same bytes for ever. Two arrivals under one key are the same record when subject and
// payload are the same (json), or the payload is (raw): the first stays, whatever its headers were.
#pragma once

#include "spool/spool.h"

namespace holdfast {

enum class FileFormat : std::uint8_t { raw, json };

const char* file_suffix(FileFormat format);

class FileContent {
 public:
  FileContent(const DueRecord& record, std::string_view wire_key, FileFormat format);

  const Bytes& bytes() const { return bytes_; }
  // A file with these bytes is this record's.
  bool is_same_record(ByteView existing) const;

 private:
  Bytes bytes_;
  std::size_t telling_ = 0;  // the first bytes, which say what record it is
  bool exactly_ = true;      // nothing may follow but what is in bytes_
};

}  // namespace holdfast
