#include "forwarder/archive_target.h"

#include <algorithm>
#include <vector>

#include "forwarder/archive_segment.h"
#include "forwarder/disk_failure.h"
#include "forwarder/file_name.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostRecords = 65'536;  // of a segment: they are in memory while it is open
constexpr std::size_t kPiece = 1u << 20;      // of one write
constexpr std::size_t kLastBytes = 64;        // a checksum is among them

// The archive as it is found, and the files of it. What fails leaves the state behind, to be recovered.
class Archive {
 public:
  Archive(FileSystem& fs, const ArchiveOptions& options, std::atomic<bool>& interrupted)
      : fs_(fs), options_(options), interrupted_(interrupted) {}

  Result<ArchiveState> recover();
  bool is_as_left(const ArchiveState& state);
  Result<void> close_if_due(ArchiveState& state);
  Result<void> open_segment(ArchiveState& state);

  std::string segment(std::uint64_t number) const { return archive_file_name(options_.writer, number, kSegmentSuffix); }
  std::string keys(std::uint64_t number) const { return archive_file_name(options_.writer, number, kKeysSuffix); }

 private:
  struct Names {
    std::vector<std::uint64_t> segments, keys;  // in order
  };
  Result<Names> names();
  Result<void> recover_one(std::uint64_t number, bool last, ArchiveState& state);
  Result<void> close(std::uint64_t number, std::vector<ArchiveMark> marks, ArchiveState& state);

  FileSystem& fs_;
  const ArchiveOptions& options_;
  std::atomic<bool>& interrupted_;
};

Result<Archive::Names> Archive::names() {
  Names found;
  HOLDFAST_TRY(fs_.list("", [&](std::string_view name, NameType type) {
    if (type != NameType::file) return true;
    if (const auto segment = archive_file_number(options_.writer, name, kSegmentSuffix))
      found.segments.push_back(*segment);
    if (const auto keys = archive_file_number(options_.writer, name, kKeysSuffix)) found.keys.push_back(*keys);
    return true;
  }));
  std::sort(found.segments.begin(), found.segments.end());
  std::sort(found.keys.begin(), found.keys.end());
  return found;
}

// Names that a listing shows may not be on the medium yet: one sync of the directory before they count.
Result<ArchiveState> Archive::recover() {
  auto found = names();
  if (!found.ok()) return found.error();
  HOLDFAST_TRY(fs_.sync_directory(""));
  ArchiveState state;
  for (const std::uint64_t number : found->keys) {
    state.next_number = std::max(state.next_number, number + 1);
    const auto keys_of = read_archive_keys(fs_, keys(number));
    if (keys_of.ok()) state.closed.emplace(number, *keys_of);
    if (!keys_of.ok() && keys_of.error().kind != ErrorKind::corrupt) return keys_of.error();
  }
  for (const std::uint64_t number : found->segments) {
    state.next_number = std::max(state.next_number, number + 1);
    if (state.closed.contains(number)) continue;
    HOLDFAST_TRY(recover_one(number, number + 1 == state.next_number && number == found->segments.back(), state));
  }
  return state;
}

Result<void> Archive::recover_one(std::uint64_t number, bool last, ArchiveState& state) {
  auto content = recover_segment(fs_, segment(number), last, interrupted_);
  if (!content.ok()) return content.error();
  if (!last) return close(number, std::move(content->marks), state);
  ArchiveState::Open open;
  open.number = number;
  open.size = content->size;
  open.begun = options_.clock->monotonic();
  for (const ArchiveMark& mark : content->marks) open.marks.emplace(mark.key, mark);
  const auto file = fs_.open(segment(number), OpenMode::read);
  if (!file.ok()) return file.error();
  open.last.resize(std::min<std::size_t>(kLastBytes, open.size));
  const auto got = (*file)->read_at(open.size - open.last.size(), open.last);
  if (!got.ok()) return got.error();
  state.open = std::move(open);
  return {};
}

bool Archive::is_as_left(const ArchiveState& state) {
  if (!state.open) return true;
  const auto file = fs_.open(segment(state.open->number), OpenMode::read);
  if (!file.ok()) return false;
  const auto size = (*file)->size();
  if (!size.ok() || *size != state.open->size) return false;
  Bytes last(state.open->last.size());
  const auto got = (*file)->read_at(*size - last.size(), last);
  return got.ok() && *got == last.size() && last == state.open->last;
}

Result<void> Archive::close_if_due(ArchiveState& state) {
  if (!state.open) return {};
  const ArchiveState::Open& open = *state.open;
  const bool due = open.size >= options_.rotate_bytes || open.marks.size() >= kMostRecords ||
                   (open.size > 0 && options_.clock->monotonic() - open.begun >= options_.rotate_after);
  if (!due) return {};
  std::vector<ArchiveMark> marks;
  for (const auto& [key, mark] : open.marks) marks.push_back(mark);
  HOLDFAST_TRY(close(open.number, std::move(marks), state));
  state.open.reset();
  return {};
}

// All that is in the segment was synced.
Result<void> Archive::close(std::uint64_t number, std::vector<ArchiveMark> marks, ArchiveState& state) {
  const std::string temporary = temporary_file_name(options_.writer, 0);
  const auto written = write_archive_keys(fs_, temporary, std::move(marks));
  if (!written.ok()) {
    (void)fs_.remove(temporary);
    return written;
  }
  HOLDFAST_TRY(fs_.rename(temporary, keys(number), Rename::replace));
  HOLDFAST_TRY(fs_.sync_directory(""));
  const auto read = read_archive_keys(fs_, keys(number));
  if (!read.ok()) return read.error();
  state.closed.insert_or_assign(number, *read);
  return {};
}

Result<void> Archive::open_segment(ArchiveState& state) {
  const auto file = fs_.open(segment(state.next_number), OpenMode::create_new);
  if (!file.ok()) return file.error();
  HOLDFAST_TRY(fs_.sync_directory(""));
  state.open.emplace();
  state.open->number = state.next_number++;
  state.open->begun = options_.clock->monotonic();
  return {};
}

// One window on its way into the archive.
class Round {
 public:
  Round(FileSystem& fs, Archive& archive, ArchiveState& state, std::span<const Delivery> window, const Report& report,
        std::atomic<bool>& interrupted)
      : fs_(fs), archive_(archive), state_(state), window_(window), report_(report), interrupted_(interrupted) {}

  Result<void> run() {
    HOLDFAST_TRY(sort_out());
    if (fresh_.empty()) return {};
    if (!state_.open) HOLDFAST_TRY(archive_.open_segment(state_));
    return append();
  }

  // What nothing was said of, when the disk says something of all.
  void report_rest(const Outcome& outcome) {
    for (std::size_t place = 0; place < window_.size(); ++place) {
      if (!reported_[place]) report(place, outcome);
    }
  }

 private:
  struct Fresh {
    std::size_t place = 0;
    ArchiveLine line;
    std::vector<std::size_t> again;  // other places with the same record
  };

  void report(std::size_t place, Outcome outcome) {
    reported_[place] = true;
    report_(place, std::move(outcome));
  }
  Result<void> sort_out();
  Result<std::optional<ArchiveDigest>> find(const ArchiveMark& mark);
  Result<void> append();
  Result<bool> write_piece(File& file, ByteView bytes);

  FileSystem& fs_;
  Archive& archive_;
  ArchiveState& state_;
  const std::span<const Delivery> window_;
  const Report& report_;
  std::atomic<bool>& interrupted_;
  std::vector<bool> reported_ = std::vector<bool>(window_.size());
  std::vector<Fresh> fresh_;
  std::unordered_map<ArchiveDigest, std::size_t, ArchiveState::Hash> fresh_by_key_;
  std::uint64_t end_ = 0;  // of what this window has written so far
};

Result<void> Round::sort_out() {
  const std::uint64_t window_at = state_.open ? state_.open->size : 0;
  for (std::size_t place = 0; place < window_.size(); ++place) {
    if (interrupted_.exchange(false)) return Error{ErrorKind::unavailable, "interrupted"};
    ArchiveLine line = make_archive_line(*window_[place].record, window_[place].wire_key, window_at);
    const ArchiveMark& mark = line.mark;
    const auto there = find(mark);
    if (!there.ok()) return there.error();
    const auto twin = fresh_by_key_.find(mark.key);
    if (*there) {
      report(place, **there == mark.content ? accepted(OutcomeKind::duplicate) : rejected(Reason::exists_otherwise));
    } else if (twin == fresh_by_key_.end()) {
      fresh_by_key_.emplace(mark.key, fresh_.size());
      fresh_.push_back({place, std::move(line), {}});
    } else if (fresh_[twin->second].line.mark.content == mark.content) {
      fresh_[twin->second].again.push_back(place);
    } else {
      report(place, rejected(Reason::exists_otherwise));
    }
  }
  return {};
}

Result<std::optional<ArchiveDigest>> Round::find(const ArchiveMark& mark) {
  if (state_.open) {
    const auto at = state_.open->marks.find(mark.key);
    if (at != state_.open->marks.end()) return std::optional(at->second.content);
  }
  for (auto at = state_.closed.begin(); at != state_.closed.end();) {
    const auto& [number, keys] = *at;
    if (mark.spool_sequence < keys.first_sequence || mark.spool_sequence > keys.last_sequence) {
      ++at;
      continue;
    }
    const auto found = find_archive_key(fs_, archive_.keys(number), keys, mark.key);
    if (found.ok() && *found) return found;
    const bool removed = !found.ok() && found.error().kind == ErrorKind::not_found;
    if (!found.ok() && !removed) return found.error();
    at = removed ? state_.closed.erase(at) : std::next(at);
  }
  return std::optional<ArchiveDigest>();
}

Result<void> Round::append() {
  ArchiveState::Open& open = *state_.open;
  const auto file = fs_.open(archive_.segment(open.number), OpenMode::write);
  if (!file.ok()) return file.error();
  end_ = open.size;
  std::size_t written = 0;
  bool room = true;
  Bytes last;
  for (std::size_t next = 0; next < fresh_.size() && room;) {
    Bytes piece;
    for (; next < fresh_.size() && piece.size() < kPiece; ++next) {
      const Bytes& line = fresh_[next].line.bytes;
      piece.insert(piece.end(), line.begin(), line.end());
    }
    const auto fitted = write_piece(**file, piece);
    if (!fitted.ok()) return fitted.error();
    room = *fitted;
    if (!room) break;
    written = next;
    last.assign(piece.end() - static_cast<std::ptrdiff_t>(std::min(kLastBytes, piece.size())), piece.end());
  }
  if (written > 0) {
    if (const auto synced = (*file)->sync(); !synced.ok()) return Error{ErrorKind::io, synced.error().text};
    open.size = end_;
    open.last = std::move(last);
  }
  for (std::size_t n = 0; n < written; ++n) {
    open.marks.emplace(fresh_[n].line.mark.key, fresh_[n].line.mark);
    report(fresh_[n].place, accepted());
    for (const std::size_t place : fresh_[n].again) report(place, accepted(OutcomeKind::duplicate));
  }
  if (!room) report_rest(retry("disk_full"));
  return {};
}

// False: there is no room, and nothing of it is there.
Result<bool> Round::write_piece(File& file, ByteView bytes) {
  const auto written = file.write_at(end_, bytes);
  if (written.ok()) {
    end_ += bytes.size();
    return true;
  }
  bool full = written.error().kind == ErrorKind::full;
  if (written.error().kind == ErrorKind::io) {
    // A disk that is full in the middle of a write calls it by another name.
    const auto space = fs_.space();
    full = space.ok() && space->free_bytes < bytes.size();
  }
  if (!full) return written.error();
  HOLDFAST_TRY(file.truncate(end_));
  return false;
}

}  // namespace

Result<void> ArchiveTarget::deliver(std::span<const Delivery> window, const Report& report) {
  std::vector<bool> reported(window.size());
  const Report note = [&](std::size_t place, Outcome outcome) {
    reported[place] = true;
    report(place, std::move(outcome));
  };
  const auto carry = [&]() -> Result<void> {
    auto directory = open_();
    if (!directory.ok()) return directory.error();
    Archive archive(**directory, options_, interrupted_);
    if (state_ && !archive.is_as_left(*state_)) state_.reset();
    if (!state_) {
      auto recovered = archive.recover();
      if (!recovered.ok()) return recovered.error();
      state_ = *std::move(recovered);
    }
    HOLDFAST_TRY(archive.close_if_due(*state_));
    return Round(**directory, archive, *state_, window, note, interrupted_).run();
  };
  const Result<void> carried = carry();
  if (carried.ok()) return {};
  state_.reset();  // whatever was half done is found there
  const std::optional<Outcome> rest = outcome_of_disk(carried.error());
  if (!rest) return disk_failed("write to", carried.error());
  for (std::size_t place = 0; place < window.size(); ++place) {
    if (!reported[place]) report(place, *rest);
  }
  return {};
}

}  // namespace holdfast
