// What `holdfast certify` makes of the configuration, and how it says what it found.
#include "appliance/certify.h"

#include <gtest/gtest.h>

#include <sstream>

#include "appliance/certified_endpoints.h"
#include "appliance/config_file.h"
#include "appliance/report.h"

namespace holdfast {
namespace {

Config config(const std::string& tables) {
  const LoadedConfig loaded = parse_config("[appliance]\nsite = \"s\"\n[spool]\nkey_file = \"/k\"\n" + tables);
  for (const Finding& finding : loaded.errors) ADD_FAILURE() << finding.key << ": " << finding.text;
  return loaded.config;
}

const std::string kTargets =
    "[[target]]\nname = \"hub\"\ntype = \"nats\"\nurl = \"tls://[::1]:4223,nats://other:4222\"\n"
    "[[target]]\nname = \"disk\"\ntype = \"file\"\ndirectory = \"/d\"\n";

TEST(CertificationSubject, IsOfTheFirstRouteThatLeadsThere) {
  const Config routed = config(kTargets +
                               "[[route]]\nsubjects = [\"a.>\"]\ntargets = [\"disk\"]\n"
                               "[[route]]\nsubjects = [\"b.*.c.>\", \"d\"]\ntargets = [\"disk\", \"hub\"]\n");
  EXPECT_EQ(certification_subject(routed, "disk"), "a.certify");
  EXPECT_EQ(certification_subject(routed, "hub"), "b.certify.c.certify");
}

TEST(CertificationSubject, WithoutRoutes_IsOfASource) {
  const std::string source =
      "[[source]]\nname = \"s\"\ntype = \"nats\"\nurl = \"nats://e:4222\"\nstream = \"S\"\nsubjects = [\">\"]\n";
  EXPECT_EQ(certification_subject(config(kTargets + source), "hub"), "certify");
  EXPECT_EQ(certification_subject(config(kTargets), "hub"), std::nullopt);
  const Config elsewhere = config(kTargets + source + "[[route]]\nsubjects = [\"a\"]\ntargets = [\"disk\"]\n");
  EXPECT_EQ(certification_subject(elsewhere, "hub"), std::nullopt) << "nothing is ever sent there";
}

TEST(CertifiedTarget, IsMadeOfTheConfiguration) {
  const Config both = config(kTargets);
  const CertifiedTarget hub = make_certified_target(both.targets[0], "s", "a");
  EXPECT_EQ(hub.upstream_address, "[::1]:4223");
  EXPECT_FALSE(hub.local);
  EXPECT_TRUE(hub.keeps_order);
  EXPECT_NE(hub.readback, nullptr);
  EXPECT_NE(hub.make("127.0.0.1:1"), nullptr);
  const CertifiedTarget disk = make_certified_target(both.targets[1], "s", "a");
  EXPECT_TRUE(disk.local);
  EXPECT_NE(disk.readback, nullptr);
}

CertificationReport report_with(std::vector<Property> properties) {
  CertificationReport report;
  report.safety = safety_of(properties);
  report.properties = std::move(properties);
  report.records = 61;
  return report;
}

CertificationOptions options() {
  CertificationOptions options;
  options.run = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9";
  options.subject = "a.certify";
  return options;
}

TEST(CertifyReport, FitsATerminal_AndSaysTheWorstFirst) {
  const Json answer = certification_answer(
      report_with({{"delivery", Proof::passed, "confirmed, and there, as it was sent"},
                   {"order", Proof::not_applicable, "no order is promised"},
                   {"duplicate_window", Proof::conditional, std::string(20, 'x') + ' ' + std::string(40, 'y')},
                   {"silence", Proof::unproven, "there was no more time"},
                   {"repeat", Proof::failed, "it holds 2 copies of one record"}}),
      options(), "hub");
  const std::string text = report_text("certify", answer);
  EXPECT_TRUE(text.starts_with("target hub: NOT SAFE\n")) << text;
  EXPECT_NE(text.find("\nrepeat            FAILED     it holds 2 copies of one record\n"), std::string::npos) << text;
  EXPECT_NE(text.find("61 records in run 0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9; none is left there\n"),
            std::string::npos)
      << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kColumns) << line;
}

TEST(CertifyReport, InJson_HasWhatAMachineNeeds) {
  CertificationReport report = report_with({{"delivery", Proof::conditional, "by its own word"}});
  report.may_be_left = true;
  const Json answer = certification_answer(report, options(), "hub");
  EXPECT_EQ(json_text(answer),
            R"({"target":"hub","safety":"safe_with_conditions","run":"0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9",)"
            R"("subject":"a.certify","records":61,"may_be_left":true,"properties":[{"name":"delivery",)"
            R"("verdict":"conditional","reason":"by its own word"}]})");
  EXPECT_NE(report_text("certify", answer).find("may be left there"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
