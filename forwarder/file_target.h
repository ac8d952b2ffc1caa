// A directory as a target: one file per record, under a name made of its key (file_name.h says in which directory),
// with its content (file_content.h), compressed or not (compression.h).
//
// A file under a final name is whole and was on the medium before it had that name. A record is reported delivered when
// a sync of the directory has covered its name too, and those of the directories above it, whoever made them. So who
// reads the directory never sees half a record, and a power cut at any point costs a file that nobody was told of,
// nothing else.
//
// A name that is there already: with this record in it, a duplicate, and written anew all the same, for what an earlier
// sync failed to write may look well in memory; with anything else, `rejected` (exists_otherwise), and not touched.
// What is compressed is compared by what is in it. A name that one of our directories should have, and that is no
// directory: hold_lane, `directory_taken`. No room: retry, `disk_full`. A directory that is not there or may not be
// written: hold_target, `directory_missing` or `directory_refused`. Whatever else the disk says is an error, and what
// was not reported is written again.
//
// The directory is opened for each window, so that a medium can be taken out between two. Temporary names begin with a
// dot and the writer's name; this writer's leftovers go with the first window. Two that write to one directory need two
// names.
//
// Threads: as Target.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "forwarder/compression.h"
#include "forwarder/file_content.h"
#include "forwarder/file_name.h"
#include "forwarder/target.h"

namespace holdfast {

struct FileTargetOptions {
  FileFormat format = FileFormat::raw;
  std::string writer = "holdfast";  // site and target, so that it is nobody else's
  FileLayout layout = FileLayout::flat;
  Compression compression = Compression::none;
};

// Opens the directory: open_posix_file_system of its path.
using OpenDirectory = std::function<Result<std::unique_ptr<FileSystem>>()>;

// Where a record's file is, beneath the directory.
std::string record_path(const Delivery& delivery, const FileTargetOptions& options);

class FileTarget : public Target {
 public:
  FileTarget(OpenDirectory open, FileTargetOptions options) : open_(std::move(open)), options_(std::move(options)) {}

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  // Ends the delivery in progress, or the next one if there is none.
  void interrupt() override { interrupted_ = true; }

 private:
  const OpenDirectory open_;
  const FileTargetOptions options_;
  bool swept_ = false;  // of our leftovers, in this life
  std::atomic<bool> interrupted_ = false;
};

}  // namespace holdfast
