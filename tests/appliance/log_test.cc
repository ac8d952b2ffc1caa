#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "appliance/log.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// What goes to standard error while `talk` runs.
template <typename Talk>
std::string said(Talk talk) {
  ::testing::internal::CaptureStderr();
  talk();
  return ::testing::internal::GetCapturedStderr();
}

TEST(LogLine, Text_HasTimeLevelAndFields) {
  RecordId id;
  id.bytes[0] = 0xab;
  EXPECT_EQ(
      render_line(LineForm::text, LogLevel::warning, 0, "target is on hold",
                  {{"target", ConfigName{"hub"}}, {"waiting", 12u}, {"change", -3}, {"record", id}, {"after", 1500ms}}),
      "1970-01-01 00:00:00Z warning target is on hold target=hub waiting=12 change=-3 record=ab00000000000000 "
      "after=1.500s");
}

TEST(LogLine, Journal_HasThePriorityInFront) {
  EXPECT_EQ(render_line(LineForm::journal, LogLevel::error, 0, "leaving", {}), "<3>leaving");
  EXPECT_EQ(render_line(LineForm::journal, LogLevel::warning, 0, "a", {}), "<4>a");
  EXPECT_EQ(render_line(LineForm::journal, LogLevel::info, 0, "a", {{"why", "b c"}}), "<6>a why=\"b c\"");
  EXPECT_EQ(render_line(LineForm::journal, LogLevel::debug, 0, "a", {}), "<7>a");
}

TEST(LogLine, Json_IsOneObject) {
  EXPECT_EQ(render_line(LineForm::json, LogLevel::info, 0, "a", {{"name", ConfigName{"x"}}, {"n", 1u}}),
            R"({"time":"1970-01-01 00:00:00Z","level":"info","text":"a","name":"x","n":1})");
}

TEST(LogLine, WhateverAFileIsCalled_TheLineStaysOne) {
  const Error error{ErrorKind::invalid, "cannot open a\nb\x1b[2J\"c\\"};
  EXPECT_EQ(render_line(LineForm::journal, LogLevel::info, 0, "a", {{"error", error}}),
            "<6>a error=\"cannot open a?b?[2J\\\"c\\\\\"");
  const std::string line = render_line(LineForm::json, LogLevel::info, 0, "a", {{"error", error}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Error german{ErrorKind::invalid, "cannot open \xc3\xbc\xff"};
  EXPECT_EQ(
      render_line(LineForm::text, LogLevel::info, 0, "a", {{"error", german}}),
      render_line(LineForm::text, LogLevel::info, 0, "a", {{"error", Error{ErrorKind::invalid, "cannot open ???"}}}));
  const std::string flood(100'000, 'x');
  EXPECT_LT(render_line(LineForm::text, LogLevel::info, 0, "a", {{"w", OwnWords{flood}}}).size(), 1000u);
}

TEST(RepeatLimit, ABurstPasses_ThenAMinuteIsQuiet_ThenTheCountIsTold) {
  RepeatLimit limit;
  const auto ask = [&](Nanoseconds now) {
    return limit.admit(now, "cannot connect", {{"target", ConfigName{"hub"}}, {"n", now.count()}});
  };
  for (std::uint32_t n = 0; n < RepeatLimit::kBurst; ++n) EXPECT_TRUE(ask(1s + n * 1ms).admitted);
  for (int n = 0; n < 100; ++n) EXPECT_FALSE(ask(2s + n * 1ms).admitted);
  const auto after = ask(62s);
  EXPECT_TRUE(after.admitted);
  EXPECT_EQ(after.held_back, 100u);
  EXPECT_EQ(ask(63s).held_back, 0u);
}

TEST(RepeatLimit, AnotherTarget_IsAnotherKind) {
  RepeatLimit limit;
  for (int n = 0; n < 10; ++n) (void)limit.admit(1s, "cannot connect", {{"target", ConfigName{"a"}}});
  EXPECT_FALSE(limit.admit(1s, "cannot connect", {{"target", ConfigName{"a"}}}).admitted);
  EXPECT_TRUE(limit.admit(1s, "cannot connect", {{"target", ConfigName{"b"}}}).admitted);
}

TEST(RepeatLimit, ManyKinds_AreBounded) {
  RepeatLimit limit;
  for (std::size_t n = 0; n < 10 * RepeatLimit::kKinds; ++n) {
    const std::string name = std::to_string(n);
    EXPECT_TRUE(limit.admit(1s, "a", {{"target", ConfigName{name}}}).admitted);
  }
}

TEST(Log, OnlyTheAskedLevels_AreSaid) {
  const std::string text = said([] {
    Log log(LogLevel::warning, LogFormat::text);
    log.info("quiet");
    log.warning("loud");
    log.error("louder");
  });
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_NE(text.find("warning loud\n"), std::string::npos);
  EXPECT_NE(text.find("error   louder\n"), std::string::npos);
}

TEST(Log, BracesAndPercentSigns_AreOnlyText) {
  const std::string text = said([] {
    Log(LogLevel::info, LogFormat::text).info("a {} %v", {{"f", OwnWords{"{0} %d {"}}});
  });
  EXPECT_NE(text.find("a {} %v f=\"{0} %d {\"\n"), std::string::npos) << text;
}

TEST(Log, WhatIsHeldBack_IsCounted) {
  const std::string text = said([] {
    Log log(LogLevel::info, LogFormat::json);
    for (int n = 0; n < 20; ++n) log.info("again");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), RepeatLimit::kBurst);
}

}  // namespace
}  // namespace holdfast
