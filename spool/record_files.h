// Records in files: records/<xx>/<id>.rec, and what was set aside: quarantine/<id>-<sequence>.rec (FORMAT.md, "Files").
//
// Names are made here and nowhere else. Names that are not ours are counted, never followed, never removed. Nothing
// here syncs but sync_lot and the calls that say so: the caller knows when what must be durable. Threads: any; two
// calls about one record: one at a time.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "crypto/frame.h"
#include "spool/file_system.h"
#include "spool/index.h"

namespace holdfast {

std::string record_directory(const RecordId& id);
std::string record_path(const RecordId& id);
std::string quarantine_path(const RecordId& id, Sequence sequence);
// The id that a file name in records/<xx>/ names; nothing when the name is not ours.
std::optional<RecordId> id_of_record_name(std::string_view directory, std::string_view name);
struct QuarantineName {
  RecordId id;
  Sequence sequence = 0;
};
std::optional<QuarantineName> parse_quarantine_name(std::string_view name);

// Directories that got or lost a name since they were synced last.
using DirtyDirectories = std::set<std::string>;

class RecordFiles {
 public:
  RecordFiles(FileSystem& fs, const Namer& namer) : fs_(fs), namer_(namer) {}

  // Makes records/ and quarantine/ and syncs their names.
  Result<void> prepare();

  // Writes a frame straight under its final name. A file of the same sequence is our own unfinished try and is written
  // again. `exists`: the record of another sequence lies there; it stays. What is no frame is written over. `full`:
  // nothing of it is left behind. The file is synced when `sync_each`; the directory is only noted in `dirty`.
  Result<void> write(const RecordId& id, Sequence sequence, ByteView frame, bool sync_each, DirtyDirectories& dirty);
  // The header of the file of that id; `not_found`, or `corrupt` for whatever is no frame with that id.
  Result<FrameHeader> peek(const RecordId& id);
  // The whole frame. `corrupt` when the file is not exactly one frame with that id.
  Result<void> read(const RecordId& id, Bytes& frame);
  // Removes the file only if its header has that sequence, or is blank: what a cut left of a try, and nobody's record.
  // True: removed, or not there; its directory is to be synced, either way. Threads: any.
  Result<bool> remove(const RecordId& id, Sequence sequence);

  // The frame and the note behind it, if there is one.
  Result<Bytes> read_quarantined(const RecordId& id, Sequence sequence);
  // Writes and syncs file and directory before it returns. What lies there is an earlier try of the same, and is
  // written again.
  Result<void> write_quarantined(const RecordId& id, Sequence sequence, ByteView frame, ByteView note);
  // Bytes without a readable header: damaged-<n>.bin with the next free n, synced; nothing when they are kept already.
  // Returns the name.
  Result<std::string> write_damaged(ByteView bytes);
  Result<void> remove_quarantined(const RecordId& id, Sequence sequence);

  // Makes everything written and every name changed since durable: with `whole`, one sync_all; else the directories in
  // `dirty` (the files were synced by write). Empties `dirty`.
  Result<void> sync_lot(bool whole, DirtyDirectories& dirty);

  // Calls `visit` for each of our names in one of the 256 directories; counts the others.
  Result<void> list_directory(unsigned first_byte, const std::function<void(const RecordId&)>& visit,
                              std::uint64_t& ignored);
  // Names in records/ that are none of the 256 directories.
  Result<std::uint64_t> count_strangers();
  // Likewise of quarantine/; a damaged-<n>.bin is ours, and no record.
  Result<void> list_quarantine(const std::function<void(const QuarantineName&)>& visit, std::uint64_t& ignored);

 private:
  Result<void> rewrite_own(const RecordId& id, Sequence sequence, ByteView frame, bool sync_each);
  Result<bool> is_blank(const RecordId& id);
  Result<std::string> next_damaged_name();
  Result<std::string> find_damaged(ByteView bytes);

  FileSystem& fs_;
  const Namer& namer_;
  std::uint64_t next_damaged_ = 0;
};

}  // namespace holdfast
