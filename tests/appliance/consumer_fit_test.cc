#include "appliance/consumer_fit.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

StreamInfo stream_of(std::vector<std::string> subjects) {
  StreamInfo stream;
  stream.subjects = std::move(subjects);
  return stream;
}

ConsumerConfig asked_for(std::vector<std::string> subjects) {
  return asked_consumer({"holdfast", std::move(subjects), std::chrono::seconds(30)});
}

TEST(ConsumerFit, WhatWasAskedFor_Fits) {
  const ConsumerConfig asked = asked_for({"a.>"});
  EXPECT_TRUE(is_ours(asked));
  const ConsumerFit fit = fit_of(asked, asked, stream_of({"a.>", "b"}));
  EXPECT_EQ(fit.hold, "");
  EXPECT_EQ(fit.drift, "");
}

TEST(ConsumerFit, FilterThatIsMissing_FitsOnlyWhereTheStreamHasNothingElse) {
  const ConsumerConfig asked = asked_for({"a.>"});
  ConsumerConfig made = asked;
  made.filters.clear();
  EXPECT_EQ(fit_of(asked, made, stream_of({"a.>"})).hold, "");
  EXPECT_EQ(fit_of(asked, made, stream_of({"a.b", "a.c.>"})).hold, "");
  EXPECT_NE(fit_of(asked, made, stream_of({"a.>", "b"})).hold, "");
  EXPECT_NE(fit_of(asked, made, stream_of({">"})).hold, "");
  StreamInfo sourced = stream_of({"a.>"});
  sourced.only_subjects = false;  // who knows what comes from the others
  EXPECT_NE(fit_of(asked, made, sourced).hold, "");
}

TEST(ConsumerFit, SeveralSubjectsThatWereIgnored_AreSaid) {
  const ConsumerConfig asked = asked_for({"a", "b"});
  ConsumerConfig made = asked;
  made.filters.clear();
  EXPECT_NE(fit_of(asked, made, stream_of({"a", "b", "c"})).hold.find("2.10"), std::string::npos);
}

TEST(ConsumerFit, OtherFilters_AreHeld) {
  const ConsumerConfig asked = asked_for({"a.*"});
  for (const char* filter : {"a.b", "a.>", ">", "b"}) {
    ConsumerConfig made = asked;
    made.filters = {filter};
    EXPECT_NE(fit_of(asked, made, stream_of({">"})).hold, "") << filter;
  }
  const ConsumerConfig all = asked_for({});
  ConsumerConfig some = all;
  some.filters = {"a.b"};
  EXPECT_NE(fit_of(all, some, stream_of({"a.>"})).hold, "");
  some.filters = {"a.>"};
  EXPECT_EQ(fit_of(all, some, stream_of({"a.b"})).hold, "");
}

TEST(ConsumerFit, WhatCannotBeAcknowledgedOneByOne_IsHeld) {
  const ConsumerConfig asked = asked_for({});
  for (const char* policy : {"none", "all", ""}) {
    ConsumerConfig made = asked;
    made.ack_policy = policy;
    EXPECT_NE(fit_of(asked, made, stream_of({"a"})).hold, "") << policy;
  }
  ConsumerConfig push = asked;
  push.push = true;
  EXPECT_NE(fit_of(asked, push, stream_of({"a"})).hold, "");
}

TEST(ConsumerFit, PayloadsThatWouldBeLost_AreHeld) {
  const ConsumerConfig asked = asked_for({});
  ConsumerConfig made = asked;
  made.headers_only = true;
  EXPECT_NE(fit_of(asked, made, stream_of({"a"})).hold, "");
  EXPECT_EQ(fit_of(made, made, stream_of({"a"})).hold, "");
  EXPECT_EQ(fit_of(made, asked, stream_of({"a"})).hold, "");
}

TEST(ConsumerFit, SmallDifferences_AreDrift) {
  const ConsumerConfig asked = asked_for({});
  ConsumerConfig made = asked;
  made.description.clear();
  made.ack_wait = std::chrono::seconds(10);
  made.max_deliver = 3;
  made.max_ack_pending = 1000;
  const ConsumerFit fit = fit_of(asked, made, stream_of({"a"}));
  EXPECT_FALSE(is_ours(made));
  EXPECT_EQ(fit.hold, "");
  for (const char* what : {"ack_wait is 10 s", "max_deliver is 3", "max_ack_pending is 1000"}) {
    EXPECT_NE(fit.drift.find(what), std::string::npos) << fit.drift;
  }
}

TEST(ConsumerFit, WhatWasAskedForInPlaceOfTheUsual_IsNoDrift) {
  ConsumerWish wish;
  wish.deliver_policy = "by_start_sequence";
  wish.start_sequence = 7;
  wish.headers_only = true;
  wish.max_deliver = 5;
  wish.backoff = {std::chrono::seconds(1), std::chrono::seconds(5)};
  const ConsumerConfig asked = asked_consumer(wish);
  ConsumerConfig made = asked;
  made.ack_wait = std::chrono::seconds(1);  // a server takes the first of the backoff
  EXPECT_EQ(fit_of(asked, made, stream_of({"a"})).drift, "");
  made.start_sequence = 100;  // where it was made again
  EXPECT_EQ(fit_of(asked, made, stream_of({"a"})).drift, "");
  made.description.clear();
  made.headers_only = false;
  made.max_deliver = -1;
  made.backoff.clear();
  const std::string drift = fit_of(asked, made, stream_of({"a"})).drift;
  for (const char* what : {"no backoff", "payloads, too", "max_deliver is not limited", "deliver_policy"}) {
    EXPECT_NE(drift.find(what), std::string::npos) << drift;
  }
}

TEST(PatternCovers, IsNotFooledByWildcardsOfTheNarrowOne) {
  EXPECT_TRUE(pattern_covers("a.>", "a.b.>"));
  EXPECT_TRUE(pattern_covers("a.>", "a.*"));
  EXPECT_TRUE(pattern_covers(">", "a.>"));
  EXPECT_TRUE(pattern_covers("a.*", "a.b"));
  EXPECT_TRUE(pattern_covers("*.>", "a.>"));
  EXPECT_FALSE(pattern_covers("a.*", "a.>"));
  EXPECT_FALSE(pattern_covers("a.b.>", "a.>"));
  EXPECT_FALSE(pattern_covers("a.*.>", "a.>"));
  EXPECT_FALSE(pattern_covers("a.b", "a.*"));
}

}  // namespace
}  // namespace holdfast
