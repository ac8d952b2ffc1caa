// Names beneath a root, as every FileSystem takes them: "records/ab/x.rec". Pure.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Relative, components parted by single slashes, none of them ".", ".." or empty, no NUL. "" (the root) is not one.
inline bool is_inner_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

// "records/ab/x.rec" -> "records/ab"; "LOCK" -> "".
inline std::string parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

// "records/ab/x.rec" -> "x.rec".
inline std::string last_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(slash == std::string_view::npos ? 0 : slash + 1));
}

}  // namespace holdfast
