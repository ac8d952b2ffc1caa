#include "forwarder/file_target.h"

#include <optional>
#include <set>
#include <vector>

#include "forwarder/disk_failure.h"
#include "spool/path.h"

namespace holdfast {
namespace {

// From so many files on, one sync of the whole file system is cheaper than one of each.
constexpr std::size_t kWorthSyncingWhole = 16;
// How much longer than ours the file of the same record may be: another arrival's headers.
constexpr std::size_t kMostOtherHeaders = 64u << 20;

// One window on its way into the directory.
class Round {
 public:
  Round(FileSystem& fs, const FileTargetOptions& options, std::span<const Delivery> window, const Report& report,
        std::atomic<bool>& interrupted)
      : fs_(fs), options_(options), window_(window), report_(report), interrupted_(interrupted) {}

  // Temporary files of a round that did not come to its end are removed, as far as that goes.
  Result<void> run() {
    const Result<void> carried = carry();
    for (const Written& written : written_) {
      if (!written.named) (void)fs_.remove(written.temporary);
    }
    return carried;
  }

 private:
  struct Written {
    std::size_t place = 0;
    std::string temporary;
    bool replaces = false;  // the same record, which is there already
    bool named = false;     // under its final name
  };
  enum class There : std::uint8_t { nothing, same_record, something_else };

  Result<void> carry() {
    HOLDFAST_TRY(write_all());
    HOLDFAST_TRY(sync_whole());
    HOLDFAST_TRY(name_all());
    HOLDFAST_TRY(sync_names());
    for (const Written& written : written_) {
      if (!written.named) continue;
      report_(written.place, accepted(written.replaces ? OutcomeKind::duplicate : OutcomeKind::delivered));
    }
    return {};
  }

  std::string directory_of(std::size_t place) const {
    return record_directory(options_.layout, window_[place].record->envelope);
  }
  std::string name_of(std::size_t place) const { return record_path(window_[place], options_); }

  Result<void> write_all();
  Result<void> write_one(std::size_t place);
  Result<bool> make_way(const std::string& directory);
  Result<There> look(const std::string& name, const FileContent& content, Bytes& existing);
  Result<void> write_temporary(const std::string& name, ByteView bytes);
  Result<void> sync_whole();
  Result<void> name_all();
  Result<void> sync_names();

  FileSystem& fs_;
  const FileTargetOptions& options_;
  const std::span<const Delivery> window_;
  const Report& report_;
  std::atomic<bool>& interrupted_;
  bool syncs_whole_ = false;
  std::set<std::string> there_;  // directories that are
  std::set<std::string> named_;  // those that hold a new name, or hold one that does
  std::vector<Written> written_;
};

// When there is no room for one there may be for none: the rest of the window does not ask.
Result<void> Round::write_all() {
  if (window_.size() >= kWorthSyncingWhole) {
    const auto space = fs_.space();
    syncs_whole_ = space.ok() && space->syncs_whole;
  }
  for (std::size_t place = 0; place < window_.size(); ++place) {
    if (interrupted_.exchange(false)) return Error{ErrorKind::unavailable, "interrupted"};
    const Result<void> written = write_one(place);
    if (written.ok()) continue;
    const std::optional<Outcome> rest = outcome_of_disk(written.error());
    if (!rest) return disk_failed("write to", written.error());
    for (std::size_t left = place; left < window_.size(); ++left) report_(left, *rest);
    return {};
  }
  return {};
}

Result<void> Round::write_one(std::size_t place) {
  const Result<bool> way = make_way(directory_of(place));
  if (!way.ok()) return way.error();
  if (!*way) {
    report_(place, hold_lane("directory_taken"));
    return {};
  }
  const FileContent content(*window_[place].record, window_[place].wire_key, options_.format);
  Bytes existing;
  const Result<There> there = look(name_of(place), content, existing);
  if (!there.ok()) return there.error();
  if (*there == There::something_else) {
    report_(place, rejected(Reason::exists_otherwise));
    return {};
  }
  const bool replaces = *there == There::same_record;
  const std::string temporary = temporary_file_name(options_.writer, place);
  const Result<void> written =
      write_temporary(temporary, replaces ? existing : compress(content.bytes(), options_.compression));
  if (written.ok()) {
    written_.push_back({place, temporary, replaces, false});
  } else {
    (void)fs_.remove(temporary);
  }
  return written;
}

// False: something else than a directory is in the way.
Result<bool> Round::make_way(const std::string& directory) {
  if (directory.empty() || there_.contains(directory)) return true;
  const auto above = make_way(parent_path(directory));
  if (!above.ok() || !*above) return above;
  const Result<void> made = fs_.make_directory(directory);
  if (!made.ok() && made.error().kind != ErrorKind::exists) return made.error();
  if (!made.ok()) {
    const auto info = fs_.inspect(directory);
    if (!info.ok()) return info.error();
    if (info->type != NameType::directory) return false;
  }
  there_.insert(directory);
  return true;
}

Result<Round::There> Round::look(const std::string& name, const FileContent& content, Bytes& existing) {
  const auto info = fs_.inspect(name);
  if (!info.ok() && info.error().kind == ErrorKind::not_found) return There::nothing;
  if (!info.ok()) return info.error();
  const std::size_t limit = content.bytes().size() + kMostOtherHeaders;
  if (info->type != NameType::file || info->size > limit) return There::something_else;
  auto bytes = read_file(fs_, name, limit);
  if (!bytes.ok() && bytes.error().kind == ErrorKind::invalid) return There::something_else;  // it may not be read
  if (!bytes.ok()) return bytes.error();
  existing = *std::move(bytes);
  const auto opened = decompress(existing, options_.compression, limit);
  return opened && content.is_same_record(*opened) ? There::same_record : There::something_else;
}

Result<void> Round::write_temporary(const std::string& name, ByteView bytes) {
  auto file = fs_.open(name, OpenMode::create_new);
  if (!file.ok() && file.error().kind == ErrorKind::exists) {
    HOLDFAST_TRY(fs_.remove(name));
    file = fs_.open(name, OpenMode::create_new);
  }
  if (!file.ok()) return file.error();
  const Result<void> written = (*file)->write_at(0, bytes);
  if (!written.ok() && written.error().kind == ErrorKind::io) {
    // A disk that is full in the middle of a file calls it by another name.
    const auto space = fs_.space();
    if (space.ok() && space->free_bytes < bytes.size()) return Error{ErrorKind::full, written.error().text};
  }
  HOLDFAST_TRY(written);
  if (syncs_whole_) return {};
  const Result<void> synced = (*file)->sync();
  return synced.ok() ? synced : Result<void>(Error{ErrorKind::io, synced.error().text});
}

Result<void> Round::sync_whole() {
  if (!syncs_whole_ || written_.empty()) return {};
  const Result<void> synced = fs_.sync_all();
  return synced.ok() ? synced : disk_failed("sync", synced.error());
}

Result<void> Round::name_all() {
  for (Written& written : written_) {
    const Rename how = written.replaces ? Rename::replace : Rename::no_replace;
    const Result<void> renamed = fs_.rename(written.temporary, name_of(written.place), how);
    written.named = renamed.ok();
    if (renamed.ok()) {
      std::string directory = directory_of(written.place);
      while (named_.insert(directory).second && !directory.empty()) directory = parent_path(directory);
      continue;
    }
    // Somebody was there first: the next time shows who.
    if (renamed.error().kind == ErrorKind::exists) {
      report_(written.place, retry("name_taken"));
      continue;
    }
    const std::optional<Outcome> said = outcome_of_disk(renamed.error());
    if (!said) return disk_failed("name a file in", renamed.error());
    report_(written.place, *said);
  }
  return {};
}

// A directory that was there already may be one whose own name an earlier life did not sync.
Result<void> Round::sync_names() {
  if (syncs_whole_ && named_.size() >= kWorthSyncingWhole) {
    const Result<void> synced = fs_.sync_all();
    return synced.ok() ? synced : disk_failed("sync", synced.error());
  }
  for (const std::string& directory : named_) {
    if (auto synced = fs_.sync_directory(directory); !synced.ok()) return disk_failed("sync", synced.error());
  }
  return {};
}

// Best effort: what is left behind is in nobody's way, and is written over.
void sweep(FileSystem& fs, const std::string& writer) {
  std::vector<std::string> leftovers;
  (void)fs.list("", [&](std::string_view name, NameType type) {
    if (type == NameType::file && is_temporary_file_of(writer, name)) leftovers.emplace_back(name);
    return true;
  });
  for (const std::string& name : leftovers) (void)fs.remove(name);
}

}  // namespace

std::string record_path(const Delivery& delivery, const FileTargetOptions& options) {
  const std::string suffix = std::string(file_suffix(options.format)) + compression_suffix(options.compression);
  const std::string directory = record_directory(options.layout, delivery.record->envelope);
  return (directory.empty() ? "" : directory + '/') + record_file_name(delivery.wire_key, suffix);
}

Result<void> FileTarget::deliver(std::span<const Delivery> window, const Report& report) {
  auto directory = open_();
  if (!directory.ok()) {
    const std::optional<Outcome> all = outcome_of_disk(directory.error());
    if (!all) return disk_failed("open", directory.error());
    for (std::size_t place = 0; place < window.size(); ++place) report(place, *all);
    return {};
  }
  if (!std::exchange(swept_, true)) sweep(**directory, options_.writer);
  return Round(**directory, options_, window, report, interrupted_).run();
}

}  // namespace holdfast
