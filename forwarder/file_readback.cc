#include "forwarder/file_readback.h"

#include <algorithm>
#include <unordered_map>

#include "forwarder/archive_segment.h"
#include "forwarder/disk_failure.h"

namespace holdfast {
namespace {

constexpr std::size_t kLargestFile = 1u << 30;

Error unreadable(const Error& error) {
  return disk_failed("read", error);
}

class FileReadback : public Readback {
 public:
  FileReadback(OpenDirectory open, FileTargetOptions options) : open_(std::move(open)), options_(std::move(options)) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    const auto fs = open_();
    if (!fs.ok()) return unreadable(fs.error());
    std::vector<Held> held(records.size());
    for (std::size_t place = 0; place < records.size(); ++place) {
      const auto bytes = read_file(**fs, record_path(records[place], options_), kLargestFile);
      if (!bytes.ok() && bytes.error().kind == ErrorKind::not_found) continue;
      if (!bytes.ok()) return unreadable(bytes.error());
      const auto content = decompress(*bytes, options_.compression, kLargestFile);
      const FileContent sent(*records[place].record, records[place].wire_key, options_.format);
      held[place] = {1, content && sent.is_same_record(*content)};
    }
    return held;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    const auto fs = open_();
    if (!fs.ok()) return unreadable(fs.error());
    for (const Delivery& record : records) {
      const auto removed = (*fs)->remove(record_path(record, options_));
      if (!removed.ok() && removed.error().kind != ErrorKind::not_found)
        return disk_failed("remove from", removed.error());
    }
    return {};
  }

 private:
  const OpenDirectory open_;
  const FileTargetOptions options_;
};

class ArchiveReadback : public Readback {
 public:
  ArchiveReadback(OpenDirectory open, ArchiveOptions options) : open_(std::move(open)), options_(std::move(options)) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    const auto fs = open_();
    if (!fs.ok()) return unreadable(fs.error());
    std::unordered_map<ArchiveDigest, std::vector<ArchiveMark>, ArchiveState::Hash> lines;
    std::vector<std::string> segments;
    const auto listed = (*fs)->list("", [&](std::string_view name, NameType) {
      if (archive_file_number(options_.writer, name, kSegmentSuffix)) segments.emplace_back(name);
      return true;
    });
    if (!listed.ok()) return unreadable(listed.error());
    for (const std::string& name : segments) {
      const auto content = read_segment(**fs, name);
      if (!content.ok()) return unreadable(content.error());
      for (const ArchiveMark& mark : *content) lines[mark.key].push_back(mark);
    }
    std::vector<Held> held(records.size());
    for (std::size_t place = 0; place < records.size(); ++place) {
      const ArchiveMark sent = make_archive_line(*records[place].record, records[place].wire_key, 0).mark;
      const auto found = lines.find(sent.key);
      if (found == lines.end()) continue;
      held[place].copies = found->second.size();
      held[place].as_sent = std::all_of(found->second.begin(), found->second.end(),
                                        [&](const ArchiveMark& mark) { return mark.content == sent.content; });
    }
    return held;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    const auto held = look(records);
    if (!held.ok()) return held.error();
    const bool any = std::any_of(held->begin(), held->end(), [](const Held& one) { return one.copies > 0; });
    if (any) return Error{ErrorKind::invalid, "an archive's lines are not taken out again"};
    return {};
  }

 private:
  const OpenDirectory open_;
  const ArchiveOptions options_;
};

}  // namespace

std::unique_ptr<Readback> make_file_readback(OpenDirectory open, FileTargetOptions options) {
  return std::make_unique<FileReadback>(std::move(open), std::move(options));
}

std::unique_ptr<Readback> make_archive_readback(OpenDirectory open, ArchiveOptions options) {
  return std::make_unique<ArchiveReadback>(std::move(open), std::move(options));
}

}  // namespace holdfast
