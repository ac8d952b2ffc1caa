#include "spool/record_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "crypto/text.h"

namespace holdfast {
namespace {

constexpr std::string_view kRecords = "records";
constexpr std::string_view kQuarantine = "quarantine";
constexpr std::string_view kSuffix = ".rec";
constexpr std::size_t kHexDigits = 64;
// What a file of ours may hold: a frame and a note.
constexpr std::size_t kMaxFile = std::size_t{kMaxFrameBody} + (64u << 10);

std::optional<RecordId> id_from_hex(std::string_view hex) {
  if (hex.size() != kHexDigits) return {};
  RecordId id;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const int high = digit(hex[2 * i]);
    const int low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return {};
    id.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return id;
}

std::string directory_of(unsigned first_byte) {
  return fmt::format("{}/{:02x}", kRecords, first_byte);
}

Result<void> make_directory(FileSystem& fs, const std::string& path) {
  auto made = fs.make_directory(path);
  if (!made && made.error().kind != ErrorKind::exists) return made;
  return {};
}

bool is_damaged_name(std::string_view name) {
  return name.starts_with("damaged-") && name.ends_with(".bin");
}

}  // namespace

std::string record_directory(const RecordId& id) {
  return directory_of(id.bytes[0]);
}
std::string record_path(const RecordId& id) {
  return fmt::format("{}/{}{}", record_directory(id), id.hex(), kSuffix);
}
std::string quarantine_path(const RecordId& id, Sequence sequence) {
  return fmt::format("{}/{}-{}{}", kQuarantine, id.hex(), sequence, kSuffix);
}

std::optional<RecordId> id_of_record_name(std::string_view directory, std::string_view name) {
  if (!name.ends_with(kSuffix)) return {};
  auto id = id_from_hex(name.substr(0, name.size() - kSuffix.size()));
  if (!id || record_directory(*id) != directory) return {};
  return id;
}

std::optional<QuarantineName> parse_quarantine_name(std::string_view name) {
  if (!name.ends_with(kSuffix) || name.size() <= kHexDigits + 1 + kSuffix.size() || name[kHexDigits] != '-') return {};
  const auto id = id_from_hex(name.substr(0, kHexDigits));
  const std::string_view digits = name.substr(kHexDigits + 1, name.size() - kHexDigits - 1 - kSuffix.size());
  const auto sequence = parse_decimal<Sequence>(digits);
  if (!id || !sequence || digits.front() == '0') return {};
  return QuarantineName{*id, *sequence};
}

Result<void> RecordFiles::prepare() {
  HOLDFAST_TRY(make_directory(fs_, std::string(kRecords)));
  HOLDFAST_TRY(make_directory(fs_, std::string(kQuarantine)));
  HOLDFAST_TRY(fs_.sync_directory(""));
  // Directories that an earlier life made there: their names may not be on the medium (R55).
  return fs_.sync_directory(std::string(kRecords));
}

Result<void> RecordFiles::write(const RecordId& id, Sequence sequence, ByteView frame, bool sync_each,
                                DirtyDirectories& dirty) {
  const std::string directory = record_directory(id);
  const std::string path = record_path(id);
  auto file = fs_.open(path, OpenMode::create_new);
  if (!file && file.error().kind == ErrorKind::not_found) {
    HOLDFAST_TRY(make_directory(fs_, directory));
    dirty.insert(std::string(kRecords));
    file = fs_.open(path, OpenMode::create_new);
  }
  if (!file && file.error().kind == ErrorKind::exists) {
    dirty.insert(directory);
    return rewrite_own(id, sequence, frame, sync_each);
  }
  if (!file) return file.error();
  dirty.insert(directory);
  if (auto written = (*file)->write_at(0, frame); !written) {
    // Half a file under a final name would be taken for rot. It is ours, made a moment ago.
    file->reset();
    HOLDFAST_TRY(undone(fs_.remove(path)));
    return written;
  }
  return sync_each ? (*file)->sync() : Result<void>();
}

// Our own earlier try may lie here in any state (R19): whole, short, or all zeros. Whole with another sequence is not
// ours to touch.
Result<void> RecordFiles::rewrite_own(const RecordId& id, Sequence sequence, ByteView frame, bool sync_each) {
  const auto header = peek(id);
  if (header && header->sequence != sequence)
    return Error{ErrorKind::exists, record_path(id) + " holds an earlier record"};
  if (!header && header.error().kind != ErrorKind::corrupt) return header.error();
  auto file = fs_.open(record_path(id), OpenMode::write);
  if (!file) return file.error();
  HOLDFAST_TRY((*file)->write_at(0, frame));
  HOLDFAST_TRY((*file)->truncate(frame.size()));
  return sync_each ? (*file)->sync() : Result<void>();
}

Result<FrameHeader> RecordFiles::peek(const RecordId& id) {
  auto file = fs_.open(record_path(id), OpenMode::read);
  if (!file) return file.error();
  std::array<std::uint8_t, kFrameHeaderSize> bytes;
  auto got = (*file)->read_at(0, bytes);
  if (!got) return got.error();
  const auto header = read_header(ByteView(bytes).first(*got), namer_);
  if (!header) return Error{ErrorKind::corrupt, fmt::format("{}: {}", record_path(id), reject_text(header.reject()))};
  if (header->id != id) return Error{ErrorKind::corrupt, record_path(id) + ": its header names another record"};
  return *header;
}

Result<bool> RecordFiles::is_blank(const RecordId& id) {
  auto file = fs_.open(record_path(id), OpenMode::read);
  if (!file) return file.error();
  std::array<std::uint8_t, kFrameHeaderSize> bytes;
  auto got = (*file)->read_at(0, bytes);
  if (!got) return got.error();
  return std::ranges::all_of(ByteView(bytes).first(*got), [](std::uint8_t byte) { return byte == 0; });
}

Result<void> RecordFiles::read(const RecordId& id, Bytes& frame) {
  HOLDFAST_TRY(read_file_into(fs_, record_path(id), kMaxFile, frame));
  const auto header = read_header(frame, namer_);
  const char* wrong = nullptr;
  if (!header) {
    wrong = reject_text(header.reject());
  } else if (header->id != id) {
    wrong = "its header names another record";
  } else if (frame.size() != kFrameHeaderSize + header->body_size) {
    wrong = "its length is not the one its header says";
  } else if (const auto body = read_body(*header, frame, namer_); !body) {
    wrong = reject_text(body.reject());
  }
  if (wrong != nullptr) return Error{ErrorKind::corrupt, fmt::format("{}: {}", record_path(id), wrong)};
  return {};
}

Result<bool> RecordFiles::remove(const RecordId& id, Sequence sequence) {
  const auto header = peek(id);
  // Not there in memory; on the medium it may be until the directory is synced (R26).
  if (!header && header.error().kind == ErrorKind::not_found) return true;
  if (!header && header.error().kind != ErrorKind::corrupt) return header.error();
  if (header && header->sequence != sequence) return false;  // a later record of the same name (R25)
  if (!header) {
    auto blank = is_blank(id);
    if (!blank || !*blank) return blank;
  }
  HOLDFAST_TRY(fs_.remove(record_path(id)));
  return true;
}

Result<Bytes> RecordFiles::read_quarantined(const RecordId& id, Sequence sequence) {
  return read_file(fs_, quarantine_path(id, sequence), kMaxFile);
}

Result<void> RecordFiles::write_quarantined(const RecordId& id, Sequence sequence, ByteView frame, ByteView note) {
  const std::string path = quarantine_path(id, sequence);
  Bytes content(frame.begin(), frame.end());
  content.insert(content.end(), note.begin(), note.end());
  auto file = fs_.open(path, OpenMode::create_new);
  if (!file && file.error().kind == ErrorKind::exists) {
    // The same record, set aside by a try that did not come to its end: only then is it written again.
    file = fs_.open(path, OpenMode::write);
  }
  if (!file) return file.error();
  auto written = (*file)->write_at(0, content);
  if (written.ok()) written = (*file)->truncate(content.size());
  if (!written) {
    file->reset();
    HOLDFAST_TRY(undone(fs_.remove(path)));
    return written;
  }
  HOLDFAST_TRY((*file)->sync());
  return fs_.sync_directory(std::string(kQuarantine));
}

Result<std::string> RecordFiles::next_damaged_name() {
  for (;; ++next_damaged_) {
    std::string path = fmt::format("{}/damaged-{}.bin", kQuarantine, next_damaged_);
    auto there = fs_.inspect(path);
    if (!there && there.error().kind == ErrorKind::not_found) return path;
    if (!there) return there.error();
  }
}

// The file that holds just these bytes, or an empty name.
Result<std::string> RecordFiles::find_damaged(ByteView bytes) {
  std::vector<std::string> paths;
  HOLDFAST_TRY(fs_.list(std::string(kQuarantine), [&](std::string_view name, NameType type) {
    if (type == NameType::file && is_damaged_name(name)) paths.push_back(fmt::format("{}/{}", kQuarantine, name));
    return true;
  }));
  for (const std::string& path : paths) {
    auto file = fs_.inspect(path);
    if (!file) return file.error();
    if (file->size != bytes.size()) continue;
    auto there = read_file(fs_, path, bytes.size());
    if (!there) return there.error();
    if (std::ranges::equal(*there, bytes)) return path;
  }
  return std::string();
}

Result<std::string> RecordFiles::write_damaged(ByteView bytes) {
  // The journal is read at every start until the segment is given back.
  auto kept = find_damaged(bytes);
  if (!kept || !kept->empty()) return kept;
  auto path = next_damaged_name();
  if (!path) return path.error();
  auto file = fs_.open(*path, OpenMode::create_new);
  if (!file) return file.error();
  if (auto written = (*file)->write_at(0, bytes); !written) {
    file->reset();
    HOLDFAST_TRY(undone(fs_.remove(*path)));
    return written.error();
  }
  HOLDFAST_TRY((*file)->sync());
  HOLDFAST_TRY(fs_.sync_directory(std::string(kQuarantine)));
  return path;
}

Result<void> RecordFiles::remove_quarantined(const RecordId& id, Sequence sequence) {
  auto removed = fs_.remove(quarantine_path(id, sequence));
  if (!removed && removed.error().kind != ErrorKind::not_found) return removed;
  return fs_.sync_directory(std::string(kQuarantine));
}

Result<void> RecordFiles::sync_lot(bool whole, DirtyDirectories& dirty) {
  if (dirty.empty()) return {};
  if (whole) {
    HOLDFAST_TRY(fs_.sync_all());
  } else {
    for (const auto& directory : dirty) {
      auto synced = fs_.sync_directory(directory);
      if (!synced && synced.error().kind != ErrorKind::not_found) return synced;  // never made: nothing can come back
    }
  }
  dirty.clear();
  return {};
}

Result<void> RecordFiles::list_directory(unsigned first_byte, const std::function<void(const RecordId&)>& visit,
                                         std::uint64_t& ignored) {
  const std::string directory = directory_of(first_byte);
  auto listed = fs_.list(directory, [&](std::string_view name, NameType type) {
    const auto id = type == NameType::file ? id_of_record_name(directory, name) : std::nullopt;
    if (id) {
      visit(*id);
    } else {
      ++ignored;
    }
    return true;
  });
  if (!listed && listed.error().kind == ErrorKind::not_found) return {};
  return listed;
}

Result<std::uint64_t> RecordFiles::count_strangers() {
  std::uint64_t strangers = 0;
  auto listed = fs_.list(std::string(kRecords), [&](std::string_view name, NameType type) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const bool ours = type == NameType::directory && name.size() == 2 && name.find_first_not_of(kDigits) == name.npos;
    strangers += ours ? 0u : 1u;
    return true;
  });
  if (!listed) return listed.error();
  return strangers;
}

Result<void> RecordFiles::list_quarantine(const std::function<void(const QuarantineName&)>& visit,
                                          std::uint64_t& ignored) {
  return fs_.list(std::string(kQuarantine), [&](std::string_view name, NameType type) {
    const auto ours = type == NameType::file ? parse_quarantine_name(name) : std::nullopt;
    if (ours) {
      visit(*ours);
    } else if (type != NameType::file || !is_damaged_name(name)) {
      ++ignored;
    }
    return true;
  });
}

}  // namespace holdfast
