#include "appliance/config_finding.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

std::vector<Finding> by_line(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.line < b.line; });
  return findings;
}

}  // namespace

void Findings::error(int line, std::string key, std::string text) {
  if (errors_.size() == kMost) {
    ++left_out_;
    return;
  }
  errors_.push_back({std::max(1, line), std::move(key), std::move(text)});
}

void Findings::warning(int line, std::string key, std::string text) {
  if (warnings_.size() < kMost) warnings_.push_back({std::max(1, line), std::move(key), std::move(text)});
}

std::vector<Finding> Findings::errors() const {
  return by_line(errors_);
}

std::vector<Finding> Findings::warnings() const {
  return by_line(warnings_);
}

std::string finding_text(const std::string& file, const Finding& finding) {
  std::string text = file + ':' + std::to_string(finding.line) + ": ";
  if (!finding.key.empty()) text += finding.key + ": ";
  return text + finding.text;
}

}  // namespace holdfast
