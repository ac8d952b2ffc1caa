// Directories that are more than flat, compressed files, and an archive, as worlds of the contract.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>

#include "forwarder/archive_line.h"
#include "forwarder/archive_target.h"
#include "tests/forwarder/target_worlds.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {

// A directory that can be taken away.
class DirectoryWorld : public TargetWorld {
 public:
  DirectoryWorld() { EXPECT_EQ(::mkdir(path().c_str(), 0700), 0); }
  void break_upstream() override { ASSERT_EQ(std::rename(path().c_str(), (path() + ".away").c_str()), 0); }
  void repair_upstream() override { ASSERT_EQ(std::rename((path() + ".away").c_str(), path().c_str()), 0); }

 protected:
  std::string path() const { return directory_ / "out"; }
  OpenDirectory opener() const {
    return [path = path()] { return open_posix_file_system(path); };
  }
  // Calls with the path and content of each file beneath.
  template <typename Visit>
  void each_file(FileSystem& fs, const std::string& directory, Visit visit) const {
    std::vector<std::string> directories;
    EXPECT_TRUE(fs.list(directory, [&](std::string_view name, NameType type) {
                    const std::string at = directory.empty() ? std::string(name) : directory + '/' + std::string(name);
                    if (type == NameType::directory) {
                      directories.push_back(at);
                    } else {
                      EXPECT_NE(name.front(), '.');
                      const auto bytes = read_file(fs, at, 64 << 20);
                      EXPECT_TRUE(bytes.ok());
                      if (bytes.ok()) visit(std::string(name), *bytes);
                    }
                    return true;
                  }).ok());
    for (const std::string& inner : directories) each_file(fs, inner, visit);
  }

 private:
  const TemporaryDirectory directory_;
};

class LayoutWorld : public DirectoryWorld {
 public:
  LayoutWorld(FileLayout layout, Compression compression)
      : options_{FileFormat::raw, "contract", layout, compression} {}

  std::unique_ptr<Target> target() override { return std::make_unique<FileTarget>(opener(), options_); }
  // By the names that are asked for in the tests: the wire keys msg:<number>.
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    auto fs = open_posix_file_system(path());
    if (!fs.ok()) return copies;
    each_file(**fs, "", [&](const std::string& name, const Bytes& bytes) {
      const auto content = decompress(bytes, options_.compression, 64 << 20);
      EXPECT_TRUE(content) << name;
      if (content) copies.emplace("msg:" + name.substr(6, name.find('.') - 6), as_text(*content));
    });
    return copies;
  }

 private:
  const FileTargetOptions options_;
};

class ArchiveWorld : public DirectoryWorld {
 public:
  std::unique_ptr<Target> target() override {
    ArchiveOptions options;
    options.writer = "contract";
    options.rotate_bytes = 10'000;
    return std::make_unique<ArchiveTarget>(opener(), options);
  }
  // Of a line only that it is whole, and whose it is: what is in it is a matter of archive_target_test.
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    auto fs = open_posix_file_system(path());
    if (!fs.ok()) return copies;
    each_file(**fs, "", [&](const std::string& name, const Bytes& bytes) {
      if (!name.ends_with(".ndjson")) return;
      std::string_view rest = as_text(bytes);
      for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
        const std::string_view line = rest.substr(0, end);
        EXPECT_TRUE(read_archive_line(line)) << name;
        const std::string_view key = line.substr(8, line.find('"', 8) - 8);
        const std::size_t payload = line.find("\"payload\":\"") + 11;
        copies.emplace(key, "base64:" + std::string(line.substr(payload, line.find('"', payload) - payload)));
        rest.remove_prefix(end + 1);
      }
      EXPECT_TRUE(rest.empty()) << name;
    });
    return copies;
  }
};

}  // namespace holdfast
