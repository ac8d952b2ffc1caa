// Any FileSystem, with a gate before every call: the test may count there, wait there, or fail the call. For faults of
// the real file system; the simulated one has its own.
#pragma once

#include <functional>
#include <optional>

#include "spool/file_system.h"

namespace holdfast {

// Asked before every call of the FileSystem and its files, by whichever thread makes it: the error to return instead,
// or nothing. Verbs: open, make_directory, remove, rename, inspect, list, sync_directory, sync_all, space, lock; read,
// write, size, truncate, sync.
using Gate = std::function<std::optional<Error>(std::string_view verb, std::string_view path)>;

class FaultyFileSystem : public FileSystem {
 public:
  // `inner` and what the gate refers to must outlive this and its files.
  FaultyFileSystem(FileSystem& inner, Gate gate) : inner_(inner), gate_(std::move(gate)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to, Rename rename) override;
  Result<NameInfo> inspect(const std::string& path) override;
  Result<void> list(const std::string& path, const std::function<bool(std::string_view, NameType)>& visit) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> sync_all() override;
  Result<SpaceInfo> space() override;
  Result<std::unique_ptr<File>> lock(const std::string& path) override;

 private:
  FileSystem& inner_;
  const Gate gate_;
};

}  // namespace holdfast
