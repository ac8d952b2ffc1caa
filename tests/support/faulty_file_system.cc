#include "tests/support/faulty_file_system.h"

namespace holdfast {

namespace {

// Makes the call unless the gate has an error for it.
template <typename Call>
auto through(const Gate& gate, std::string_view verb, const std::string& path, Call call) -> decltype(call()) {
  if (const auto error = gate(verb, path)) return *error;
  return call();
}

class FaultyFile : public File {
 public:
  FaultyFile(std::unique_ptr<File> inner, Gate gate, std::string path)
      : inner_(std::move(inner)), gate_(std::move(gate)), path_(std::move(path)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return through(gate_, "read", path_, [&] { return inner_->read_at(offset, out); });
  }
  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    return through(gate_, "write", path_, [&] { return inner_->write_at(offset, bytes); });
  }
  Result<std::uint64_t> size() override {
    return through(gate_, "size", path_, [&] { return inner_->size(); });
  }
  Result<void> truncate(std::uint64_t size) override {
    return through(gate_, "truncate", path_, [&] { return inner_->truncate(size); });
  }
  Result<void> sync() override {
    return through(gate_, "sync", path_, [&] { return inner_->sync(); });
  }

 private:
  const std::unique_ptr<File> inner_;
  const Gate gate_;
  const std::string path_;
};

Result<std::unique_ptr<File>> gated(Result<std::unique_ptr<File>> file, const Gate& gate, const std::string& path) {
  if (!file.ok()) return file.error();
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*std::move(file), gate, path));
}

}  // namespace

Result<std::unique_ptr<File>> FaultyFileSystem::open(const std::string& path, OpenMode mode) {
  return through(gate_, "open", path, [&] { return gated(inner_.open(path, mode), gate_, path); });
}

Result<void> FaultyFileSystem::make_directory(const std::string& path) {
  return through(gate_, "make_directory", path, [&] { return inner_.make_directory(path); });
}

Result<void> FaultyFileSystem::remove(const std::string& path) {
  return through(gate_, "remove", path, [&] { return inner_.remove(path); });
}

Result<void> FaultyFileSystem::rename(const std::string& from, const std::string& to, Rename rename) {
  return through(gate_, "rename", from, [&] { return inner_.rename(from, to, rename); });
}

Result<NameInfo> FaultyFileSystem::inspect(const std::string& path) {
  return through(gate_, "inspect", path, [&] { return inner_.inspect(path); });
}

Result<void> FaultyFileSystem::list(const std::string& path,
                                    const std::function<bool(std::string_view, NameType)>& visit) {
  return through(gate_, "list", path, [&] { return inner_.list(path, visit); });
}

Result<void> FaultyFileSystem::sync_directory(const std::string& path) {
  return through(gate_, "sync_directory", path, [&] { return inner_.sync_directory(path); });
}

Result<void> FaultyFileSystem::sync_all() {
  return through(gate_, "sync_all", "", [&] { return inner_.sync_all(); });
}

Result<SpaceInfo> FaultyFileSystem::space() {
  return through(gate_, "space", "", [&] { return inner_.space(); });
}

Result<std::unique_ptr<File>> FaultyFileSystem::lock(const std::string& path) {
  return through(gate_, "lock", path, [&] { return gated(inner_.lock(path), gate_, path); });
}

}  // namespace holdfast
