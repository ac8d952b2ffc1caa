#include "forwarder/archive_line.h"

#include <fmt/format.h>

#include "crypto/digest.h"
#include "crypto/text.h"
#include "forwarder/file_content.h"

namespace holdfast {
namespace {

// Quotes inside a string are written \", so none of these is inside one.
constexpr std::string_view kEndOfKey = "\",\"subject";
constexpr std::string_view kEndOfPayload = "\",\"headers\":[";
constexpr std::string_view kSequence = ",\"spool_sequence\":";
constexpr std::string_view kWindow = ",\"window_at\":";
constexpr std::string_view kChecksum = ",\"crc32c\":\"";
constexpr std::size_t kChecksumDigits = 8;
constexpr std::string_view kEnd = "\"}";

ArchiveDigest digest(std::string_view text) {
  const auto whole = sha256(as_bytes(text));
  ArchiveDigest half;
  std::copy_n(whole.begin(), half.size(), half.begin());
  return half;
}

// The number behind a name that stands at the end of a text, which is cut off.
std::optional<std::uint64_t> take_last_number(std::string_view& text, std::string_view name) {
  const std::size_t at = text.rfind(name);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = parse_decimal<std::uint64_t>(text.substr(at + name.size()));
  text = text.substr(0, at);
  return number;
}

std::optional<ArchiveMark> mark_of(std::string_view object, std::uint64_t spool_sequence) {
  const std::size_t key = object.find(kEndOfKey);
  const std::size_t payload = object.find(kEndOfPayload);
  if (key == std::string_view::npos || payload == std::string_view::npos || payload < key) return std::nullopt;
  return ArchiveMark{digest(object.substr(0, key)), digest(object.substr(0, payload)), spool_sequence};
}

std::string checksum(std::string_view text) {
  return fmt::format("{:08x}", crc32c(as_bytes(text)));
}

}  // namespace

ArchiveLine make_archive_line(const DueRecord& record, std::string_view wire_key, std::uint64_t window_at) {
  const FileContent content(record, wire_key, FileFormat::json);
  std::string text(as_text(content.bytes()));
  text.resize(text.size() - std::string_view("}\n").size());
  ArchiveLine line;
  const auto mark = mark_of(text, record.sequence);
  CHECK(mark);
  line.mark = *mark;
  text += fmt::format("{}{}{}{}", kSequence, record.sequence, kWindow, window_at);
  text += fmt::format("{}{}{}\n", kChecksum, checksum(text), kEnd);
  line.bytes.assign(text.begin(), text.end());
  return line;
}

std::optional<ReadLine> read_archive_line(std::string_view line) {
  constexpr std::size_t kTail = kChecksum.size() + kChecksumDigits + kEnd.size();
  if (line.size() < kTail || !line.ends_with(kEnd)) return std::nullopt;
  const std::string_view tail = line.substr(line.size() - kTail);
  line.remove_suffix(kTail);
  if (!tail.starts_with(kChecksum) || tail.substr(kChecksum.size(), kChecksumDigits) != checksum(line))
    return std::nullopt;
  const auto window_at = take_last_number(line, kWindow);
  if (!window_at) return std::nullopt;
  const auto sequence = take_last_number(line, kSequence);
  if (!sequence) return std::nullopt;
  const auto mark = mark_of(line, *sequence);
  if (!mark) return std::nullopt;
  return ReadLine{*mark, *window_at};
}

}  // namespace holdfast
