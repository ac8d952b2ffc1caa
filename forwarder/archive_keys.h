// The keys of a closed segment, in a file beside it: what tells, years later, that a record is there already, without
// reading the segment and without keeping it in memory.
//
//     "HFKEYS01", u64 records, u64 first and u64 last spool sequence, u32 CRC32C of these; then for each record,
//     sorted, 16 bytes of the digest of its key and 16 of its content's (archive_line.h). Little-endian.
//
// It is written under a temporary name, synced and renamed, so under its own name it is whole; one that is not (its
// length, its header) is made again from its segment. A record is looked for only where its spool sequence lies between
// first and last; there it costs a read or two of 16 KiB, since digests are evenly spread. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "forwarder/archive_line.h"
#include "spool/file_system.h"

namespace holdfast {

struct ArchiveKeys {
  std::uint64_t records = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
};

// The bytes are synced, the name is not; what had that name is removed.
Result<void> write_archive_keys(FileSystem& fs, const std::string& temporary, std::vector<ArchiveMark> marks);

// `corrupt`: not a file of keys.
Result<ArchiveKeys> read_archive_keys(FileSystem& fs, const std::string& path);

// The content's digest under a key; nothing: the key is not among them.
Result<std::optional<ArchiveDigest>> find_archive_key(FileSystem& fs, const std::string& path, const ArchiveKeys& keys,
                                                      const ArchiveDigest& key);

}  // namespace holdfast
