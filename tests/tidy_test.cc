// The house rules that a machine can see (CONTRIBUTING.md says why each is one). A rule that is broken names file and
// line.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

const fs::path kRoot = HOLDFAST_SOURCE_DIR;

// May be included by the rooms to the right of it.
const std::vector<std::string> kRooms = {"crypto", "spool", "forwarder", "appliance"};

// Which files may know a library: a whole name, or a prefix that ends in a slash or a dash.
const std::map<std::string, Names> kDoors = {
    {"sodium.h", {"crypto/"}},
    {"sqlite3.h", {"spool/database.cc", "spool/database_vfs.cc"}},
    {"nats/", {"forwarder/nats_connection"}},
    {"curl/", {"forwarder/http_client.cc"}},
    {"libpq-fe.h", {"forwarder/postgres_connection.cc"}},
    {"mysql.h", {"forwarder/mysql_connection.cc"}},
    {"zlib.h", {"forwarder/gzip.cc"}},
    {"zstd.h", {"forwarder/zstd.cc"}},
    {"toml++/", {"appliance/config_table.cc"}},
    {"CLI/", {"appliance/command_line.cc"}},
    {"spdlog/", {"appliance/log.cc"}},
    {"systemd/", {"appliance/systemd.cc"}},
    {"boost/json", {"spool/payload_field.cc", "forwarder/nats_json.cc", "forwarder/http_json.cc", "appliance/json.cc"}},
    {"boost/asio", {"appliance/control_"}},
    {"boost/beast", {"appliance/control_"}},
};

constexpr std::size_t kColumns = 120;
constexpr std::size_t kHeaderLines = 150;
constexpr std::size_t kSourceLines = 500;
constexpr std::size_t kSuiteLines = 800;  // of a test's cases: each is read alone
// Longer than a page of its kind, each for a reason that outweighs the page.
const std::map<std::string, const char*> kLongFor = {
    {"tests/crypto/vector_maker.h", "writes crypto/vectors: the one second implementation of the format, in one place"},
    {"tests/crypto/key_vector_maker.h", "likewise"},
};

struct Line {
  std::string file;
  std::size_t number = 0;
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const Line& line) {
  return out << line.file << ":" << line.number << ": " << line.text;
}

bool starts_with_any(const std::string& text, const Names& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

// Every file of the project beneath `top`, by its name from the root. Build trees and the repository's own are not the
// project.
std::vector<std::string> files_under(const std::string& top, const Names& endings) {
  std::vector<std::string> found;
  if (!fs::exists(kRoot / top)) return found;
  for (auto entry = fs::recursive_directory_iterator(kRoot / top); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string name = fs::relative(entry->path(), kRoot).generic_string();
    if (entry->is_directory()) {
      if (name == ".git" || name == "build" || name == ".cache") entry.disable_recursion_pending();
      continue;
    }
    const std::string file = entry->path().filename().string();
    if (endings.empty() ||
        std::any_of(endings.begin(), endings.end(), [&](auto& ending) { return file.ends_with(ending); }))
      found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> room_sources() {
  std::vector<std::string> found;
  for (const auto& room : kRooms)
    for (auto& file : files_under(room, {".h", ".cc"})) found.push_back(std::move(file));
  return found;
}

std::vector<std::string> all_sources() {
  std::vector<std::string> found = room_sources();
  for (auto& file : files_under("tests", {".h", ".cc"})) found.push_back(std::move(file));
  return found;
}

std::string content(const std::string& file) {
  std::ifstream in(kRoot / file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

std::vector<Line> lines_of(const std::string& file) {
  std::vector<Line> lines;
  std::istringstream in(content(file));
  for (std::string text; std::getline(in, text);) lines.push_back({file, lines.size() + 1, text});
  return lines;
}

std::vector<Line> lines_that_match(const std::vector<std::string>& files, const std::string& pattern) {
  const std::regex wanted(pattern, std::regex::ECMAScript | std::regex::optimize);
  std::vector<Line> found;
  for (const auto& file : files)
    for (auto& line : lines_of(file))
      if (std::regex_search(line.text, wanted)) found.push_back(std::move(line));
  return found;
}

void expect_none(const std::vector<Line>& lines, const std::string& rule) {
  for (const auto& line : lines) ADD_FAILURE() << rule << "\n  " << line;
}

TEST(Tidy, RoomsIncludeOnlyAlongTheArrows) {
  const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  for (const auto& file : room_sources()) {
    const std::string room = file.substr(0, file.find('/'));
    const auto here = std::find(kRooms.begin(), kRooms.end(), room);
    for (const auto& line : lines_of(file)) {
      std::smatch match;
      if (!std::regex_search(line.text, match, include)) continue;
      const std::string other = match[1].str().substr(0, match[1].str().find('/'));
      EXPECT_NE(std::find(kRooms.begin(), here + 1, other), here + 1)
          << "a room may include itself and the rooms before it, by their path from the root\n  " << line;
    }
  }
}

TEST(Tidy, EachLibraryEntersByOneDoor) {
  const std::regex include("^\\s*#\\s*include\\s*<([^>]+)>");
  for (const auto& file : room_sources()) {
    for (const auto& line : lines_of(file)) {
      std::smatch match;
      if (!std::regex_search(line.text, match, include)) continue;
      for (const auto& [header, doors] : kDoors) {
        if (!match[1].str().starts_with(header)) continue;
        EXPECT_TRUE(file.ends_with(".cc")) << "a library's header in a header of ours opens a second door\n  " << line;
        EXPECT_TRUE(starts_with_any(file, doors))
            << header << " is known to " << *doors.begin() << " alone\n  " << line;
      }
    }
  }
}

TEST(Tidy, EverySourceIsCompiled) {
  const fs::path commands = fs::path(HOLDFAST_BUILD_DIR) / "compile_commands.json";
  ASSERT_TRUE(fs::exists(commands)) << commands;
  std::ifstream in(commands);
  std::ostringstream text;
  text << in.rdbuf();
  std::vector<std::string> sources = all_sources();
  std::erase_if(sources, [](const std::string& file) { return file.ends_with(".h"); });
  ASSERT_FALSE(sources.empty());
  for (const auto& file : sources)
    EXPECT_NE(text.str().find((kRoot / file).string() + "\""), std::string::npos) << file << " is in no program";
}

std::size_t page_of(const std::string& file) {
  if (file.ends_with(".h")) return kHeaderLines;
  return file.ends_with("_test.cc") ? kSuiteLines : kSourceLines;
}

TEST(Tidy, FilesFitTheirPage) {
  for (const auto& file : all_sources()) {
    if (kLongFor.count(file) != 0) continue;
    EXPECT_LE(lines_of(file).size(), page_of(file)) << file << " asks to be two ideas";
  }
  for (const auto& [file, reason] : kLongFor)
    EXPECT_GT(lines_of(file).size(), page_of(file)) << file << " needs no exception (" << reason << ")";
}

TEST(Tidy, LinesFitTheirPage) {
  expect_none(lines_that_match(all_sources(), "^.{" + std::to_string(kColumns + 1) + ",}$"), "more than a line holds");
}

TEST(Tidy, HeadersGuardThemselves) {
  for (const auto& file : all_sources()) {
    if (!file.ends_with(".h")) continue;
    const auto lines = lines_of(file);
    const auto first = std::find_if(lines.begin(), lines.end(), [](const Line& line) {
      return !line.text.empty() && !line.text.starts_with("//");
    });
    EXPECT_TRUE(first != lines.end() && first->text == "#pragma once") << file;
  }
}

TEST(Tidy, HeadersBeginWithTheirPromise) {
  for (const auto& file : room_sources()) {
    if (!file.ends_with(".h")) continue;
    EXPECT_TRUE(content(file).starts_with("// ")) << file << " does not say what it promises";
  }
}

TEST(Tidy, NothingIsLeftForLater) {
  auto files = all_sources();
  for (const auto* top : {"packaging", "systemd", ".ci"})
    for (auto& file : files_under(top, {})) files.push_back(std::move(file));
  for (auto& file : files_under("tests", {".sh", "CMakeLists.txt"})) files.push_back(std::move(file));
  // Put together here, so that this line does not match itself.
  expect_none(lines_that_match(files, std::string("\\b(TO") + "DO|FIX" + "ME|XX" + "X|HA" + "CK)\\b"),
              "what is left for later is an issue, not a remark");
}

TEST(Tidy, TestsWaitForConditionsAndNotForTime) {
  auto files = files_under("tests", {".h", ".cc", ".sh"});
  // Where polling lives: it looks, and pauses before it looks again.
  std::erase_if(files, [](const std::string& file) { return file.starts_with("tests/support/"); });
  expect_none(lines_that_match(
                  files, std::string("sleep_") + "(for|until)\\s*\\(|\\b(u|nano)sleep" + "\\s*\\(|\\bsleep" + " [0-9]"),
              "poll a condition with a deadline (tests/support)");
}

TEST(Tidy, OnlyTheProcessSpeaks) {
  auto files = room_sources();
  // The two places that say why the program stops at a bug; and the appliance is the process.
  std::erase_if(files, [](const std::string& file) {
    return file.starts_with("appliance/") || file == "crypto/require.h" || file == "spool/result.cc";
  });
  expect_none(lines_that_match(files, "std::(cout|cerr|clog)\\b|\\b(std::)?(printf|fprintf|puts|fputs|syslog)\\s*\\("),
              "rooms report upward; they do not print or log");
}

TEST(Tidy, NothingOfOursThrows) {
  expect_none(lines_that_match(room_sources(), "^[^/\"]*\\bthrow\\b[^\"]*;"), "failures are values");
}

// The last column of a rule in spool/INVARIANTS.md is the test that fails when the rule is taken out of the code; the
// code says where it keeps the rule.
TEST(Tidy, EveryRuleOfTheSpoolIsCitedByCode_AndNamesATestThatThereIs) {
  std::string tests;
  for (const auto& file : files_under("tests", {"_test.cc"})) tests += content(file);
  const std::regex rule("^\\| (R[0-9]+) \\|.*\\| `(?:[A-Za-z]+\\.)?([A-Za-z0-9_]+)` \\|$");
  std::string code;
  for (const auto& file : files_under("spool", {".h", ".cc"})) code += content(file);
  std::size_t rules = 0;
  for (const auto& line : lines_of("spool/INVARIANTS.md")) {
    if (!line.text.starts_with("| R")) continue;
    std::smatch match;
    ASSERT_TRUE(std::regex_search(line.text, match, rule)) << line.file << ":" << line.number << " names no test";
    EXPECT_NE(tests.find(", " + match[2].str() + ")"), std::string::npos) << match[1] << ": no test " << match[2];
    EXPECT_TRUE(std::regex_search(code, std::regex("\\b" + match[1].str() + "\\b")))
        << match[1] << ": no code cites it";
    ++rules;
  }
  EXPECT_GE(rules, 50u);
}

// What a target says of a lane or of itself: an operator meets it in `status`, and looks it up.
TEST(Tidy, EveryCodeOfATarget_HasItsText_AndItsRowInTheTable) {
  const std::string texts = content("forwarder/code.cc"), table = content("docs/targets.md");
  const std::regex said("\\b(retry|hold_lane|hold_target)\\(\"([a-z_]+)\"");
  std::size_t codes = 0;
  for (const auto& line : lines_that_match(room_sources(), "(retry|hold_lane|hold_target)\\(\"")) {
    for (auto match = std::sregex_iterator(line.text.begin(), line.text.end(), said); match != std::sregex_iterator();
         ++match, ++codes) {
      const std::string code = (*match)[2];
      EXPECT_NE(texts.find("{\"" + code + "\", "), std::string::npos)
          << "forwarder/code.cc has no text for\n  " << line;
      EXPECT_NE(table.find("`" + code + "`"), std::string::npos) << "docs/targets.md has no row for\n  " << line;
    }
  }
  EXPECT_GE(codes, 10u);
}

// The host of a URL as it stands in a text; none where it is a variable or a pattern.
bool may_be_named(const std::string& host) {
  if (host.find('.') == std::string::npos) return true;  // "hub", "localhost": names of nobody
  static const std::regex known(
      "(127\\.[0-9.]+|0\\.0\\.0\\.0|192\\.0\\.2\\.[0-9]+|198\\.51\\.100\\.[0-9]+|203\\.0\\.113\\.[0-9]+)"
      "|(.*\\.)?(example|invalid|test)(\\.(com|org|net))?|(www\\.)?(apache\\.org|nats\\.io)",
      std::regex::ECMAScript);
  return std::regex_match(host, known);
}

TEST(Tidy, NoMachineOfOursIsNamed) {
  const auto files =
      files_under(".", {".h", ".cc", ".md", ".txt", ".json", ".sh", ".toml", ".service", ".1", ".5", "run"});
  ASSERT_GT(files.size(), 50u);
  expect_none(
      lines_that_match(files, std::string("(^|[^A-Za-z0-9_.])/(wo") + "rk|ho" + "me|Us" + "ers|mn" + "t)/[a-z]"),
      "a path of somebody's machine");
  const std::regex url("[a-z0-9+]://(?:[^/@\\s\"']*@)?([A-Za-z0-9][A-Za-z0-9.-]*)");
  for (const auto& line : lines_that_match(files, "://")) {
    for (auto match = std::sregex_iterator(line.text.begin(), line.text.end(), url); match != std::sregex_iterator();
         ++match)
      EXPECT_TRUE(may_be_named((*match)[1].str())) << "a host that is neither loopback nor an example\n  " << line;
  }
}

}  // namespace
}  // namespace holdfast
