#include "spool/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>

#include "crypto/text.h"

namespace holdfast {
namespace {

constexpr std::string_view kDirectory = "journal";
constexpr std::size_t kZeroChunk = 256u << 10;
constexpr std::size_t kReadChunk = 1u << 20;

std::string segment_path(std::uint32_t number) {
  return fmt::format("{}/{}.seg", kDirectory, number);
}
// The n of `<n>.seg`, in decimal without leading zeros; nothing for names that are not ours.
std::optional<std::uint32_t> segment_number(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return {};
  const auto number = parse_decimal<std::uint32_t>(name.substr(0, name.size() - suffix.size()));
  return number && fmt::format("{}{}", *number, suffix) == name ? number : std::nullopt;
}

std::string temporary_path(std::uint32_t number) {
  return fmt::format("{}/{}.tmp", kDirectory, number);
}

// Memory that O_DIRECT can read into.
struct Image {
  struct Free {
    void operator()(std::uint8_t* freed) const { std::free(freed); }
  };
  explicit Image(std::size_t size)
      : memory(static_cast<std::uint8_t*>(std::aligned_alloc(kDirectAlignment, size))), bytes(memory.get(), size) {
    CHECK(memory != nullptr);
  }
  std::unique_ptr<std::uint8_t, Free> memory;
  std::span<std::uint8_t> bytes;
};

struct FoundBatch {
  std::size_t offset = 0;
  BatchHeader header;
};

// Every header of the highest base at a block boundary (R38), in order. Batches of lower bases are what an earlier use
// left (R39).
std::vector<FoundBatch> live_batches(ByteView image, const Namer& namer) {
  std::vector<FoundBatch> found;
  std::uint64_t highest = 0;
  for (std::size_t at = 0; at + kBlock <= image.size(); at += kBlock) {
    const auto header = read_batch_header(image.subspan(at), namer);
    if (!header || header->extent() > image.size() - at) continue;
    highest = std::max(highest, header->base);
    found.push_back({at, *header});
  }
  std::erase_if(found, [&](const FoundBatch& batch) { return batch.header.base != highest; });
  return found;
}

// The first place at or after `from` where a frame of ours begins; the end when there is none.
std::size_t next_frame(ByteView frames, std::size_t from, const Namer& namer) {
  static constexpr std::string_view kMagic = "HFR1";
  const std::string_view text = as_text(frames);
  for (std::size_t at = text.find(kMagic, from); at != text.npos; at = text.find(kMagic, at + 1)) {
    if (read_header(frames.subspan(at), namer)) return at;
  }
  return frames.size();
}

Bytes copy_of(ByteView bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

struct Journal::Parts {
  struct Open {
    std::uint32_t number = 0;
    std::uint64_t base = 0;  // 0: free
    std::uint64_t size = 0;
    std::unique_ptr<File> file;
  };

  FileSystem& fs;
  const Namer& namer;
  JournalOptions options;
  mutable std::mutex mutex;  // the map and the order: read() and retire_oldest() come from other threads than append()
  std::map<std::uint32_t, Open> segments;
  std::deque<std::uint32_t> order;  // in use, oldest first
  bool active = false;              // the newest in `order` is ours to append to
  std::uint64_t offset = 0;
  std::uint32_t next_batch = 0;
  std::uint64_t puts_so_far = 0;

  Parts(FileSystem& fs_in, const Namer& namer_in, const JournalOptions& options_in)
      : fs(fs_in), namer(namer_in), options(options_in) {}

  Open& newest() {
    const std::lock_guard lock(mutex);
    return segments.at(order.back());
  }

  Result<void> find_segments();
  Result<std::uint64_t> base_of(const Open& segment, bool& from_medium);
  Result<Image> read_image(const Open& segment, std::uint64_t limit, bool& from_medium);
  Result<void> visit(const Open& segment, ByteView image, const JournalVisitor& visitor);
  Result<void> visit_batch(const Open& segment, const FoundBatch& batch, ByteView image, bool last,
                           const JournalVisitor& visitor);
  Result<void> drop_misfit_segments();
};

Journal::Journal(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::open(FileSystem& fs, const Namer& namer, const JournalOptions& options) {
  CHECK(options.segments >= 2 && options.segment_bytes % kBlock == 0 && options.segment_bytes >= 16 * kBlock);
  auto parts = std::make_unique<Parts>(fs, namer, options);
  HOLDFAST_TRY(parts->find_segments());
  return std::unique_ptr<Journal>(new Journal(std::move(parts)));
}

Result<void> Journal::Parts::find_segments() {
  if (auto made = fs.make_directory(std::string(kDirectory)); made.ok()) {
    HOLDFAST_TRY(fs.sync_directory(""));
  } else if (made.error().kind != ErrorKind::exists) {
    return made.error();
  }
  std::vector<std::uint32_t> numbers;
  std::vector<std::string> leftovers;
  HOLDFAST_TRY(fs.list(std::string(kDirectory), [&](std::string_view name, NameType type) {
    if (type != NameType::file) return true;
    if (const auto number = segment_number(name, ".seg")) numbers.push_back(*number);
    if (const auto number = segment_number(name, ".tmp")) leftovers.push_back(temporary_path(*number));
    return true;
  }));
  for (const auto& path : leftovers) HOLDFAST_TRY(fs.remove(path));  // (R50)
  for (const std::uint32_t number : numbers) {
    auto file = fs.open(segment_path(number), OpenMode::write);
    if (!file) return file.error();
    auto size = (*file)->size();
    if (!size) return size.error();
    segments.emplace(number, Open{number, 0, *size, std::move(*file)});
  }
  return {};
}

Result<Image> Journal::Parts::read_image(const Open& segment, std::uint64_t limit, bool& from_medium) {
  const std::size_t size = std::min(segment.size, limit) / kBlock * kBlock;
  Image image(std::max(size, kBlock));
  image.bytes = image.bytes.first(size);
  auto direct = fs.open(segment_path(segment.number), OpenMode::read_direct);
  if (!direct && direct.error().kind != ErrorKind::unavailable) return direct.error();
  if (!direct) from_medium = false;
  File& file = direct ? **direct : *segment.file;
  for (std::size_t at = 0; at < size;) {
    auto got = file.read_at(at, image.bytes.subspan(at, std::min(kReadChunk, size - at)));
    if (!got) return got.error();
    if (*got == 0) return Error{ErrorKind::io, segment_path(segment.number) + " became shorter while it was read"};
    at += *got;
  }
  return image;
}

// The first block tells, unless it has rotted.
Result<std::uint64_t> Journal::Parts::base_of(const Open& segment, bool& from_medium) {
  auto first = read_image(segment, kBlock, from_medium);
  if (!first) return first.error();
  if (const auto header = read_batch_header(first->bytes, namer)) return header->base;
  auto image = read_image(segment, segment.size, from_medium);
  if (!image) return image.error();
  const auto batches = live_batches(image->bytes, namer);
  return batches.empty() ? 0 : batches.front().header.base;
}

// Synced first, then read from the medium: what only the page cache has is not believed (R37).
Result<bool> Journal::recover(std::uint64_t retired_base, const JournalVisitor& visitor) {
  bool from_medium = true;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_base;
  for (auto& [number, segment] : parts_->segments) {
    HOLDFAST_TRY(segment.file->sync());
    auto base = parts_->base_of(segment, from_medium);
    if (!base) return base.error();
    if (*base > retired_base) by_base.emplace_back(*base, number);
  }
  std::ranges::sort(by_base);
  for (const auto& [base, number] : by_base) {
    auto& segment = parts_->segments.at(number);
    segment.base = base;
    auto image = parts_->read_image(segment, segment.size, from_medium);
    if (!image) return image.error();
    HOLDFAST_TRY(parts_->visit(segment, image->bytes, visitor));
    parts_->order.push_back(number);
  }
  HOLDFAST_TRY(parts_->drop_misfit_segments());
  return from_medium;
}

Result<void> Journal::Parts::visit(const Open& segment, ByteView image, const JournalVisitor& visitor) {
  const auto batches = live_batches(image, namer);
  CHECK(!batches.empty());
  const BatchHeader& last = batches.back().header;
  HOLDFAST_TRY(visitor.segment_begins(segment.base));
  puts_so_far = std::max(puts_so_far, last.puts_before + last.puts);
  std::size_t expected = 0;
  std::uint64_t puts = batches.front().header.number == 0 ? batches.front().header.puts_before : 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const FoundBatch& batch = batches[i];
    if (batch.offset != expected) {
      // A hole before a later batch: rot in what was acknowledged (R40). It does not end the search.
      const std::uint64_t missing = batch.header.puts_before > puts ? batch.header.puts_before - puts : 0;
      HOLDFAST_TRY(
          visitor.damage({copy_of(image.subspan(expected, batch.offset - expected)), true, i == 0 ? 0 : missing}));
    }
    HOLDFAST_TRY(visit_batch(segment, batch, image, i + 1 == batches.size(), visitor));
    puts = batch.header.puts_before + batch.header.puts;
    expected = batch.offset + batch.header.extent();
  }
  return {};
}

// Frame by frame: those that are whole live, whatever lies between them (R41).
Result<void> Journal::Parts::visit_batch(const Open& segment, const FoundBatch& batch, ByteView image, bool last,
                                         const JournalVisitor& visitor) {
  const std::size_t start = batch.offset + kBatchHeaderSize;
  const ByteView frames = image.subspan(start, batch.header.bytes);
  std::uint64_t puts = 0;
  Bytes damaged;
  for (std::size_t at = 0; at < frames.size();) {
    const auto header = read_header(frames.subspan(at), namer);
    const std::size_t size = header ? kFrameHeaderSize + header->body_size : 0;
    // Behind the tear of a batch may lie whole frames of an earlier use of the segment: no put below its base is of
    // this one (R51).
    const bool stale = header && header->kind == FrameKind::put && header->sequence < segment.base;
    if (header && !stale && size <= frames.size() - at && read_body(*header, frames.subspan(at, size), namer)) {
      const FrameSpot spot{segment.number, static_cast<std::uint32_t>(start + at), static_cast<std::uint32_t>(size)};
      HOLDFAST_TRY(visitor.frame(*header, frames.subspan(at, size), spot));
      puts += header->kind == FrameKind::put ? 1u : 0u;
      at += size;
      continue;
    }
    const std::size_t next = next_frame(frames, at + 1, namer);
    damaged.insert(damaged.end(), frames.begin() + static_cast<std::ptrdiff_t>(at),
                   frames.begin() + static_cast<std::ptrdiff_t>(next));
    at = next;
  }
  if (!damaged.empty()) {
    // In the last batch it cannot be told whether the power went before the sync or the medium rotted after it.
    const std::uint64_t missing = batch.header.puts > puts ? batch.header.puts - puts : 0;
    HOLDFAST_TRY(visitor.damage({std::move(damaged), !last, missing}));
  }
  return {};
}

// A journal_bytes that was changed takes effect as segments become free.
Result<void> Journal::Parts::drop_misfit_segments() {
  for (auto at = segments.begin(); at != segments.end();) {
    const Open& segment = at->second;
    const bool misfit = segment.size != options.segment_bytes || segment.number >= options.segments;
    if (segment.base != 0 || !misfit) {
      ++at;
      continue;
    }
    HOLDFAST_TRY(fs.remove(segment_path(segment.number)));
    at = segments.erase(at);
  }
  return {};
}

bool Journal::fits(std::size_t frame_bytes) const {
  if (!parts_->active) return false;
  return parts_->offset + round_up_to_block(kBatchHeaderSize + frame_bytes) <= parts_->newest().size;
}

std::size_t Journal::largest_frame() const {
  return parts_->options.segment_bytes / 4;
}

bool Journal::can_start() const {
  return free_segments() > 0;
}

std::uint32_t Journal::free_segments() const {
  const std::lock_guard lock(parts_->mutex);
  const auto used = static_cast<std::uint32_t>(parts_->order.size());
  return used >= parts_->options.segments ? 0 : parts_->options.segments - used;
}

Result<void> Journal::make_segment() {
  auto& parts = *parts_;
  std::uint32_t number = 0;
  {
    const std::lock_guard lock(parts.mutex);
    const bool one_is_free =
        std::ranges::any_of(parts.segments, [](const auto& entry) { return entry.second.base == 0; });
    if (one_is_free || parts.order.size() >= parts.options.segments) return {};
    while (parts.segments.contains(number)) ++number;
  }
  const std::string temporary = temporary_path(number);
  auto file = parts.fs.open(temporary, OpenMode::create);
  if (!file) return file.error();
  // Written zeros, not fallocate: unwritten extents would make the first commit into each block change metadata (R36).
  const Bytes zeros(kZeroChunk);
  for (std::uint64_t at = 0; at < parts.options.segment_bytes;) {
    const std::size_t size = std::min<std::uint64_t>(zeros.size(), parts.options.segment_bytes - at);
    if (auto written = (*file)->write_at(at, ByteView(zeros).first(size)); !written) {
      file->reset();
      HOLDFAST_TRY(parts.fs.remove(temporary));
      return written;
    }
    at += size;
  }
  HOLDFAST_TRY((*file)->sync());
  HOLDFAST_TRY(parts.fs.rename(temporary, segment_path(number), Rename::no_replace));
  HOLDFAST_TRY(parts.fs.sync_directory(std::string(kDirectory)));
  const std::lock_guard lock(parts.mutex);
  parts.segments.emplace(number, Parts::Open{number, 0, parts.options.segment_bytes, std::move(*file)});
  return {};
}

Result<void> Journal::start_segment(std::uint64_t base) {
  HOLDFAST_TRY(make_segment());
  auto& parts = *parts_;
  {
    const std::lock_guard lock(parts.mutex);
    const auto free = std::ranges::find_if(parts.segments, [](const auto& entry) { return entry.second.base == 0; });
    CHECK(free != parts.segments.end() && base != 0);
    free->second.base = base;
    parts.order.push_back(free->first);
  }
  parts.active = true;
  parts.offset = 0;
  parts.next_batch = 0;
  // From this sync on, whatever the segment held before is stale (R35).
  Bytes empty(kBatchHeaderSize);
  auto taken = append(empty, 0, 0);
  if (!taken) return taken.error();
  return {};
}

Result<FrameSpot> Journal::append(Bytes& batch, std::uint32_t frames, std::uint32_t puts) {
  auto& parts = *parts_;
  CHECK(batch.size() >= kBatchHeaderSize && fits(batch.size() - kBatchHeaderSize));
  Parts::Open& segment = parts.newest();
  BatchHeader header{segment.base,
                     parts.next_batch,
                     frames,
                     static_cast<std::uint32_t>(batch.size() - kBatchHeaderSize),
                     parts.puts_so_far,
                     puts};
  write_batch_header(header, parts.namer, batch);
  batch.resize(header.extent());  // to the block's end, and no later batch begins in it (R10)
  // Nothing here makes or extends anything: whatever fails, and however it calls itself, the segment's state is unknown
  // (R9).
  if (auto written = segment.file->write_at(parts.offset, batch); !written)
    return Error{ErrorKind::io, written.error().text};
  HOLDFAST_TRY(segment.file->sync());
  const FrameSpot first{segment.number, static_cast<std::uint32_t>(parts.offset + kBatchHeaderSize), 0};
  parts.offset += batch.size();
  parts.puts_so_far += puts;
  ++parts.next_batch;
  return first;
}

Result<void> Journal::read(FrameSpot spot, Bytes& out) {
  out.resize(spot.size);
  File* file = nullptr;
  {
    const std::lock_guard lock(parts_->mutex);
    file = parts_->segments.at(spot.segment).file.get();
  }
  auto got = file->read_at(spot.offset, out);
  if (!got) return got.error();
  if (*got != spot.size) return Error{ErrorKind::corrupt, segment_path(spot.segment) + " is shorter than it was"};
  return {};
}

std::vector<Journal::Segment> Journal::in_use() const {
  const std::lock_guard lock(parts_->mutex);
  std::vector<Segment> segments;
  for (const std::uint32_t number : parts_->order) segments.push_back({number, parts_->segments.at(number).base});
  return segments;
}

void Journal::retire_oldest() {
  auto& parts = *parts_;
  const std::lock_guard lock(parts.mutex);
  CHECK(!parts.order.empty());
  parts.segments.at(parts.order.front()).base = 0;
  parts.order.pop_front();
  if (parts.order.empty()) parts.active = false;
}

std::uint64_t Journal::disk_bytes() const {
  const std::lock_guard lock(parts_->mutex);
  std::uint64_t bytes = 0;
  for (const auto& [number, segment] : parts_->segments) bytes += segment.size;
  return bytes;
}

}  // namespace holdfast
