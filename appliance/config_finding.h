// What is wrong, or doubtful, in a configuration: where, which key, what is wrong and what would be right. Pure.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

struct Finding {
  int line = 1;
  std::string key;  // "source.batch"; empty: the file as a whole
  std::string text;
  bool operator==(const Finding&) const = default;
};

// Errors and warnings, each list in the order of the file. Bounded: a file that is nothing but errors is not worth a
// longer list.
class Findings {
 public:
  static constexpr std::size_t kMost = 20;

  // A line of 0 (not in the file at all) reads as the first.
  void error(int line, std::string key, std::string text);
  void warning(int line, std::string key, std::string text);

  std::vector<Finding> errors() const;
  std::vector<Finding> warnings() const;
  std::size_t left_out() const { return left_out_; }  // errors beyond kMost

 private:
  std::vector<Finding> errors_;
  std::vector<Finding> warnings_;
  std::size_t left_out_ = 0;
};

// "file:line: key: text".
std::string finding_text(const std::string& file, const Finding& finding);

}  // namespace holdfast
