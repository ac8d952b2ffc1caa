// A small ext4 of its own on a loop device, for tests of full disks. It is mounted in a mount namespace of the calling
// thread and the programs that it starts from then on, so that nothing of it is left when the test dies.
//
// Takes root. The thread that makes it is the one that can see it.
#pragma once

#include <string>

#include "tests/support/temporary_directory.h"

namespace holdfast {

class LoopDisk {
 public:
  // `inodes` 0: as mkfs thinks.
  explicit LoopDisk(unsigned mebibytes, unsigned inodes = 0);
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  bool mounted() const { return trouble_.empty(); }
  const std::string& trouble() const { return trouble_; }  // why it is not there: the reason of a skipped test
  std::string path() const { return directory_ / "disk"; }

  // From now on nothing can be written any more: the kernel is made to believe that it found the file system damaged
  // (ext4, errors=remount-ro). False where a kernel offers no way to do that.
  bool fail();
  // Unmounted, checked, mounted again. Nobody may be using it.
  bool mend();

 private:
  std::string make(unsigned mebibytes, unsigned inodes);
  std::string mount();

  TemporaryDirectory directory_;
  std::string trouble_;
};

}  // namespace holdfast
