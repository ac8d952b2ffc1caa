#include "tests/support/loop_disk.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/program.h"

namespace holdfast {
namespace {

std::string failed(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

}  // namespace

LoopDisk::LoopDisk(unsigned mebibytes, unsigned inodes) {
  trouble_ = ::geteuid() == 0 ? mount(mebibytes, inodes) : "mounting a loop device takes root";
}

LoopDisk::~LoopDisk() {
  if (mounted()) ::umount2(path().c_str(), MNT_DETACH);
}

std::string LoopDisk::mount(unsigned mebibytes, unsigned inodes) {
  const std::string image = directory_ / "image";
  std::ofstream(image).close();
  std::error_code error;
  std::filesystem::resize_file(image, std::uint64_t{mebibytes} << 20, error);
  if (error) return "no room for an image: " + error.message();
  std::vector<std::string> make{"mkfs.ext4", "-q", "-F", "-m", "0"};
  if (inodes != 0) make.insert(make.end(), {"-N", std::to_string(inodes)});
  make.push_back(image);
  const ProgramAnswer made = run_program(make);
  if (made.code != 0) return "mkfs.ext4 fails (package e2fsprogs): " + made.err;
  if (::mkdir(path().c_str(), 0700) != 0) return failed("mkdir");
  if (::unshare(CLONE_NEWNS) != 0) return failed("no mount namespace");
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed("no private mounts");
  const ProgramAnswer mounted = run_program({"mount", "-o", "loop", image, path()});
  if (mounted.code != 0) return "no loop device can be mounted here: " + mounted.err;
  return {};
}

}  // namespace holdfast
