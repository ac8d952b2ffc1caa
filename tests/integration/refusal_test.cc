// What an operator can get wrong: it is refused with file, line and key, or with one line that says what to do, and
// nothing on the disk is touched.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNowhere = "nats://127.0.0.1:1";  // nobody listens there

std::string source() {
  return nats_source(kNowhere, kEdgeStream);
}

std::string hub() {
  return nats_target("hub", kNowhere);
}

// Names and contents of everything beneath a directory.
std::map<std::string, std::string> picture(const std::string& directory) {
  std::map<std::string, std::string> picture;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    picture[entry.path().string()] = entry.is_regular_file() ? file_text(entry.path().string()) : "";
  return picture;
}

std::uint64_t lines_in(const std::string& text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

struct Mistake {
  const char* name;
  std::string tables;
  std::string spool;
  const char* key;  // that the answer names
};

std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.name;
}

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamedByFileLineAndKey_AndNothingIsMade) {
  Appliance box(HOLDFAST_BINARY, {GetParam().tables, GetParam().spool});
  const ProgramAnswer check = box.command({"check"});
  EXPECT_EQ(check.code, 2) << check.out << check.err;
  EXPECT_TRUE(check.out.empty()) << check.out;
  EXPECT_NE(check.err.find(box.config_file() + ":"), std::string::npos) << check.err;
  EXPECT_NE(check.err.find(GetParam().key), std::string::npos) << check.err;

  const ProgramAnswer json = box.command({"check", "--json"});
  EXPECT_EQ(json.code, 2);
  const auto answer = parse_json(json.out);
  ASSERT_TRUE(answer.has_value()) << json.out;
  ASSERT_FALSE((*answer)["errors"].list().empty());
  EXPECT_GT((*answer)["errors"].list()[0]["line"].count(), 0u);

  EXPECT_EQ(box.run_to_the_end(), 2) << box.log();
  EXPECT_TRUE(box.log_has(GetParam().key)) << box.log();
  EXPECT_FALSE(fs::exists(box.spool()));
}

INSTANTIATE_TEST_SUITE_P(
    Of, Mistakes,
    testing::Values(Mistake{"UnknownKey", source() + hub(), "max_byte = \"1GiB\"", "spool.max_byte"},
                    Mistake{"UnknownTable", source() + hub() + "[hub]\nurl = \"x\"\n\n", "", "hub"},
                    Mistake{"WrongType", source() + hub(), "max_records = \"many\"", "spool.max_records"},
                    Mistake{"SizeThatIsNone", source() + hub(), "journal_bytes = \"64 megs\"", "spool.journal_bytes"},
                    Mistake{"ImpossibleSize", source() + hub(), "max_bytes = \"1KiB\"", "spool.max_bytes"},
                    Mistake{"SameTargetTwice", source() + hub() + hub(), "", "target.name"},
                    Mistake{"SameSourceTwice", source() + source() + hub(), "", "source.name"},
                    Mistake{"RouteToNobody", source() + hub() + route({">"}, {"hob"}), "", "route.targets"},
                    Mistake{"RouteToOneTargetTwice", source() + hub() + route({">"}, {"hub", "hub"}), "",
                            "route.targets"},
                    Mistake{"NoTarget", source(), "", "target"},
                    Mistake{"NoUrl", source() + "[[target]]\nname = \"hub\"\ntype = \"nats\"\n\n", "", "target.url"},
                    Mistake{"NotToml", "[[target\n\n", "", "holdfast.toml"}),
    [](const auto& with) { return std::string(with.param.name); });

// The one line that says why a start was refused.
std::string refusal(Appliance& box, int code) {
  EXPECT_EQ(box.run_to_the_end(), code) << box.log();
  const std::string said = box.log_of_this_start();
  EXPECT_EQ(lines_in(said), 1u) << said;
  return said;
}

TEST(Refusal, OfAMissingKeyFile_SaysWhichFile_AndMakesNothing) {
  Appliance box(HOLDFAST_BINARY, {source() + hub()});
  fs::remove(box.key_file());
  const std::string said = refusal(box, 2);
  EXPECT_NE(said.find(box.key_file()), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(box.spool()));
}

TEST(Refusal, OfAKeyFileThatOthersCanRead_SaysWhichFile) {
  Appliance box(HOLDFAST_BINARY, {source() + hub()});
  fs::permissions(box.key_file(), fs::perms::group_read, fs::perm_options::add);
  const std::string said = refusal(box, 2);
  EXPECT_NE(said.find(box.key_file()), std::string::npos) << said;
}

TEST(Refusal, OfASpoolThatOthersCanRead_SaysSo) {
  Appliance box(HOLDFAST_BINARY, {source() + hub()});
  box.start();
  ASSERT_EQ(box.terminate(), 0);
  ::chmod(box.spool().c_str(), 0755);
  const std::string said = refusal(box, 2);
  EXPECT_NE(said.find("others"), std::string::npos) << said;
}

TEST(Refusal, OfASecondProcessOnOneSpool_IsTemporary) {
  Appliance box(HOLDFAST_BINARY, {source() + hub()});
  box.start();
  const ProgramAnswer second = box.command({"run"});
  EXPECT_EQ(second.code, 75) << second.err;
  EXPECT_TRUE(box.running());
  EXPECT_FALSE(box.status().is_null());
}

// A backlog that waits for its key.
class WrongKey : public testing::Test {
 protected:
  WrongKey() {
    scene.hub.kill();
    scene.publish(1, 200);
    scene.box.start();
    EXPECT_TRUE(in_files(scene.box, 200));
    const ProgramAnswer keygen = run_program({scene.box.program(), "keygen", scene.box.directory() + "/other.key"});
    other_id = keygen.out;
    EXPECT_EQ(scene.box.terminate(), 0);
  }

  // The key that the spool was made with, put aside; another in its place.
  void swap_keys() {
    fs::rename(scene.box.key_file(), scene.box.directory() + "/right.key");
    fs::copy_file(scene.box.directory() + "/other.key", scene.box.key_file());
    ::chmod(scene.box.key_file().c_str(), 0600);
  }
  void swap_back() { fs::rename(scene.box.directory() + "/right.key", scene.box.key_file()); }

  Scene scene;
  std::string other_id;
};

TEST_F(WrongKey, IsRefusedInOneLineThatNamesTheKeyWanted_AndNothingIsTouched) {
  const auto before = picture(scene.box.state());
  swap_keys();
  const std::string said = refusal(scene.box, 2);
  EXPECT_NE(said.find("key"), std::string::npos) << said;
  // The id of the key that is wanted: 16 hexadecimal digits, and not the one that is there.
  const std::string id = other_id.substr(other_id.find("key id ") + 7, 16);
  std::string wanted;
  for (std::size_t at = 0; at + 16 <= said.size() && wanted.empty(); ++at) {
    const std::string_view word = std::string_view(said).substr(at, 16);
    if (word.find_first_not_of("0123456789abcdef") == word.npos && word != id) wanted = word;
  }
  EXPECT_FALSE(wanted.empty()) << said;
  EXPECT_EQ(picture(scene.box.state()), before);

  const ProgramAnswer offline = scene.box.command({"audit"});
  EXPECT_NE(offline.code, 0);
  EXPECT_EQ(picture(scene.box.state()), before);

  swap_back();
  scene.hub.start();
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 200));
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 200), kEachOnce);
}

}  // namespace
}  // namespace holdfast
