#include <gtest/gtest.h>

#include <fstream>

#include "appliance/config_file.h"
#include "appliance/endpoints.h"
#include "appliance/surroundings.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// What a case adds begins on line 18.
const std::string kGood = R"([appliance]
site = "truck-07"

[spool]
key_file = "/etc/holdfast/spool.key"

[[source]]
name = "local"
type = "nats"
url = "nats://127.0.0.1:4222"
stream = "TELEMETRY"
[[target]]
name = "bucket"
type = "s3"
)";
const std::string kPlace =
    "endpoint = \"https://s3.example\"\nbucket = \"telemetry\"\ncredentials_file = \"/etc/holdfast/s3\"\n";

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding_text("h.toml", finding) + '\n';
  return text;
}

S3TargetOptions read(const std::string& more) {
  const LoadedConfig loaded = parse_config(kGood + kPlace + more);
  EXPECT_TRUE(loaded.ok()) << findings_text(loaded.errors);
  EXPECT_EQ(findings_text(loaded.warnings), "");
  return loaded.ok() ? std::get<S3TargetConfig>(loaded.config.targets[0].settings).options : S3TargetOptions();
}

TEST(ConfigS3, Defaults_AreTheDocumentedOnes) {
  const S3TargetOptions s3 = read("");
  EXPECT_EQ(s3.place.endpoint, "https://s3.example");
  EXPECT_EQ(s3.place.bucket, "telemetry");
  EXPECT_EQ(s3.place.region, "us-east-1");
  EXPECT_FALSE(s3.place.virtual_host);
  EXPECT_EQ(s3.credentials_file, "/etc/holdfast/s3");
  EXPECT_EQ(s3.profile, "default");
  EXPECT_EQ(s3.naming.prefix, "");
  EXPECT_EQ(s3.naming.suffix, "");
  EXPECT_EQ(s3.naming.format, FileFormat::raw);
  EXPECT_EQ(s3.on_existing, S3OnExisting::skip);
  EXPECT_EQ(s3.conditional, S3Conditional::required);
  EXPECT_TRUE(s3.compare);
  EXPECT_TRUE(s3.headers.empty());
  EXPECT_EQ(s3.client.window, 32u);
  EXPECT_TRUE(s3.client.https_only);
}

TEST(ConfigS3, EveryKeyThatIsWritten_IsUsed) {
  const S3TargetOptions s3 = read(
      "region = \"eu-1\"\naddressing = \"virtual_host\"\nprofile = \"edge\"\nprefix = \"a/b=c/\"\nformat = \"json\"\n"
      "on_existing = \"fail\"\nconditional = \"if_supported\"\nstorage_class = \"STANDARD_IA\"\n"
      "encryption = \"aws:kms\"\nkms_key = \"key-1\"\nin_flight = 4\ntimeout = \"5s\"\nconnect_timeout = \"2s\"\n"
      "tls_ca = \"/ca\"\ntls_cert = \"/cert\"\ntls_key = \"/key\"\nproxy = \"http://proxy:3128\"\n"
      "proxy_login_file = \"/pl\"\n");
  EXPECT_EQ(s3.place.region, "eu-1");
  EXPECT_TRUE(s3.place.virtual_host);
  EXPECT_EQ(s3.profile, "edge");
  EXPECT_EQ(s3.naming.prefix, "a/b=c/");
  EXPECT_EQ(s3.naming.suffix, ".json");
  EXPECT_EQ(s3.naming.format, FileFormat::json);
  EXPECT_EQ(s3.on_existing, S3OnExisting::fail);
  EXPECT_EQ(s3.conditional, S3Conditional::if_supported);
  EXPECT_EQ(s3.headers, (std::vector<Header>{{"x-amz-storage-class", "STANDARD_IA"},
                                             {"x-amz-server-side-encryption", "aws:kms"},
                                             {"x-amz-server-side-encryption-aws-kms-key-id", "key-1"}}));
  EXPECT_EQ(s3.client.window, 4u);
  EXPECT_EQ(s3.client.deadline, 5s);
  EXPECT_EQ(s3.client.connect_limit, 2s);
  EXPECT_EQ(s3.client.tls_ca, "/ca");
  EXPECT_EQ(s3.client.tls_cert, "/cert");
  EXPECT_EQ(s3.client.tls_key, "/key");
  EXPECT_EQ(s3.client.proxy, "http://proxy:3128");
  EXPECT_EQ(s3.proxy_login_file, "/pl");
  EXPECT_EQ(read("suffix = \".bin\"\ncompare = false\n").naming.suffix, ".bin");
}

TEST(ConfigS3, ATargetIsMadeOfIt) {
  const LoadedConfig loaded = parse_config(kGood + kPlace);
  ASSERT_TRUE(loaded.ok());
  EXPECT_NE(make_target(loaded.config.targets[0], "truck-07"), nullptr);
}

struct Bad {
  const char* more;
  const char* said;
};

// Each addition, and all that must be said of it.
const Bad kBad[] = {
    {"region = \"eu/1\"\n", "h.toml:18: target.region: must be 1 to 64 letters, digits, '-' and '_'\n"},
    {"addressing = \"dns\"\n",
     "h.toml:18: target.addressing: \"dns\" is not known; must be one of \"path\", \"virtual_host\"\n"},
    {"profile = \"[x]\"\n",
     "h.toml:18: target.profile: must be the name of a profile of the credentials file, like \"default\"\n"},
    {"suffix = \"/x\"\n", "h.toml:18: target.suffix: must be like \".bin\": at most 32 letters, digits and -._~\n"},
    {"format = \"xml\"\n", "h.toml:18: target.format: \"xml\" is not known; must be one of \"raw\", \"json\"\n"},
    {"on_existing = \"overwrite\"\n",
     "h.toml:18: target.on_existing: \"overwrite\" is not known; must be one of \"skip\", \"replace\", \"fail\"\n"},
    {"conditional = \"no\"\n",
     "h.toml:18: target.conditional: \"no\" is not known; must be one of \"required\", \"if_supported\"\n"},
    {"compare = false\non_existing = \"fail\"\n",
     "h.toml:12: target.compare: cannot be false with on_existing = \"fail\", which is about what is there\n"},
    {"kms_key = \"k\"\n", "h.toml:18: target.kms_key: needs encryption = \"aws:kms\" or \"aws:kms:dsse\"\n"},
    {"storage_class = \"A B\"\n", "h.toml:18: target.storage_class: must be 1 to 64 letters, digits, '-' and '_'\n"},
    {"in_flight = 0\n", "h.toml:18: target.in_flight: must be from 1 to 256\n"},
    {"tls_cert = \"/a\"\n", "h.toml:12: target.tls_key: is missing; tls_cert and tls_key go together\n"},
    {"proxy_login_file = \"/a\"\n", "h.toml:12: target.proxy_login_file: says nothing without proxy\n"},
};

TEST(ConfigS3, EachFault_NamesLineAndKey) {
  for (const Bad& bad : kBad) {
    EXPECT_EQ(findings_text(parse_config(kGood + kPlace + bad.more).errors), bad.said) << bad.more;
  }
  EXPECT_EQ(findings_text(parse_config(kGood).errors),
            "h.toml:12: target.endpoint: is missing; it has no default\n"
            "h.toml:12: target.bucket: is missing; it has no default\n"
            "h.toml:12: target.credentials_file: is missing; it has no default\n");
}

bool prefix_fits(const std::string& prefix) {
  return parse_config(kGood + kPlace + "prefix = \"" + prefix + "\"\n").ok();
}

TEST(ConfigS3, APrefix_HasNoPathInItThatSomebodyUnderstandsOtherwise) {
  for (const char* prefix : {"", "a", "a/", "site=truck-07/a.b/", "..a/", "a~/"})
    EXPECT_TRUE(prefix_fits(prefix)) << prefix;
  for (const char* prefix : {"/", "/a", "a//b", "../", "a/../b", "./", "a/./b", "a b", "a%2F", "a:b"}) {
    EXPECT_FALSE(prefix_fits(prefix)) << prefix;
  }
  EXPECT_FALSE(prefix_fits(std::string(257, 'a')));
}

TEST(ConfigS3, Places) {
  const auto errors = [](const std::string& endpoint, const std::string& bucket, const std::string& more = "") {
    return findings_text(parse_config(kGood + "endpoint = \"" + endpoint + "\"\nbucket = \"" + bucket +
                                      "\"\ncredentials_file = \"/c\"\n" + more)
                             .errors);
  };
  EXPECT_EQ(errors("http://127.0.0.1:9000", "abc"), "");
  EXPECT_NE(errors("http://s3.example", "abc"), "");
  EXPECT_NE(errors("https://s3.example/path", "abc"), "");
  for (const char* bucket : {"ab", "Abc", "a_b", "-ab", "a..b", "abc-"})
    EXPECT_NE(errors("https://s3.example", bucket), "");
  EXPECT_NE(errors("https://192.0.2.1", "abc", "addressing = \"virtual_host\"\n"), "");
  EXPECT_NE(errors("https://[::1]:9000", "abc", "addressing = \"virtual_host\"\n"), "");
}

TEST(ConfigS3, ItsCredentials_AreLookedAt) {
  const TemporaryDirectory directory;
  const auto look = [&](const std::string& file) {
    LoadedConfig loaded =
        parse_config(kGood + "endpoint = \"https://s3.example\"\nbucket = \"abc\"\ncredentials_file = \"" +
                     (directory / file) + "\"\n");
    EXPECT_TRUE(loaded.ok()) << findings_text(loaded.errors);
    Findings findings;
    check_surroundings(loaded.config, findings);
    std::string text;
    for (const Finding& finding : findings.errors()) {
      if (finding.key.starts_with("target.")) text += "error " + finding.key + "\n";
    }
    for (const Finding& finding : findings.warnings()) {
      if (finding.key.starts_with("target.")) text += "warning " + finding.key + "\n";
    }
    return text;
  };
  std::ofstream(directory / "good") << "[default]\naws_access_key_id = A\naws_secret_access_key = s\n";
  std::ofstream(directory / "other") << "[other]\naws_access_key_id = A\naws_secret_access_key = s\n";
  EXPECT_EQ(look("good"), "");
  EXPECT_EQ(look("other"), "error target.credentials_file\n");
  EXPECT_EQ(look("none"), "warning target.credentials_file\n");
}

}  // namespace
}  // namespace holdfast
