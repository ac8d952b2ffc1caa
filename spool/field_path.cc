#include "spool/field_path.h"

#include <algorithm>

#include "crypto/text.h"

namespace holdfast {
namespace {

// C0, DEL and C1, which is two bytes in UTF-8: nobody could see which path is meant.
bool has_control_character(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == 0x7f) return true;
    if (byte == 0xc2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0) return true;
  }
  return false;
}

const char* wrong_as_a_whole(std::string_view text) {
  if (text.find_first_not_of(' ') == std::string_view::npos) return "is blank; must name a field, like \"order.id\"";
  if (text.size() > kMaxFieldPath) return "has more than 256 bytes";
  if (!is_utf8(text)) return "is not UTF-8";
  if (has_control_character(text)) return "has a control character in it";
  return nullptr;
}

}  // namespace

Result<FieldPath> parse_field_path(std::string_view text) {
  if (const char* wrong = wrong_as_a_whole(text)) return Error{ErrorKind::invalid, wrong};
  FieldPath path{std::string(text), {""}};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '.') {
      path.keys.emplace_back();
      continue;
    }
    if (text[at] == '\\') {
      if (++at == text.size() || (text[at] != '.' && text[at] != '\\'))
        return Error{ErrorKind::invalid,
                     "has a backslash that escapes nothing; \\. is a dot in a key, \\\\ a backslash"};
    }
    path.keys.back().push_back(text[at]);
  }
  if (std::any_of(path.keys.begin(), path.keys.end(), [](const std::string& key) { return key.empty(); }))
    return Error{ErrorKind::invalid, "has an empty key; each dot stands between two keys, \\. is a dot in one"};
  if (path.keys.size() > kMaxFieldKeys) return Error{ErrorKind::invalid, "has more than 16 keys"};
  return path;
}

}  // namespace holdfast
