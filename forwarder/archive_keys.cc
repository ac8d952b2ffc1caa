#include "forwarder/archive_keys.h"

#include <algorithm>

#include "crypto/digest.h"

namespace holdfast {
namespace {

constexpr std::string_view kMagic = "HFKEYS01";
constexpr std::size_t kHeader = 8 + 3 * 8 + 4;
constexpr std::size_t kEntry = 2 * sizeof(ArchiveDigest);
constexpr std::uint64_t kBlock = 512;  // entries of one read: most guesses are that near

Error corrupt() {
  return {ErrorKind::corrupt, "not a whole file of keys"};
}

// Where among so many evenly spread digests one is to be expected.
std::uint64_t guess(const ArchiveDigest& key, std::uint64_t records) {
  std::uint32_t top = 0;
  for (std::size_t n = 0; n < sizeof top; ++n) top = top << 8 | key[n];
  return (records * top) >> 32;
}

int compare(const std::uint8_t* entry, const ArchiveDigest& key) {
  return std::memcmp(entry, key.data(), key.size());
}

}  // namespace

Result<void> write_archive_keys(FileSystem& fs, const std::string& temporary, std::vector<ArchiveMark> marks) {
  std::sort(marks.begin(), marks.end());
  const auto by_sequence = [](const ArchiveMark& a, const ArchiveMark& b) {
    return a.spool_sequence < b.spool_sequence;
  };
  const auto [first, last] = std::minmax_element(marks.begin(), marks.end(), by_sequence);
  Bytes bytes;
  ByteWriter out(bytes);
  out.raw(as_bytes(kMagic));
  out.u64(marks.size());
  out.u64(marks.empty() ? 0 : first->spool_sequence);
  out.u64(marks.empty() ? 0 : last->spool_sequence);
  out.u32(crc32c(bytes));
  for (const ArchiveMark& mark : marks) {
    out.raw(mark.key);
    out.raw(mark.content);
  }
  // Never into one that is there: after a power cut it may be the same file as the last .keys, under its other name.
  const auto removed = fs.remove(temporary);
  if (!removed.ok() && removed.error().kind != ErrorKind::not_found) return removed;
  auto file = fs.open(temporary, OpenMode::create_new);
  if (!file.ok()) return file.error();
  HOLDFAST_TRY((*file)->write_at(0, bytes));
  return (*file)->sync();
}

Result<ArchiveKeys> read_archive_keys(FileSystem& fs, const std::string& path) {
  auto file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.error();
  const auto size = (*file)->size();
  if (!size.ok()) return size.error();
  Bytes bytes(kHeader);
  const auto got = (*file)->read_at(0, bytes);
  if (!got.ok()) return got.error();
  ByteView fields = bytes;
  if (*got != kHeader || as_text(fields.first(kMagic.size())) != kMagic) return corrupt();
  const std::uint8_t* at = bytes.data() + kMagic.size();
  const ArchiveKeys keys{load_le<std::uint64_t>(at), load_le<std::uint64_t>(at + 8), load_le<std::uint64_t>(at + 16)};
  if (load_le<std::uint32_t>(at + 24) != crc32c(fields.first(kHeader - 4))) return corrupt();
  if ((*size - kHeader) % kEntry != 0 || (*size - kHeader) / kEntry != keys.records) return corrupt();
  return keys;
}

Result<std::optional<ArchiveDigest>> find_archive_key(FileSystem& fs, const std::string& path, const ArchiveKeys& keys,
                                                      const ArchiveDigest& key) {
  auto file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.error();
  std::uint64_t low = 0, high = keys.records;  // it is among these, or nowhere
  std::uint64_t next = guess(key, keys.records);
  Bytes block(kBlock * kEntry);
  while (low < high) {
    const std::uint64_t begin = std::clamp(next < kBlock / 2 ? 0 : next - kBlock / 2, low, high - 1);
    const std::uint64_t count = std::min(kBlock, high - begin);
    const auto got = (*file)->read_at(kHeader + begin * kEntry, std::span(block).first(count * kEntry));
    if (!got.ok()) return got.error();
    if (*got != count * kEntry) return corrupt();
    if (compare(block.data(), key) > 0) {
      high = begin;
    } else if (compare(block.data() + (count - 1) * kEntry, key) < 0) {
      low = begin + count;
    } else {
      for (std::uint64_t n = 0; n < count; ++n) {
        const std::uint8_t* entry = block.data() + n * kEntry;
        if (compare(entry, key) != 0) continue;
        ArchiveDigest content;
        std::copy_n(entry + key.size(), content.size(), content.begin());
        return std::optional(content);
      }
      return std::optional<ArchiveDigest>();
    }
    next = low + (high - low) / 2;
  }
  return std::optional<ArchiveDigest>();
}

}  // namespace holdfast
