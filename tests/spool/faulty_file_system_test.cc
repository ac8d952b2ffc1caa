#include "tests/support/faulty_file_system.h"

#include <gtest/gtest.h>

#include "tests/support/simulated_file_system.h"

namespace holdfast {
namespace {

TEST(FaultyFileSystem, TheGate_SeesEveryCall_AndMayFailIt) {
  SimulatedFileSystem inner;
  std::string refused = "sync";
  std::string seen;
  FaultyFileSystem fs(inner, [&](std::string_view verb, std::string_view path) -> std::optional<Error> {
    seen += std::string(verb) + " " + std::string(path) + "; ";
    if (verb != refused) return std::nullopt;
    return Error{ErrorKind::io, "refused"};
  });
  auto file = fs.open("a", OpenMode::create);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->write_at(0, as_bytes("x")).ok());
  EXPECT_EQ((*file)->sync().error().text, "refused");
  EXPECT_EQ(inner.counts().file_syncs, 0U);
  refused = "open";
  EXPECT_FALSE(fs.open("b", OpenMode::create).ok());
  EXPECT_EQ(seen, "open a; write a; sync a; open b; ");
  EXPECT_EQ(inner.files(), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace holdfast
