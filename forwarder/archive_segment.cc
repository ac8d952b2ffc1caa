#include "forwarder/archive_segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "crypto/text.h"
#include "forwarder/file_name.h"

namespace holdfast {
namespace {

constexpr std::size_t kChunk = 1u << 20;
// Above any line: the largest record in base64, and headers as large, escaped. What is longer is no line.
constexpr std::size_t kLongestLine = 512u << 20;
constexpr int kDigits = 20;  // of any 64-bit number: names sort as numbers do

// One chunk, at a place where a direct read may put it.
class AlignedChunk {
 public:
  std::span<std::uint8_t> span() { return {memory_.get(), kChunk}; }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::uint8_t, Free> memory_{static_cast<std::uint8_t*>(std::aligned_alloc(kDirectAlignment, kChunk))};
};

// Takes a segment piece by piece, and knows what its lines are.
class Scan {
 public:
  void take(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      rest_.append(bytes.substr(0, end));
      if (end == std::string_view::npos) {
        if (rest_.size() > kLongestLine) give_up_line();
        return;
      }
      take_line(rest_.size() + 1);
      bytes.remove_prefix(end + 1);
    }
  }
  void finish() {
    if (!rest_.empty() || too_long_) take_line(rest_.size());
  }
  // Where what was never known to be on the medium begins to be damaged; nothing: nowhere.
  std::optional<std::uint64_t> torn() const {
    const auto at =
        std::find_if(damages_.begin(), damages_.end(), [&](std::uint64_t damage) { return damage >= highest_window_; });
    return at == damages_.end() ? std::nullopt : std::optional(*at);
  }
  bool whole_behind(std::uint64_t offset) const { return !lines_.empty() && lines_.back().offset > offset; }
  std::vector<ArchiveMark> marks_before(std::optional<std::uint64_t> end) const {
    std::vector<ArchiveMark> marks;
    for (const Line& line : lines_) {
      if (!end || line.offset < *end) marks.push_back(line.mark);
    }
    return marks;
  }

 private:
  struct Line {
    std::uint64_t offset = 0;
    ArchiveMark mark;
  };
  void take_line(std::size_t size) {
    const auto read = too_long_ ? std::nullopt : read_archive_line(rest_);
    if (read) {
      lines_.push_back({at_, read->mark});
      highest_window_ = std::max(highest_window_, read->window_at);
    } else if (!damaged_) {
      damages_.push_back(at_);
    }
    damaged_ = !read;
    too_long_ = false;
    at_ += size;
    rest_.clear();
  }
  void give_up_line() {
    if (!damaged_) damages_.push_back(at_);
    damaged_ = too_long_ = true;
    at_ += rest_.size();
    rest_.clear();
  }

  std::string rest_;      // of a line that has not ended
  std::uint64_t at_ = 0;  // where it begins
  bool damaged_ = false;  // what stands right before it
  bool too_long_ = false;
  std::vector<Line> lines_;
  std::vector<std::uint64_t> damages_;  // each runs to the next line
  std::uint64_t highest_window_ = 0;
};

// Calls with each chunk and its offset.
template <typename Visit>
Result<void> each_chunk(File& file, std::uint64_t from, std::uint64_t to, std::atomic<bool>& interrupted, Visit visit) {
  AlignedChunk chunk;
  for (std::uint64_t at = from; at < to;) {
    if (interrupted.exchange(false)) return Error{ErrorKind::unavailable, "interrupted"};
    const auto got = file.read_at(at, chunk.span());
    if (!got.ok()) return got.error();
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(*got, to - at));
    if (size == 0) return Error{ErrorKind::io, "became shorter while it was read"};
    HOLDFAST_TRY(visit(at, ByteView(chunk.span().first(size))));
    at += size;
  }
  return {};
}

// Of a segment that is synced: what the medium has, or what was put there just now.
Result<Scan> scan(FileSystem& fs, const std::string& path, File& file, std::uint64_t size,
                  std::atomic<bool>& interrupted) {
  Scan scan;
  const auto take = [&](std::uint64_t, ByteView bytes) {
    scan.take(as_text(bytes));
    return Result<void>();
  };
  const auto direct = fs.open(path, OpenMode::read_direct);
  if (!direct.ok() && direct.error().kind != ErrorKind::unavailable) return direct.error();
  if (direct.ok()) {
    HOLDFAST_TRY(each_chunk(**direct, 0, size, interrupted, take));
  } else {
    HOLDFAST_TRY(each_chunk(file, 0, size, interrupted,
                            [&](std::uint64_t at, ByteView bytes) { return file.write_at(at, bytes); }));
    HOLDFAST_TRY(file.sync());
    HOLDFAST_TRY(each_chunk(file, 0, size, interrupted, take));
  }
  scan.finish();
  return scan;
}

// What is about to be cut off, and has whole lines in it.
Result<void> set_aside(FileSystem& fs, const std::string& path, File& file, std::uint64_t from, std::uint64_t size,
                       std::atomic<bool>& interrupted) {
  auto copy = fs.open(fmt::format("{}.torn-{}", path, from), OpenMode::create);
  if (!copy.ok()) return copy.error();
  HOLDFAST_TRY((*copy)->truncate(0));
  const std::uint64_t begin = from / kDirectAlignment * kDirectAlignment;
  HOLDFAST_TRY(each_chunk(file, begin, size, interrupted, [&](std::uint64_t at, ByteView bytes) {
    const std::uint64_t skip = at < from ? from - at : 0;
    if (skip >= bytes.size()) return Result<void>();
    return (*copy)->write_at(at + skip - from, bytes.subspan(static_cast<std::size_t>(skip)));
  }));
  HOLDFAST_TRY((*copy)->sync());
  return fs.sync_directory("");
}

}  // namespace

std::string archive_file_name(std::string_view writer, std::uint64_t number, std::string_view suffix) {
  return fmt::format("{}-{:0{}}{}", record_file_name(writer, ""), number, kDigits, suffix);
}

std::optional<std::uint64_t> archive_file_number(std::string_view writer, std::string_view name,
                                                 std::string_view suffix) {
  const std::size_t end = name.size() - std::min(suffix.size(), name.size());
  if (end < kDigits || !name.ends_with(suffix)) return std::nullopt;
  const auto number = parse_decimal<std::uint64_t>(name.substr(end - kDigits, kDigits));
  if (!number || archive_file_name(writer, *number, suffix) != name) return std::nullopt;
  return number;
}

Result<std::vector<ArchiveMark>> read_segment(FileSystem& fs, const std::string& path) {
  const auto file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.error();
  const auto size = (*file)->size();
  if (!size.ok()) return size.error();
  Scan scan;
  std::atomic<bool> never = false;
  HOLDFAST_TRY(each_chunk(**file, 0, *size, never, [&](std::uint64_t, ByteView bytes) {
    scan.take(as_text(bytes));
    return Result<void>();
  }));
  scan.finish();
  return scan.marks_before(std::nullopt);
}

Result<SegmentContent> recover_segment(FileSystem& fs, const std::string& path, bool open,
                                       std::atomic<bool>& interrupted) {
  auto file = fs.open(path, OpenMode::write);
  if (!file.ok()) return file.error();
  HOLDFAST_TRY((*file)->sync());
  const auto size = (*file)->size();
  if (!size.ok()) return size.error();
  const auto scanned = scan(fs, path, **file, *size, interrupted);
  if (!scanned.ok()) return scanned.error();
  const auto torn = open ? scanned->torn() : std::nullopt;
  SegmentContent content{scanned->marks_before(torn), torn.value_or(*size)};
  if (!torn) return content;
  if (scanned->whole_behind(*torn)) HOLDFAST_TRY(set_aside(fs, path, **file, *torn, *size, interrupted));
  HOLDFAST_TRY((*file)->truncate(*torn));
  HOLDFAST_TRY((*file)->sync());
  return content;
}

}  // namespace holdfast
