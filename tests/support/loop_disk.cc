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
  trouble_ = ::geteuid() == 0 ? make(mebibytes, inodes) : "mounting a loop device takes root";
  if (mounted()) trouble_ = mount();
}

LoopDisk::~LoopDisk() {
  if (mounted()) ::umount2(path().c_str(), MNT_DETACH);
}

std::string LoopDisk::make(unsigned mebibytes, unsigned inodes) {
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
  return {};
}

std::string LoopDisk::mount() {
  const ProgramAnswer mounted = run_program({"mount", "-o", "loop,errors=remount-ro", directory_ / "image", path()});
  return mounted.code == 0 ? "" : "no loop device can be mounted here: " + mounted.err;
}

bool LoopDisk::fail() {
  const ProgramAnswer device = run_program({"findmnt", "--noheadings", "--output", "SOURCE", path()});
  const std::string name = device.out.substr(device.out.rfind('/') + 1);
  std::ofstream trigger("/sys/fs/ext4/" + name.substr(0, name.find('\n')) + "/trigger_fs_error");
  trigger << "a test" << std::endl;
  return trigger.good();
}

bool LoopDisk::mend() {
  if (::umount2(path().c_str(), 0) != 0) return false;
  constexpr int kMended = 1;  // e2fsck(8)
  if (run_program({"e2fsck", "-f", "-y", directory_ / "image"}).code > kMended) return false;
  trouble_ = mount();
  return mounted();
}

}  // namespace holdfast
