// What only the real file system can show: symlinks on the way, pipes, full and read-only disks, mounts, limits, other
// processes, old kernels. The rest of the contract is in file_system_test.cc.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <vector>

#include "spool/posix_file.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

std::unique_ptr<FileSystem> opened(const std::string& root) {
  auto fs = open_posix_file_system(root);
  CHECK(fs.ok());
  return *std::move(fs);
}

// Runs `story` in a process of its own; what it returned.
template <typename Story>
int exit_code_of(Story story) {
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) ::_exit(story());
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int kGood = 0;
constexpr int kCannotMount = 77;

// In a child: a small tmpfs on `path`, seen by this process alone and gone with it.
bool mount_small_disk(const std::string& path) {
  const bool apart = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  return apart && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k,nr_inodes=8") == 0;
}

// In this process and all that it becomes, the kernel answers these calls with an error.
struct Refusal {
  std::uint32_t call;
  std::uint32_t error;
};
bool refuse_calls(std::initializer_list<Refusal> refusals) {
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const Refusal& refusal : refusals) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal.call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | refusal.error));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// renameat2 knows no flags, and there is no openat2.
bool pretend_old_kernel() {
  return refuse_calls({{SYS_openat2, ENOSYS}, {SYS_renameat2, EINVAL}});
}

// Ends a story as failed.
#define STORY_EXPECT(condition)                                             \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "line %d: expected %s\n", __LINE__, #condition); \
      return 1;                                                             \
    }                                                                       \
  } while (false)

TEST(PosixFileSystem, ASymlinkOnTheWay_IsNotFollowed) {
  const TemporaryDirectory directory;
  const auto fs = opened(directory.path());
  ASSERT_TRUE(fs->make_directory("real").ok());
  ASSERT_TRUE(fs->open("real/a", OpenMode::create).ok());
  std::filesystem::create_symlink("real", directory / "link");
  for (const OpenMode mode : {OpenMode::read, OpenMode::read_direct, OpenMode::write, OpenMode::create}) {
    EXPECT_EQ(fs->open("link/a", mode).error().kind, ErrorKind::invalid);
  }
  EXPECT_EQ(fs->open("link/b", OpenMode::create_new).error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs->make_directory("link/d").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs->remove("link/a").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs->rename("link/a", "b", Rename::replace).error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs->rename("real/a", "link/b", Rename::no_replace).error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs->inspect("link/a").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs->sync_directory("link").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs->list("link", [](std::string_view, NameType) { return true; }).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(fs->inspect("real/a").ok());
}

TEST(PosixFileSystem, ASymlinkAsRoot_IsRefused) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "real");
  std::filesystem::create_symlink("real", directory / "link");
  EXPECT_TRUE(open_posix_file_system(directory / "real").ok());
  EXPECT_TRUE(open_posix_file_system(directory / "real//").ok());
  EXPECT_EQ(open_posix_file_system(directory / "link").error().kind, ErrorKind::invalid);
  EXPECT_EQ(open_posix_file_system(directory / "link/").error().kind, ErrorKind::invalid);
  EXPECT_EQ(open_posix_file_system(directory / "missing").error().kind, ErrorKind::not_found);
}

TEST(PosixFileSystem, APipeInPlaceOfAFile_NeitherHangsNorOpens) {
  const TemporaryDirectory directory;
  const auto fs = opened(directory.path());
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const OpenMode mode : {OpenMode::read, OpenMode::read_direct, OpenMode::write, OpenMode::create}) {
    EXPECT_EQ(fs->open("pipe", mode).error().kind, ErrorKind::invalid);
  }
  EXPECT_EQ(fs->inspect("pipe")->type, NameType::other);
}

TEST(PosixFileSystem, NoDescriptorLeft_IsUnavailable) {
  const TemporaryDirectory directory;
  EXPECT_EQ(exit_code_of([&] {
              const auto fs = opened(directory.path());
              STORY_EXPECT(fs->open("a", OpenMode::create).ok());
              const rlimit none = {3, 3};
              STORY_EXPECT(::setrlimit(RLIMIT_NOFILE, &none) == 0);
              STORY_EXPECT(fs->open("a", OpenMode::read).error().kind == ErrorKind::unavailable);
              STORY_EXPECT(fs->open("b", OpenMode::create_new).error().kind == ErrorKind::unavailable);
              STORY_EXPECT(fs->inspect("a").error().kind == ErrorKind::unavailable);
              // A sync that could not be tried has not succeeded.
              STORY_EXPECT(fs->sync_directory("").error().kind == ErrorKind::io);
              return kGood;
            }),
            kGood);
}

TEST(PosixFileSystem, AFullDisk_PausesAndKeepsWhatIsThere) {
  const TemporaryDirectory directory;
  const int code = exit_code_of([&] {
    if (!mount_small_disk(directory.path())) return kCannotMount;
    const auto fs = opened(directory.path());
    STORY_EXPECT(fs->space()->type == "tmpfs" && !fs->space()->safe && !fs->space()->syncs_whole);
    const auto file = *fs->open("a", OpenMode::create_new);
    const Bytes half(32 * 1024, 'a');
    const Bytes more(64 * 1024, 'b');
    STORY_EXPECT(file->write_at(0, half).ok());
    // It stops half-way, and is undone.
    STORY_EXPECT(file->write_at(half.size(), more).error().kind == ErrorKind::full);
    STORY_EXPECT(*file->size() == half.size());
    STORY_EXPECT(file->write_at(half.size(), half).ok());
    STORY_EXPECT(file->write_at(2 * half.size(), half).error().kind == ErrorKind::full);
    STORY_EXPECT(file->write_at(0, half).ok());
    STORY_EXPECT(*read_file(*fs, "a", 1 << 20) == Bytes(64 * 1024, 'a'));
    return kGood;
  });
  if (code == kCannotMount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(code, kGood);
}

TEST(PosixFileSystem, AWriteThatStopsInTheMiddleOfAFile_IsIo) {
  const TemporaryDirectory directory;
  const int code = exit_code_of([&] {
    if (!mount_small_disk(directory.path())) return kCannotMount;
    const auto fs = opened(directory.path());
    const auto file = *fs->open("a", OpenMode::create_new);
    STORY_EXPECT(file->truncate(1 << 20).ok());
    STORY_EXPECT(file->write_at(0, Bytes(128 * 1024, 'a')).error().kind == ErrorKind::io);
    STORY_EXPECT(*file->size() == 1 << 20);
    return kGood;
  });
  if (code == kCannotMount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(code, kGood);
}

TEST(PosixFileSystem, NoInodeLeft_IsFull) {
  const TemporaryDirectory directory;
  const int code = exit_code_of([&] {
    if (!mount_small_disk(directory.path())) return kCannotMount;
    const auto fs = opened(directory.path());
    ErrorKind kind = ErrorKind::exists;
    for (int i = 0; i < 20 && kind == ErrorKind::exists; ++i) {
      const auto made = fs->make_directory(std::to_string(i));
      if (!made.ok()) kind = made.error().kind;
    }
    STORY_EXPECT(kind == ErrorKind::full);
    STORY_EXPECT(fs->space()->free_inodes == 0);
    STORY_EXPECT(fs->open("a", OpenMode::create_new).error().kind == ErrorKind::full);
    return kGood;
  });
  if (code == kCannotMount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(code, kGood);
}

TEST(PosixFileSystem, AReadOnlyDisk_IsFullForWhatMakes_AndBrokenForWhatRemoves) {
  const TemporaryDirectory directory;
  const int code = exit_code_of([&] {
    if (!mount_small_disk(directory.path())) return kCannotMount;
    const auto fs = opened(directory.path());
    STORY_EXPECT(fs->open("a", OpenMode::create_new).ok());
    STORY_EXPECT(::mount(nullptr, directory.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
    STORY_EXPECT(fs->open("b", OpenMode::create_new).error().kind == ErrorKind::full);
    STORY_EXPECT(fs->make_directory("d").error().kind == ErrorKind::full);
    STORY_EXPECT(fs->rename("a", "b", Rename::replace).error().kind == ErrorKind::full);
    STORY_EXPECT(fs->open("a", OpenMode::write).error().kind == ErrorKind::io);
    STORY_EXPECT(fs->remove("a").error().kind == ErrorKind::io);
    STORY_EXPECT(fs->open("a", OpenMode::read).ok());
    return kGood;
  });
  if (code == kCannotMount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(code, kGood);
}

TEST(PosixFileSystem, AnotherDiskBeneathTheRoot_IsNotEntered) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "records");
  const int code = exit_code_of([&] {
    if (!mount_small_disk(directory / "records")) return kCannotMount;
    if (std::getenv("HOLDFAST_TEST_OLD_KERNEL") != nullptr) return kCannotMount;
    const auto fs = opened(directory.path());
    STORY_EXPECT(fs->open("records/a", OpenMode::create_new).error().kind == ErrorKind::invalid);
    STORY_EXPECT(fs->sync_directory("records").error().kind == ErrorKind::invalid);
    STORY_EXPECT(fs->make_directory("records/ab").error().kind == ErrorKind::invalid);
    return kGood;
  });
  if (code == kCannotMount) GTEST_SKIP() << "may not mount, or an old kernel";
  EXPECT_EQ(code, kGood);
}

TEST(PosixFileSystem, WhatWeMayNotTouch_IsInvalid) {
  const TemporaryDirectory directory;
  const auto fs = opened(directory.path());
  ASSERT_TRUE(fs->make_directory("d").ok());
  std::ofstream(directory / "secret") << "x";
  std::filesystem::permissions(directory / "secret", std::filesystem::perms::none);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  EXPECT_EQ(exit_code_of([&] {
              constexpr uid_t kNobody = 65534;
              if (::geteuid() == 0) STORY_EXPECT(::setresuid(kNobody, kNobody, kNobody) == 0);
              STORY_EXPECT(fs->open("secret", OpenMode::read).error().kind == ErrorKind::invalid);
              if (::geteuid() != kNobody) return kGood;
              STORY_EXPECT(fs->open("d/a", OpenMode::create_new).error().kind == ErrorKind::invalid);
              STORY_EXPECT(fs->remove("secret").error().kind == ErrorKind::invalid);
              STORY_EXPECT(!fs->inspect("secret")->ours);
              return kGood;
            }),
            kGood);
}

TEST(PosixFileSystem, ALockOfAnotherProcess_IsRespected_AndEndsWithIt) {
  const TemporaryDirectory directory;
  const auto fs = opened(directory.path());
  const auto try_lock = [&] { return fs->lock("LOCK").ok() ? 1 : 2; };
  {
    const auto lock = fs->lock("LOCK");
    ASSERT_TRUE(lock.ok());
    // A program that is started meanwhile does not inherit it.
    EXPECT_EQ(exit_code_of([&] { return try_lock(); }), 2);
  }
  EXPECT_EQ(exit_code_of([&] { return try_lock(); }), 1);
  EXPECT_TRUE(fs->lock("LOCK").ok());
}

// --- A sync fails once (I4)

int syncs_tried = 0;
int interrupted_sync(int) {
  ++syncs_tried;
  errno = EINTR;
  return -1;
}
int full_sync(int) {
  ++syncs_tried;
  errno = ENOSPC;
  return -1;
}
int good_sync(int) {
  ++syncs_tried;
  return 0;
}

TEST(SyncPoint, ASyncThatFailed_IsNeverTriedAgain_WhateverTheReason) {
  for (auto* failing : {&interrupted_sync, &full_sync}) {
    SyncPoint point;
    syncs_tried = 0;
    EXPECT_TRUE(point.sync(&good_sync, 0, "sync", "a").ok());
    EXPECT_EQ(point.sync(failing, 0, "sync", "a").error().kind, ErrorKind::io);
    EXPECT_EQ(point.sync(&good_sync, 0, "sync", "a").error().kind, ErrorKind::io);
    EXPECT_EQ(syncs_tried, 2);
  }
}

TEST(PosixFileSystem, ASyncThatTheKernelFails_IsIo_AndStaysSo) {
  const TemporaryDirectory directory;
  const auto fs = opened(directory.path());
  const auto file = *fs->open("a", OpenMode::create);
  const auto try_syncs = [&](std::uint32_t error) {
    if (!refuse_calls({{SYS_fdatasync, error}, {SYS_fsync, error}, {SYS_syncfs, error}})) return kCannotMount;
    for (int i = 0; i < 2; ++i) {
      STORY_EXPECT(file->sync().error().kind == ErrorKind::io);
      STORY_EXPECT(fs->sync_all().error().kind == ErrorKind::io);
      STORY_EXPECT(fs->sync_directory("").error().kind == ErrorKind::io);
    }
    return kGood;
  };
  for (const std::uint32_t error : {EIO, ENOSPC, EDQUOT, EINTR, EROFS, ENOMEM, EBADF}) {
    const int code = exit_code_of([&] { return try_syncs(error); });
    if (code == kCannotMount) GTEST_SKIP() << "may not filter system calls";
    EXPECT_EQ(code, kGood) << error;
  }
}

TEST(PosixFile, AnInterruptedCall_IsMadeAgain) {
  int calls = 0;
  errno = 0;
  EXPECT_EQ(uninterrupted([&] {
              errno = EINTR;
              return ++calls < 3 ? -1 : 7;
            }),
            7);
  EXPECT_EQ(calls, 3);
}

// --- Old kernels

int run_on_old_kernel(const std::filesystem::path& program) {
  return exit_code_of([&] {
    if (!pretend_old_kernel()) return kCannotMount;
    ::setenv("HOLDFAST_TEST_OLD_KERNEL", "1", 1);
    ::execl(program.c_str(), program.c_str(), "--gtest_filter=*Posix*-*OldKernel*", "--gtest_brief=1", nullptr);
    return 1;
  });
}

TEST(PosixFileSystem, OnAnOldKernel_TheSameContractHolds) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const int code = run_on_old_kernel(self);
  if (code == kCannotMount) GTEST_SKIP() << "may not filter system calls";
  EXPECT_EQ(code, kGood);
  const std::filesystem::path contract = self.parent_path() / "spool_file_system_test";
  if (!std::filesystem::exists(contract)) GTEST_SKIP() << "spool_file_system_test is not built";
  EXPECT_EQ(run_on_old_kernel(contract), kGood);
}

TEST(PosixFileSystem, OnAnOldKernel_OneSyncForAllIsNotBelieved) {
  const TemporaryDirectory directory;
  EXPECT_EQ(exit_code_of([&] {
              if (!pretend_old_kernel()) return kGood;
              STORY_EXPECT(!opened(directory.path())->space()->syncs_whole);
              return kGood;
            }),
            kGood);
}

}  // namespace
}  // namespace holdfast
