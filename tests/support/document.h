// Blocks of the format documents, so that a document that lies fails a test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

namespace holdfast {

// The lines of the fenced block whose opening fence says ```name. A document without it fails the test.
inline std::vector<std::string> document_lines(const std::string& path, const std::string& name) {
  std::ifstream document(std::string(HOLDFAST_SOURCE_DIR) + "/" + path);
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(document, line);) {
    if (inside && line == "```") return lines;
    if (inside) lines.push_back(line);
    if (line == "```" + name) inside = true;
  }
  ADD_FAILURE() << path << " has no block called " << name;
  return {};
}

// The same as one string without any white space: for hexadecimal.
inline std::string document_block(const std::string& path, const std::string& name) {
  std::string block;
  for (const std::string& line : document_lines(path, name)) block += line;
  std::erase_if(block, [](unsigned char c) { return std::isspace(c) != 0; });
  return block;
}

}  // namespace holdfast
