// A path to one field of a JSON body: the keys of objects, one inside the other, with dots between them. `\.` is a dot
// in a key and `\\` a backslash; there is no other escape, so a path has one spelling, and that names it in canonical
// keys (spool/IDENTITY.md, "payload_field"). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "spool/result.h"

namespace holdfast {

inline constexpr std::size_t kMaxFieldPath = 256;  // bytes: it stands in every key that is made with it
inline constexpr std::size_t kMaxFieldKeys = 16;   // deeper than anybody puts what names a message

struct FieldPath {
  std::string text;
  std::vector<std::string> keys;  // from the outermost object in; none: no path
  bool operator==(const FieldPath&) const = default;
};

// `invalid` says what is wrong with it, as the rest of a sentence: "has an empty key; ...".
Result<FieldPath> parse_field_path(std::string_view text);

}  // namespace holdfast
