#include <gtest/gtest.h>

#include <fstream>

#include "appliance/config_file.h"
#include "appliance/surroundings.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// What a case adds begins on line 13.
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
)";
const std::string kTarget = "name = \"api\"\ntype = \"http\"\n";
const std::string kUrl = "url = \"https://ingest.example/v1?a=b\"\n";

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding_text("h.toml", finding) + '\n';
  return text;
}

HttpTargetConfig read(const std::string& more) {
  const LoadedConfig loaded = parse_config(kGood + kTarget + kUrl + more);
  EXPECT_TRUE(loaded.ok()) << findings_text(loaded.errors);
  return loaded.ok() ? std::get<HttpTargetConfig>(loaded.config.targets[0].settings) : HttpTargetConfig();
}

TEST(ConfigHttp, Defaults_AreTheDocumentedOnes) {
  const LoadedConfig loaded = parse_config(kGood + kTarget + kUrl);
  ASSERT_TRUE(loaded.ok()) << findings_text(loaded.errors);
  EXPECT_EQ(findings_text(loaded.warnings), "");
  const HttpTargetOptions http = std::get<HttpTargetConfig>(loaded.config.targets[0].settings).options;
  EXPECT_EQ(http.url, "https://ingest.example/v1?a=b");
  EXPECT_EQ(http.method, "POST");
  EXPECT_EQ(http.key_header, "Idempotency-Key");
  EXPECT_EQ(http.body, HttpBody::raw);
  EXPECT_EQ(http.content_type, "application/octet-stream");
  EXPECT_EQ(http.batch, 1u);
  EXPECT_EQ(http.expect.statuses, (std::vector<int>{200, 201, 202, 204}));
  EXPECT_EQ(http.client.window, 32u);
  EXPECT_EQ(http.client.deadline, 60s);
  EXPECT_EQ(http.client.connect_limit, 10s);
  EXPECT_EQ(http.client.response_bytes, 1u << 20);
  EXPECT_TRUE(http.client.https_only);
}

TEST(ConfigHttp, EveryKeyThatIsWritten_IsUsed) {
  const HttpTargetConfig config = read(
      "method = \"PATCH\"\nkey_header = \"X-Key\"\nbody = \"envelope\"\nbatch = 50\n"
      "headers = { X-A = \"1\", X-B = \"two words\" }\n"
      "expect = { statuses = [202, 207], header = \"X-Ingest: fleet-*\", body = \"*ok*\" }\n"
      "in_flight = 4\ntimeout = \"5s\"\nconnect_timeout = \"2s\"\nresponse_bytes = \"64KiB\"\n"
      "tls_ca = \"/ca\"\ntls_cert = \"/cert\"\ntls_key = \"/key\"\nproxy = \"socks5h://proxy:1080\"\n"
      "proxy_login_file = \"/pl\"\nbearer_file = \"/b\"\nverify_url = \"https://ingest.example/held\"\n");
  const HttpTargetOptions& http = config.options;
  EXPECT_EQ(http.method, "PATCH");
  EXPECT_EQ(http.key_header, "X-Key");
  EXPECT_EQ(http.body, HttpBody::envelope);
  EXPECT_EQ(http.batch, 50u);
  EXPECT_EQ(http.headers, (std::vector<Header>{{"X-A", "1"}, {"X-B", "two words"}}));
  EXPECT_EQ(http.expect.statuses, (std::vector<int>{202, 207}));
  EXPECT_EQ(http.expect.header, "X-Ingest");
  EXPECT_EQ(http.expect.header_value, "fleet-*");
  EXPECT_EQ(http.expect.body, "*ok*");
  EXPECT_EQ(http.client.window, 4u);
  EXPECT_EQ(http.client.deadline, 5s);
  EXPECT_EQ(http.client.connect_limit, 2s);
  EXPECT_EQ(http.client.response_bytes, 64u << 10);
  EXPECT_EQ(http.client.tls_ca, "/ca");
  EXPECT_EQ(http.client.tls_cert, "/cert");
  EXPECT_EQ(http.client.tls_key, "/key");
  EXPECT_EQ(http.client.proxy, "socks5h://proxy:1080");
  EXPECT_EQ(http.proxy_login_file, "/pl");
  EXPECT_EQ(http.bearer_file, "/b");
  EXPECT_EQ(config.verify_url, "https://ingest.example/held");
}

TEST(ConfigHttp, InTheClear_OnlyToThisMachine) {
  for (const char* url : {"http://127.0.0.1:8080/in", "http://localhost/in", "http://[::1]:8080", "HTTP://127.9.9.9"}) {
    const LoadedConfig loaded = parse_config(kGood + kTarget + "url = \"" + url + "\"\n");
    ASSERT_TRUE(loaded.ok()) << findings_text(loaded.errors);
    EXPECT_FALSE(std::get<HttpTargetConfig>(loaded.config.targets[0].settings).options.client.https_only) << url;
  }
  for (const char* url : {"http://ingest.example/", "http://192.0.2.1/", "http://localhost.example/",
                          "http://198.51.100.1", "http://127.0.0.1.example/", "http://[::2]/", "HTTP://hub/"}) {
    EXPECT_EQ(findings_text(parse_config(kGood + kTarget + "url = \"" + url + "\"\n").errors),
              "h.toml:15: target.url: must begin with https:// where it leaves this machine\n")
        << url;
  }
  for (const char* url : {"", "ingest.example", "ftp://h/", "https://", "https://user:pw@h/", "https://h/#part",
                          "https://h:0/", "https://h:70000/", "https://h /", "https://[::1/", "https://h/\\u0001"}) {
    EXPECT_EQ(findings_text(parse_config(kGood + kTarget + "url = \"" + url + "\"\n").errors),
              "h.toml:15: target.url: must be like \"https://host/path\", without a login or a fragment\n")
        << url;
  }
}

struct Bad {
  const char* more;
  const char* said;
};

// Each addition, and all that must be said of it.
const Bad kBad[] = {
    {"method = \"GET\"\n",
     "h.toml:16: target.method: \"GET\" is not known; must be one of \"POST\", \"PUT\", \"PATCH\"\n"},
    {"key_header = \"Two words\"\n", "h.toml:16: target.key_header: must be the name of a header, like \"X-Fleet\"\n"},
    {"key_header = \"Content-Length\"\n",
     "h.toml:16: target.key_header: is a header that the request has of itself; choose another\n"},
    {"headers = { authorization = \"Bearer x\" }\n",
     "h.toml:16: target.headers.authorization: is a header that the request has of itself; choose another\n"},
    {"headers = { Holdfast-Site = \"x\" }\n",
     "h.toml:16: target.headers.Holdfast-Site: is a header that the request has of itself; choose another\n"},
    {"headers = { X = \"a\\r\\nb\" }\n",
     "h.toml:16: target.headers.X: must be the value of a header: no control characters, no space at either end\n"},
    {"headers = { idempotency-key = \"a\" }\n",
     "h.toml:12: target.headers: names the header of the key, \"idempotency-key\"\n"},
    {"headers = \"X: y\"\n",
     "h.toml:16: target.headers: is a string; must be a table of strings, { name = \"text\" }\n"},
    {"body = \"xml\"\n", "h.toml:16: target.body: \"xml\" is not known; must be one of \"raw\", \"envelope\"\n"},
    {"body = \"envelope\"\ncontent_type = \"a/b\"\n",
     "h.toml:17: target.content_type: is that of raw bodies; an envelope has its own\n"},
    {"content_type = \"text\"\n", "h.toml:16: target.content_type: must be a media type, like \"text/plain\"\n"},
    {"batch = 5\n", "h.toml:12: target.batch: needs body = \"envelope\": raw bodies go one by one\n"},
    {"batch = 0\n", "h.toml:16: target.batch: must be from 1 to 10,000\n"},
    {"in_flight = 257\n", "h.toml:16: target.in_flight: must be from 1 to 256\n"},
    {"timeout = \"0s\"\n", "h.toml:16: target.timeout: must be from 1 s to 1 h 0 min\n"},
    {"response_bytes = \"1B\"\n", "h.toml:16: target.response_bytes: must be from 1.0 KiB to 64.0 MiB\n"},
    {"expect = { statuses = [] }\n",
     "h.toml:16: target.expect.statuses: is empty; name at least one, or leave the key out\n"},
    {"expect = { statuses = [302] }\n", "h.toml:16: target.expect.statuses: must be integers from 200 to 299\n"},
    {"expect = { statuses = [\"200\"] }\n",
     "h.toml:16: target.expect.statuses: has a string in it; must be an array of integers\n"},
    {"expect = { header = \"two words: x\" }\n",
     "h.toml:16: target.expect.header: must be like \"X-Ingest\" or \"X-Ingest: fleet-*\"\n"},
    {"expect = { body = \"\" }\n",
     "h.toml:16: target.expect.body: must be 1 to 1024 bytes; '*' stands for any bytes\n"},
    {"expect = { status = 200 }\n",
     "h.toml:16: target.expect.status: is not a key of [target.expect]; known are body, header, statuses\n"},
    {"bearer_file = \"token\"\n", "h.toml:16: target.bearer_file: must be an absolute path\n"},
    {"bearer_file = \"/a\"\nbasic_file = \"/b\"\n",
     "h.toml:12: target.basic_file: cannot be used together with bearer_file; keep one of them\n"},
    {"tls_cert = \"/a\"\n", "h.toml:12: target.tls_key: is missing; tls_cert and tls_key go together\n"},
    {"tls_key = \"/a\"\n", "h.toml:12: target.tls_cert: is missing; tls_cert and tls_key go together\n"},
    {"proxy = \"http://u:p@proxy:1\"\n",
     "h.toml:16: target.proxy: must be like \"http://proxy:3128\", \"https://proxy:3128\" or \"socks5h://proxy:1080\", "
     "without a login\n"},
    {"proxy_login_file = \"/a\"\n", "h.toml:12: target.proxy_login_file: says nothing without proxy\n"},
    {"verify_url = \"http://h/\"\n",
     "h.toml:16: target.verify_url: must begin with https:// where it leaves this machine\n"},
    {"directory = \"/x\"\n",
     "h.toml:16: target.directory: is not a key of [target]; known are basic_file, batch, bearer_file, body, "
     "connect_timeout, content_type, expect, headers, in_flight, key_header, method, name, order, proxy, "
     "proxy_login_file, required, response_bytes, timeout, tls_ca, tls_cert, tls_key, type, url, verify_url, window, "
     "window_bytes\n"},
};

TEST(ConfigHttp, EachFault_NamesLineAndKey) {
  for (const Bad& bad : kBad) {
    EXPECT_EQ(findings_text(parse_config(kGood + kTarget + kUrl + bad.more).errors), bad.said) << bad.more;
  }
  EXPECT_EQ(findings_text(parse_config(kGood + kTarget).errors),
            "h.toml:12: target.url: is missing; it has no default\n");
}

TEST(ConfigHttp, AWindowThatIsTooSmallForItsRequests_IsWarnedOf) {
  const LoadedConfig loaded = parse_config(kGood + kTarget + kUrl + "body = \"envelope\"\nbatch = 100\n");
  EXPECT_EQ(findings_text(loaded.warnings),
            "h.toml:12: target.window: is less than in_flight times batch: fewer requests will go side by side\n");
}

TEST(ConfigHttp, ItsFiles_AreLookedAt) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "two") << "a\nb\n";
  std::ofstream(directory / "one") << "token\n";
  const auto look = [&](const std::string& more) {
    LoadedConfig loaded = parse_config(kGood + kTarget + kUrl + more);
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
  EXPECT_EQ(look("bearer_file = \"" + (directory / "one") + "\"\n"), "");
  EXPECT_EQ(look("bearer_file = \"" + (directory / "none") + "\"\n"), "warning target.bearer_file\n");
  EXPECT_EQ(look("basic_file = \"" + (directory / "two") + "\"\n"), "error target.basic_file\n");
  EXPECT_EQ(look("tls_ca = \"" + (directory / "none") + "\"\n"), "warning target.tls_ca\n");
}

}  // namespace
}  // namespace holdfast
