// Record files that are made durable together: written one by one, synced once, their names with them (R17).
// Threads: one at a time.
#pragma once

#include "spool/record_files.h"

namespace holdfast {

class FileLot {
 public:
  // `whole`: one sync of the file system stands for that of each file and directory (R21).
  FileLot(RecordFiles& files, bool whole) : files_(files), whole_(whole) {}

  // As RecordFiles::write; durable after sync().
  Result<void> write(const RecordId& id, Sequence sequence, ByteView frame) {
    return files_.write(id, sequence, frame, !whole_, dirty_);
  }
  // The bytes are on the medium at once; the name after sync().
  Result<void> write_synced(const RecordId& id, Sequence sequence, ByteView frame) {
    return files_.write(id, sequence, frame, true, dirty_);
  }
  // As RecordFiles::remove; on the medium after sync().
  Result<bool> remove(const RecordId& id, Sequence sequence) {
    auto removed = files_.remove(id, sequence);
    if (removed && *removed) name_went(id);
    return removed;
  }
  // It was removed past this lot.
  void name_went(const RecordId& id) { dirty_.insert(record_directory(id)); }

  // After an error the lot is what it was: what is not known to be on the medium is synced by the next (R55).
  Result<void> sync() { return files_.sync_lot(whole_, dirty_); }

 private:
  RecordFiles& files_;
  const bool whole_;
  DirtyDirectories dirty_;
};

}  // namespace holdfast
