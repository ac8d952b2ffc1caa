#include "appliance/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

class KeyFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(init_crypto()); }

  Result<SecretKey> read(const std::string& path) { return read_key({path, ""}, ::geteuid()); }
  std::string refusal(const std::string& path) {
    const auto key = read(path);
    return key.ok() ? "taken" : key.error().text;
  }
  void write(const std::string& path, const std::string& text, mode_t mode = 0600) {
    std::ofstream(path) << text;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TemporaryDirectory directory_;
};

TEST_F(KeyFile, WhatKeygenMakes_IsReadBackUnderTheSameId) {
  const std::string path = directory_ / "k";
  const auto id = make_key_file(path);
  ASSERT_TRUE(id.ok()) << id.error().text;
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  const auto key = read(path);
  ASSERT_TRUE(key.ok()) << key.error().text;
  EXPECT_EQ(key->id(), *id);
}

TEST_F(KeyFile, ASecondKeygen_OverwritesNothing) {
  const std::string path = directory_ / "k";
  ASSERT_TRUE(make_key_file(path).ok());
  const std::string before = content(path);
  const auto again = make_key_file(path);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::exists);
  EXPECT_EQ(content(path), before);
}

TEST_F(KeyFile, Keygen_FollowsNoSymlink) {
  const std::string aim = directory_ / "aim";
  ASSERT_EQ(::symlink(aim.c_str(), (directory_ / "link").c_str()), 0);
  EXPECT_FALSE(make_key_file(directory_ / "link").ok());
  EXPECT_NE(::access(aim.c_str(), F_OK), 0);
}

TEST_F(KeyFile, Keygen_WhereThereIsNoDirectory_SaysSo) {
  const auto made = make_key_file(directory_ / "absent/k");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().text.find("No such file or directory"), std::string::npos);
}

TEST_F(KeyFile, Keygen_WhateverTheUmask_MakesAPrivateFile) {
  const mode_t before = ::umask(0);
  const auto made = make_key_file(directory_ / "k");
  ::umask(before);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(read(directory_ / "k").ok());
}

TEST_F(KeyFile, OneThatOthersCanRead_IsRefused) {
  ASSERT_TRUE(make_key_file(directory_ / "k").ok());
  for (const mode_t mode : {0640u, 0604u, 0660u, 0601u}) {
    ASSERT_EQ(::chmod((directory_ / "k").c_str(), mode), 0);
    EXPECT_NE(refusal(directory_ / "k").find("can be read or written by others"), std::string::npos);
  }
  ASSERT_EQ(::chmod((directory_ / "k").c_str(), 0400), 0);
  EXPECT_EQ(refusal(directory_ / "k"), "taken");
}

TEST_F(KeyFile, OneOfAStrangers_IsRefused_OneOfTheServices_IsTaken) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string path = directory_ / "k";
  ASSERT_TRUE(make_key_file(path).ok());
  ASSERT_EQ(::chown(path.c_str(), 4321, 0), 0);
  EXPECT_NE(refusal(path).find("belongs to user id 4321"), std::string::npos);
  EXPECT_TRUE(read_key({path, ""}, 4321).ok());
}

TEST_F(KeyFile, WhatIsNoFile_IsRefused) {
  ASSERT_TRUE(make_key_file(directory_ / "k").ok());
  ASSERT_EQ(::symlink((directory_ / "k").c_str(), (directory_ / "link").c_str()), 0);
  EXPECT_NE(refusal(directory_ / "link").find("is a symbolic link"), std::string::npos);
  EXPECT_NE(refusal(directory_.path()).find("is not a regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  EXPECT_NE(refusal(directory_ / "fifo").find("is not a regular file"), std::string::npos);
  const auto absent = read(directory_ / "absent");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().kind, ErrorKind::not_found);
}

TEST_F(KeyFile, WhatIsNoKey_IsRefused_AndNotQuoted) {
  ASSERT_TRUE(make_key_file(directory_ / "k").ok());
  const std::string good = content(directory_ / "k");
  for (const std::string& text :
       {std::string(), std::string("secret words"), good.substr(1), good + good, good + std::string(300, 'x'),
        std::string(64, '0'), good.substr(0, good.size() - 2)}) {
    write(directory_ / "bad", text);
    const std::string why = refusal(directory_ / "bad");
    EXPECT_NE(why.find("does not hold a key"), std::string::npos) << why;
    EXPECT_EQ(why.find("secret words"), std::string::npos);
  }
}

TEST_F(KeyFile, ACredential_IsFoundInItsDirectory) {
  ASSERT_TRUE(make_key_file(directory_ / "spool.key").ok());
  ASSERT_EQ(::chmod((directory_ / "spool.key").c_str(), 0440), 0);  // as systemd shows one that an access list guards
  ASSERT_EQ(::setenv("CREDENTIALS_DIRECTORY", directory_.path().c_str(), 1), 0);
  EXPECT_TRUE(read_key({"", "spool.key"}, ::geteuid()).ok());
  EXPECT_EQ(read_key({"", "other.key"}, ::geteuid()).error().kind, ErrorKind::not_found);
  ASSERT_EQ(::unsetenv("CREDENTIALS_DIRECTORY"), 0);
  EXPECT_EQ(read_key({"", "spool.key"}, ::geteuid()).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace holdfast
