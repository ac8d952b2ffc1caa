// A segment of an archive: lines (archive_line.h), appended a window at a time, each window synced before the next is
// written. This is what an earlier life has left of one, and what of it may be believed.
//
// Nothing that an earlier life wrote is known to be on the medium, and after a failed sync the page cache shows what
// the medium never got. So a segment is synced first and then read past the page cache; where the file system refuses
// that (read_direct), every byte is written again where it stands, and synced, before it is believed.
//
// Damage is a piece that is no whole line. A line further on that was written after a sync had covered the damaged
// place (its window_at is above it) proves rot: the piece stays as it is, for no line that was synced is ever touched.
// Other damage is what a power cut has made of the last window, which nobody was told of: the segment ends before it.
// Should whole lines stand behind such damage, they are copied to <segment>.torn-<offset> before they are cut off, so
// that not even rot in the last window takes anything away for good.
//
// Errors: as FileSystem's; `unavailable`, "interrupted". Threads: one, but `interrupted` may be set by any.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "forwarder/archive_line.h"
#include "spool/file_system.h"

namespace holdfast {

// "<writer>-<20 digits>.ndjson", the writer escaped as in file_name.h; beside it the keys of a closed one.
inline constexpr std::string_view kSegmentSuffix = ".ndjson";
inline constexpr std::string_view kKeysSuffix = ".keys";
std::string archive_file_name(std::string_view writer, std::uint64_t number, std::string_view suffix);
std::optional<std::uint64_t> archive_file_number(std::string_view writer, std::string_view name,
                                                 std::string_view suffix);

struct SegmentContent {
  std::vector<ArchiveMark> marks;  // of the whole lines, in their order
  std::uint64_t size = 0;          // of the file, afterwards
};

// The whole lines as they are there to be read, and nothing touched: for who only looks.
Result<std::vector<ArchiveMark>> read_segment(FileSystem& fs, const std::string& path);

// `open`: it will be written to, so what is torn is cut off. Of a closed one whatever is whole counts.
Result<SegmentContent> recover_segment(FileSystem& fs, const std::string& path, bool open,
                                       std::atomic<bool>& interrupted);

}  // namespace holdfast
