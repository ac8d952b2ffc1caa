// One record as one line of an archive: a contract with whoever reads it. Pure.
//
// The object of file_content.h's json, and behind its last key three more:
//     ,"spool_sequence":<n>,"window_at":<offset>,"crc32c":"<8 hex digits>"}
// spool_sequence is the record's place in the spool that sent it. window_at is where in the file the lines begin that
// were synced together with this one: a line with a window_at above some byte proves that the byte was on the medium
// when the line was written. crc32c (RFC 3720) is over all of the line before ,"crc32c": a line that has it right is
// whole.
//
// A record is known again by two digests, each the first 16 bytes of a SHA-256 of a piece of the line as it stands: its
// key, and its key with subject and payload.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string_view>

#include "spool/spool.h"

namespace holdfast {

using ArchiveDigest = std::array<std::uint8_t, 16>;

struct ArchiveMark {
  ArchiveDigest key{};
  ArchiveDigest content{};
  std::uint64_t spool_sequence = 0;
  auto operator<=>(const ArchiveMark&) const = default;
};

struct ArchiveLine {
  Bytes bytes;  // with its newline
  ArchiveMark mark;
};
ArchiveLine make_archive_line(const DueRecord& record, std::string_view wire_key, std::uint64_t window_at);

struct ReadLine {
  ArchiveMark mark;
  std::uint64_t window_at = 0;
};
// Of a line without its newline. Nothing: it is not whole, or not ours.
std::optional<ReadLine> read_archive_line(std::string_view line);

}  // namespace holdfast
