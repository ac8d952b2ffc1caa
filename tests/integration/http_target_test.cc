// The program with an HTTP endpoint upstream: whatever the endpoint does meanwhile, everything is there at the end,
// once, without a restart.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "tests/integration/scene.h"
#include "tests/support/http_inbox.h"

namespace holdfast {
namespace {

TEST(HttpUpstream, EveryTroubleInTurn_NothingIsLost) {
  constexpr std::uint64_t kEach = 200;
  HttpInbox inbox(HttpInbox::Takes::raw);
  const TemporaryDirectory directory;
  const std::string token = directory / "token";
  const auto renew = [&](const char* text) {
    std::ofstream(token + ".new") << text << "\n";
    ASSERT_EQ(std::rename((token + ".new").c_str(), token.c_str()), 0);
  };
  renew("first");
  NatsServer edge;
  JetStreamClient client(edge.url());
  client.make_stream("EDGE", {"telemetry.>"});
  Appliance box(
      HOLDFAST_BINARY,
      {nats_source(edge.url(), "EDGE") + "[[target]]\nname = \"api\"\ntype = \"http\"\nurl = \"" + inbox.url() +
           "\"\ntimeout = \"1s\"\nbearer_file = \"" + token + "\"\nexpect = { body = \"stored\" }\n",
       ""});
  box.start();
  StubAnswer hangs, portal, cut;
  hangs.manner = Manner::hang;
  portal = {200, {}, "<html>Please log in</html>"};
  cut = {201, {}, "stored", Nanoseconds(0), Manner::cut_in_body};
  std::uint64_t sent = 0;
  const auto publish = [&] {
    client.publish_many("telemetry.a", sent + 1, kEach, 200);
    sent += kEach;
  };
  for (const StubAnswer& trouble : {StubAnswer{500, {}, ""}, StubAnswer{503, {{"Retry-After", "1"}}, ""},
                                    StubAnswer{401, {}, ""}, StubAnswer{403, {}, ""}, hangs, portal, cut}) {
    inbox.answer_all(trouble);
    const int before = inbox.stub().requests();
    publish();
    EXPECT_TRUE(eventually([&] { return inbox.stub().requests() > before && taken(box, sent); }, kPatience));
    inbox.well();
    EXPECT_TRUE(eventually([&] { return inbox.held().size() == sent; }, kPatience))
        << trouble.status << ' ' << inbox.held().size() << ' ' << pretty_json_text(box.status());
  }
  inbox.stub().stop();
  publish();
  EXPECT_TRUE(taken(box, sent));
  renew("second");
  inbox.stub().start();
  EXPECT_TRUE(delivered(box, sent)) << pretty_json_text(box.status());
  EXPECT_EQ(inbox.held().size(), sent);
  const Json audit = box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  EXPECT_EQ(audit["quarantined"].count(), 0u);
  EXPECT_EQ(audit["lost"].count(), 0u);
  EXPECT_FALSE(box.log_has("Please log in"));
  EXPECT_FALSE(box.log_has("second"));
}

}  // namespace
}  // namespace holdfast
