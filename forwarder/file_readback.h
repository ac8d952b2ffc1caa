// What a directory or an archive holds of given records (readback.h), by looking at its files.
//
// Of a directory: the file under the record's name, opened where it is compressed. remove() unlinks it and leaves the
// directories. Of an archive: its lines, all segments read from end to end; they are not taken out again, for no line
// that was synced is touched: remove() of one that is there is `invalid`.
//
// Errors: `unavailable` when something could not be read, without the name of a file. Threads: one.
#pragma once

#include <memory>

#include "forwarder/archive_target.h"
#include "forwarder/file_target.h"
#include "forwarder/readback.h"

namespace holdfast {

std::unique_ptr<Readback> make_file_readback(OpenDirectory open, FileTargetOptions options);
std::unique_ptr<Readback> make_archive_readback(OpenDirectory open, ArchiveOptions options);

}  // namespace holdfast
