#include "tests/support/remove_tree.h"

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kThreads = 16;
constexpr std::size_t kFew = 64;  // directories: below, as fast without threads

void remove_files(const fs::path& directory) {
  std::error_code ignored;
  for (fs::directory_iterator at(directory, ignored), end; at != end; at.increment(ignored)) {
    if (ignored) return;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) continue;
    fs::remove(at->path(), ignored);
  }
}

}  // namespace

void remove_tree(const std::string& path) {
  std::error_code ignored;
  std::vector<fs::path> directories;
  for (fs::recursive_directory_iterator at(path, ignored), end; at != end; at.increment(ignored)) {
    if (ignored) break;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) directories.push_back(at->path());
  }
  if (directories.size() > kFew) {
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < directories.size(); at = next++) remove_files(directories[at]);
      });
    }
  }
  fs::remove_all(path, ignored);
}

}  // namespace holdfast
