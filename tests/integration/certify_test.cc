// `holdfast certify`, the built program against real servers: what is safe, what is safe under conditions, and what is
// not; led through its own proxy, with TLS too.
//
// That a process killed between an upstream's confirmation and its own note of it delivers once more, under the same
// key, is shown with the whole appliance: kill_test.cc, hub_duplicates_test.cc.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/scene.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr auto kLimit = std::chrono::minutes(4);  // for one certification on a loaded machine; usually half a minute

struct Certified {
  int code = -1;
  Json answer;
  std::string talk;

  const Json& property(const std::string& name) const {
    for (const Json& one : answer["properties"].list()) {
      if (one["name"].text() == name) return one;
    }
    static const Json kNone;
    return kNone;
  }
  std::string verdict(const std::string& name) const { return property(name)["verdict"].text(); }
  std::vector<std::string> with(const std::string& verdict) const {
    std::vector<std::string> names;
    for (const Json& one : answer["properties"].list()) {
      if (one["verdict"].text() == verdict) names.push_back(one["name"].text());
    }
    return names;
  }
};

std::ostream& operator<<(std::ostream& out, const Certified& certified) {
  return out << "exit code " << certified.code << '\n' << pretty_json_text(certified.answer) << '\n' << certified.talk;
}

// A configuration without a key, a spool or a service: certification needs none.
class Configuration {
 public:
  explicit Configuration(const std::string& tables) {
    std::ofstream(file()) << "[appliance]\nsite = \"truck-07\"\nstate_dir = \"" << directory_ / "state"
                          << "\"\n[spool]\nkey_file = \"" << directory_ / "no.key"
                          << "\"\n"
                          << tables;
  }
  std::string file() const { return directory_ / "holdfast.toml"; }

  Certified certify(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {HOLDFAST_BINARY, "certify", file(), "--json"});
    const ProgramAnswer said = run_program(arguments, kLimit);
    return {said.code, parse_json(said.out).value_or(Json()), said.err};
  }

 private:
  const TemporaryDirectory directory_;
};

std::string hub_tables(const std::string& url, const std::string& more = "") {
  return nats_target("hub", url, more) + route({"telemetry.>"}, {"hub"});
}

std::uint64_t messages(const NatsOptions& server) {
  return JetStreamClient(server).stream(kHubStream).messages;
}

TEST(Certify, AHubBehindTls_IsSafe_UnderTheConditionsThatItStates) {
  CertificateAuthority authority;
  const auto pair = authority.issue("hub", "DNS:localhost");
  NatsServerOptions options;
  options.tls_cert = pair.certificate;
  options.tls_key = pair.key;
  NatsServer hub(options);
  NatsOptions way;
  way.url = hub.url();
  way.tls_ca = authority.ca();
  JetStreamClient(way).make_stream(kHubStream, {"telemetry.>"});

  const Configuration configuration(hub_tables(hub.url(), "tls_ca = \"" + authority.ca() + "\""));
  const Certified certified = configuration.certify({"--target", "hub"});
  EXPECT_EQ(certified.code, 0) << certified;
  EXPECT_EQ(certified.answer["safety"].text(), "safe_with_conditions") << certified;
  EXPECT_EQ(certified.with("conditional"), (std::vector<std::string>{"duplicate_window", "replicas"})) << certified;
  EXPECT_EQ(certified.with("passed"),
            (std::vector<std::string>{"delivery", "content", "repeat", "concurrent", "batch", "order", "lost_answer",
                                      "unreachable", "slow_answer", "silence", "oversize", "in_the_end", "removal"}))
      << certified;
  EXPECT_EQ(certified.answer["subject"].text(), "telemetry.certify");
  EXPECT_FALSE(certified.answer["may_be_left"].flag());
  EXPECT_EQ(messages(way), 0u);
}

TEST(Certify, AHubThatForgetsKeysAtOnce_IsNotSafe) {
  NatsServer hub;
  StreamRequest request{.name = kHubStream, .subjects = {"telemetry.>"}};
  request.duplicate_window = std::chrono::milliseconds(100);
  JetStreamClient(hub.url()).make_stream(request);
  const Certified certified = Configuration(hub_tables(hub.url())).certify({"--target", "hub"});
  EXPECT_EQ(certified.code, 1) << certified;
  EXPECT_EQ(certified.answer["safety"].text(), "not_safe") << certified;
  EXPECT_EQ(certified.verdict("slow_answer"), "failed") << certified;
  EXPECT_EQ(certified.verdict("in_the_end"), "failed") << certified;
  EXPECT_EQ(certified.verdict("delivery"), "passed") << certified;
  NatsOptions way;
  way.url = hub.url();
  EXPECT_EQ(messages(way), 0u) << "second copies are removed, too";
}

TEST(Certify, WhileTheServiceRuns_ItIsNotDisturbed_AndTheRecordsInTheStreamStay) {
  Scene scene;
  scene.box.start();
  scene.publish(1, 500);
  ASSERT_TRUE(delivered(scene.box, 500));
  const ProgramAnswer said =
      scene.box.command({"certify", "--target", "hub", "--subject", "telemetry.certify"}, kLimit);
  EXPECT_EQ(said.code, 0) << said.out << said.err;
  EXPECT_NE(said.out.find("target hub: SAFE WITH CONDITIONS"), std::string::npos) << said.out;
  scene.publish(501, 500);
  ASSERT_TRUE(delivered(scene.box, 1000)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1000), kEachOnce);
  EXPECT_TRUE(scene.box.audit()["balanced"].flag());
}

TEST(Certify, Interrupted_ItRemovesWhatItSent) {
  NatsServer hub;
  JetStreamClient client(hub.url());
  client.make_stream(kHubStream, {"telemetry.>"});
  const Configuration configuration(hub_tables(hub.url()));
  const TemporaryDirectory directory;
  Program program;
  program.start({HOLDFAST_BINARY, "certify", configuration.file(), "--target", "hub"},
                {directory / "out", directory / "err"});
  ASSERT_TRUE(eventually([&] { return file_text(directory / "err").find("trying: lost_answer") != std::string::npos; },
                         kPatience));
  EXPECT_GT(client.stream(kHubStream).messages, 0u);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(kLimit), 75) << file_text(directory / "err");
  EXPECT_NE(file_text(directory / "out").find("NOT PROVEN"), std::string::npos) << file_text(directory / "out");
  EXPECT_EQ(client.stream(kHubStream).messages, 0u);
}

TEST(Certify, Killed_ItsRecordsAreRemovedByTheNameOfTheRun) {
  NatsServer hub;
  JetStreamClient client(hub.url());
  client.make_stream(kHubStream, {"telemetry.>"});
  client.publish("telemetry.certify", "somebody else's");
  const Configuration configuration(hub_tables(hub.url()));
  const TemporaryDirectory directory;
  Program program;
  program.start({HOLDFAST_BINARY, "certify", configuration.file(), "--target", "hub"},
                {directory / "out", directory / "err"});
  ASSERT_TRUE(eventually([&] { return file_text(directory / "err").find("trying: lost_answer") != std::string::npos; },
                         kPatience));
  program.kill();
  const std::string talk = file_text(directory / "err");
  const std::size_t at = talk.find("run ") + 4;
  const std::string run = talk.substr(at, talk.find(',', at) - at);
  EXPECT_GT(client.stream(kHubStream).messages, 1u);
  const Certified removed = configuration.certify({"--target", "hub", "--remove", run});
  EXPECT_EQ(removed.code, 0) << removed;
  EXPECT_EQ(client.stream(kHubStream).messages, 1u) << "of others nothing is removed";
}

TEST(Certify, WhatCannotBeReached_IsNotProven) {
  const std::string nowhere = "nats://127.0.0.1:" + std::to_string(free_port());
  const Certified down = Configuration(hub_tables(nowhere)).certify({"--target", "hub"});
  EXPECT_EQ(down.code, 75) << down;
  EXPECT_EQ(down.answer["safety"].text(), "unproven") << down;
  EXPECT_NE(down.property("delivery")["reason"].text().find("unreachable"), std::string::npos) << down;

  NatsServer hub;  // without a stream
  const Certified streamless = Configuration(hub_tables(hub.url())).certify({"--target", "hub"});
  EXPECT_EQ(streamless.code, 75) << streamless;
  EXPECT_NE(streamless.property("delivery")["reason"].text().find("no_stream"), std::string::npos) << streamless;
}

class CertifyFiles : public testing::TestWithParam<const char*> {};

TEST_P(CertifyFiles, ADirectory_IsSafe_AndIsLeftAsItWas) {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  fs::create_directory(out);
  std::ofstream(out + "/of-others") << "stays";
  const Configuration configuration(file_target("carrier", out, GetParam()) + route({"a.*.>"}, {"carrier"}));
  const Certified certified = configuration.certify({"--target", "carrier"});
  EXPECT_EQ(certified.code, 0) << certified;
  EXPECT_EQ(certified.answer["safety"].text(), "safe") << certified;
  EXPECT_EQ(certified.answer["subject"].text(), "a.certify.certify");
  EXPECT_EQ(certified.verdict("repeat"), "passed") << certified;
  EXPECT_EQ(certified.verdict("concurrent"), "passed") << certified;
  EXPECT_EQ(certified.verdict("lost_answer"), "not_applicable") << certified;
  EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 1);
}

INSTANTIATE_TEST_SUITE_P(Formats, CertifyFiles, testing::Values("format = \"raw\"", "format = \"json\""),
                         [](const auto& chosen) { return chosen.index == 0 ? "Raw" : "Json"; });

TEST(Certify, ADirectoryThatIsNotThere_IsNotProven) {
  const TemporaryDirectory directory;
  const Configuration configuration(file_target("carrier", directory / "out") + route({"a"}, {"carrier"}));
  const Certified certified = configuration.certify({"--target", "carrier"});
  EXPECT_EQ(certified.code, 75) << certified;
  EXPECT_NE(certified.property("delivery")["reason"].text().find("directory_missing"), std::string::npos) << certified;
}

TEST(Certify, WhatItIsToldWrong_IsTheUsersAffair) {
  const TemporaryDirectory directory;
  const std::string target = file_target("carrier", directory.path());
  const Configuration routed(target + route({"a"}, {"carrier"}));
  EXPECT_EQ(routed.certify({"--target", "hub"}).code, 2);
  EXPECT_EQ(routed.certify().code, 2);
  EXPECT_EQ(routed.certify({"--target", "carrier", "--subject", "a.>"}).code, 2);
  EXPECT_EQ(routed.certify({"--target", "carrier", "--timeout", "soon"}).code, 2);
  EXPECT_EQ(routed.certify({"--target", "carrier", "--payload", directory / "none"}).code, 2);
  EXPECT_EQ(routed.certify({"--target", "carrier", "--remove", "../x"}).code, 2);
  EXPECT_EQ(Configuration(target).certify({"--target", "carrier"}).code, 2) << "no subject is named";
  EXPECT_EQ(Configuration("nonsense").certify({"--target", "carrier"}).code, 2);
}

}  // namespace
}  // namespace holdfast
