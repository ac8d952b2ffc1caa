#include "forwarder/file_readback.h"

#include "forwarder/file_name.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostRead = 64u << 20;

// The text of a file system's error names the file, and the file is named after the key (I7).
Error failed() {
  return {ErrorKind::unavailable, "the target's directory cannot be looked into"};
}

class FileReadback : public Readback {
 public:
  FileReadback(OpenDirectory open, FileTargetOptions target) : open_(std::move(open)), target_(std::move(target)) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    const auto directory = open_();
    if (!directory.ok()) return failed();
    std::vector<Held> all;
    for (const Delivery& delivery : records) {
      const std::string name = name_of(delivery);
      const auto info = (*directory)->inspect(name);
      if (!info.ok() && info.error().kind != ErrorKind::not_found) return failed();
      all.push_back({});
      if (!info.ok()) continue;
      const auto bytes = read_file(**directory, name, kMostRead);
      if (!bytes.ok()) return failed();
      const FileContent content(*delivery.record, delivery.wire_key, target_.format);
      all.back() = {1, content.is_same_record(*bytes), {}};
    }
    return all;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    const auto directory = open_();
    if (!directory.ok()) return failed();
    for (const Delivery& delivery : records) {
      const Result<void> removed = (*directory)->remove(name_of(delivery));
      if (!removed.ok() && removed.error().kind != ErrorKind::not_found) return failed();
    }
    return (*directory)->sync_directory("").ok() ? Result<void>() : failed();
  }

 private:
  std::string name_of(const Delivery& delivery) const {
    return record_file_name(delivery.wire_key, file_suffix(target_.format));
  }

  const OpenDirectory open_;
  const FileTargetOptions target_;
};

}  // namespace

std::unique_ptr<Readback> make_file_readback(OpenDirectory open, FileTargetOptions target) {
  return std::make_unique<FileReadback>(std::move(open), std::move(target));
}

}  // namespace holdfast
