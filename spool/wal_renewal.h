// A WAL that an earlier life left may be good in the page cache and not on the medium (a failed sync calls its pages
// clean). Before it is believed it is copied to a new file, synced, and the copy put in its place: writing it again
// where it is could tear what is there.
#pragma once

#include <string>

#include "spool/file_system.h"

namespace holdfast {

// `database` is the path of the database; its WAL is `<database>-wal`, the copy `<database>-wal-copy` until it has its
// name. A power cut at any point leaves the old WAL or the new one.
Result<void> renew_wal(FileSystem& fs, const std::string& database);

}  // namespace holdfast
