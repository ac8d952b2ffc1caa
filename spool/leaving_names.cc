#include "spool/leaving_names.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::size_t kUnlinksAtOnce = 256;  // between two looks at what else is to be done
constexpr std::size_t kRemoveTogether = 8;   // names that one of the removers takes at once

}  // namespace

Result<void> LeavingNames::remove(std::span<const LeavingFile> left) {
  std::vector<Result<bool>> removed(left.size(), false);
  removers_.share(left.size(), kRemoveTogether, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) removed[i] = files_.remove(left[i].id, left[i].sequence);
  });
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto& [id, sequence, bytes, expected] = left[i];
    if (!removed[i] && removed[i].error().kind == ErrorKind::io) return removed[i].error();
    if (!removed[i]) {
      waiting_.push_back(left[i]);
      continue;
    }
    if (*removed[i]) lot_.name_went(id);
    if (expected) expected_.name_left(id);
    unsynced_.push_back(sequence);
    counted_bytes_ -= bytes;
    counted_files_ -= bytes > 0 ? 1u : 0u;
  }
  return {};
}

void LeavingNames::remove_later(const std::vector<LeavingFile>& left) {
  for (const LeavingFile& file : left) {
    counted_bytes_ += file.bytes;
    counted_files_ += file.bytes > 0 ? 1u : 0u;
  }
  waiting_.insert(waiting_.end(), left.begin(), left.end());
}

Result<bool> LeavingNames::remove_some() {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kUnlinksAtOnce));
  const std::vector<LeavingFile> some(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  const std::size_t others = waiting_.size();
  HOLDFAST_TRY(remove(some));
  return !waiting_.empty() && waiting_.size() == others;
}

Result<bool> LeavingNames::remove_waiting(const RecordId& id) {
  const auto at = std::ranges::find(waiting_, id, &LeavingFile::id);
  if (at == waiting_.end()) return false;
  const LeavingFile file = *at;
  waiting_.erase(at);
  const std::size_t others = waiting_.size();
  HOLDFAST_TRY(remove(std::span(&file, 1)));
  return waiting_.size() == others;
}

// They have left, whether or not their names can go now.
Result<void> LeavingNames::remove_quarantined(const std::vector<Quarantined>& left) {
  for (const auto& [id, sequence] : left) {
    auto removed = files_.remove_quarantined(id, sequence);
    if (!removed && removed.error().kind == ErrorKind::io) return removed;
    if (removed.ok()) {
      unsynced_.push_back(sequence);
    } else {
      waiting_quarantined_.emplace_back(id, sequence);
    }
  }
  return {};
}

}  // namespace holdfast
