// Test vectors as text: "name: value" lines, vectors parted by empty lines, "#" begins a comment (crypto/FORMAT.md,
// "Test vectors"). Knows nothing of what the values mean.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vectors {

using Blob = std::vector<std::uint8_t>;

inline std::string hex(const Blob& bytes) {
  std::string text;
  for (std::uint8_t byte : bytes) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

inline Blob unhex(const std::string& text) {
  Blob bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

inline Blob blob(std::string_view text) {
  return Blob(text.begin(), text.end());
}

struct Vector {
  std::vector<std::pair<std::string, std::string>> lines;

  explicit Vector(const std::string& what = "") {
    if (!what.empty()) lines.emplace_back("what", what);
  }
  Vector& word(const std::string& name, const std::string& value) {
    lines.emplace_back(name, value);
    return *this;
  }
  Vector& bytes(const std::string& name, const Blob& value) { return word(name, hex(value)); }

  bool has(std::string_view name) const {
    for (const auto& line : lines)
      if (line.first == name) return true;
    return false;
  }
  // Empty when there is none.
  std::string word(std::string_view name) const {
    for (const auto& line : lines)
      if (line.first == name) return line.second;
    return "";
  }
  Blob bytes(std::string_view name) const { return unhex(word(name)); }
  std::string text(std::string_view name) const {
    const Blob value = bytes(name);
    return std::string(value.begin(), value.end());
  }
};

inline std::string render(const std::string& comment, const std::vector<Vector>& all) {
  std::string text = "# " + comment + "\n";
  for (const Vector& vector : all) {
    text += "\n";
    for (const auto& [name, value] : vector.lines) text += value.empty() ? name + ":\n" : name + ": " + value + "\n";
  }
  return text;
}

inline std::string path_of(const std::string& file) {
  return std::string(HOLDFAST_SOURCE_DIR) + "/crypto/vectors/" + file;
}

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Empty when the file is not there.
inline std::vector<Vector> load(const std::string& file) {
  std::vector<Vector> all;
  std::istringstream in(read_text(path_of(file)));
  bool fresh = true;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    if (line.empty()) {
      fresh = true;
      continue;
    }
    if (fresh) all.emplace_back();
    fresh = false;
    const std::size_t colon = line.find(':');
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    all.back().lines.emplace_back(line.substr(0, colon), value);
  }
  return all;
}

}  // namespace vectors
