// The parts of the S3 target that need no store: signatures, names, objects, credentials, refusals.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "crypto/digest.h"
#include "forwarder/s3_bucket.h"
#include "forwarder/s3_credentials.h"
#include "forwarder/s3_error.h"
#include "forwarder/s3_key.h"
#include "forwarder/s3_object.h"
#include "forwarder/sigv4.h"
#include "tests/forwarder/delivered.h"
#include "tests/support/simulated_clock.h"
#include "tests/support/simulated_loss.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

const std::string kEmpty = to_hex(sha256({}));

// --- Signatures: the published examples of the S3 API Reference ("Examples: Signature Calculations") and of the test
// suite for Signature Version 4

struct Example {
  const char* what;
  const char* method;
  const char* path;
  const char* query;
  std::vector<Header> headers;
  std::string body;
  const char* signature;
};

TEST(SigV4, TheExamplesOfS3) {
  const std::string_view key = "AKIAIOSFODNN7EXAMPLE", secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  const std::vector<Example> examples = {
      {"get",
       "GET",
       "/test.txt",
       "",
       {{"Range", "bytes=0-9"}},
       "",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"put",
       "PUT",
       "/test%24file.text",
       "",
       {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
       "Welcome to Amazon S3.",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"lifecycle",
       "GET",
       "/",
       "lifecycle=",
       {},
       "",
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"list",
       "GET",
       "/",
       "max-keys=2&prefix=J",
       {},
       "",
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (Example example : examples) {
    const std::string digest = to_hex(sha256(as_bytes(example.body)));
    example.headers.push_back({"x-amz-date", "20130524T000000Z"});
    example.headers.push_back({"X-Amz-Content-SHA256", digest});
    example.headers.push_back({"Host", "examplebucket.s3.amazonaws.com"});
    const std::string made =
        sigv4_authorization(key, secret, {"us-east-1"}, "20130524T000000Z",
                            {example.method, example.path, example.query, example.headers, digest});
    EXPECT_TRUE(made.ends_with(std::string(",Signature=") + example.signature)) << example.what << ": " << made;
    EXPECT_TRUE(
        made.starts_with("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                         "SignedHeaders="))
        << made;
  }
}

TEST(SigV4, TheTestSuitesPlainRequest) {
  const std::vector<Header> headers = {{"Host", "example.amazonaws.com"}, {"X-Amz-Date", "20150830T123600Z"}};
  const std::string made =
      sigv4_authorization("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", {"us-east-1", "service"},
                          "20150830T123600Z", {"GET", "/", "", headers, kEmpty});
  EXPECT_EQ(made,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request,"
            "SignedHeaders=host;x-amz-date,"
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(SigV4, Dates) {
  EXPECT_EQ(sigv4_date(0), "19700101T000000Z");
  EXPECT_EQ(sigv4_date(1369353600), "20130524T000000Z");
  EXPECT_EQ(sigv4_date(1709211599), "20240229T125959Z");
  EXPECT_EQ(sigv4_date(253402300799), "99991231T235959Z");
}

TEST(SigV4, Paths) {
  EXPECT_EQ(sigv4_encoded_path("a/b-._~Z9"), "a/b-._~Z9");
  EXPECT_EQ(sigv4_encoded_path("a b+c:%\xff="), "a%20b%2Bc%3A%25%FF%3D");
}

// --- Names

TEST(S3Key, IsTheKeyWithWhatUrlsSpellInTwoWaysEscaped) {
  EXPECT_EQ(s3_object_key("", "seq:truck-07:S_1:12:1700", ""), "seq_3Atruck-07_3AS_5F1_3A12_3A1700");
  EXPECT_EQ(s3_object_key("site=a/", "msg:a/b%2F..", ".json"), "site=a/msg_3Aa_2Fb_252F._2E.json");
  EXPECT_EQ(s3_object_key("", "..", ""), "_2E_2E");
}

TEST(S3Key, LongOnesAreDigests) {
  const std::string key = "msg:" + std::string(196, '%');
  EXPECT_EQ(s3_object_key("p/", key, ".x"), "p/h_3A" + to_hex(sha256(as_bytes(key))) + ".x");
  EXPECT_EQ(s3_object_key("", "h:" + std::string(64, 'a'), ""), "h_3A" + std::string(64, 'a'));
}

TEST(S3Key, AnyKey_GivesANameOfItsOwn_ThatAUrlCarriesAsItIs) {
  Dice dice(11);
  std::set<std::string> keys, names;
  for (int n = 0; n < 20'000; ++n) {
    std::string key(1 + dice.below(n % 50 == 0 ? 200 : 4), ' ');
    for (char& c : key) c = static_cast<char>(dice.below(256));
    keys.insert(key);
    const std::string name = s3_object_key("", key, "");
    EXPECT_LE(name.size(), 200u);
    EXPECT_EQ(sigv4_encoded_path(name), name);
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_NE(name.front(), '.');
    names.insert(name);
  }
  EXPECT_EQ(keys.size(), names.size());
}

// --- Objects

std::string value_of(const S3Object& object, const std::string& name) {
  for (const Header& header : object.metadata) {
    if (header.name == std::string(kS3Metadata) + name) return header.value;
  }
  return "(none)";
}

S3Object object_of(const DueRecord& record, const S3Naming& naming) {
  return s3_object({&record, wire_key(record.key)}, naming);
}

TEST(S3Object, HasAllThatTheDocumentSays) {
  DueRecord record = made_record(7, "hello", "telemetry.caf\xc3\xa9 %");
  record.accepted_wall_ns = 1'700'000'000'000'000'000;
  const S3Object object = object_of(record, {"in/", ".bin", FileFormat::raw, "truck-07"});
  EXPECT_EQ(object.key, "in/msg_3A7.bin");
  EXPECT_EQ(as_text(object.content), "hello");
  EXPECT_EQ(object.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  EXPECT_EQ(object.crc32c, "mnG7TA==");
  EXPECT_EQ(value_of(object, "key"), "msg:7");
  EXPECT_EQ(value_of(object, "digest"), object.sha256);
  EXPECT_EQ(value_of(object, "subject"), "telemetry.caf%C3%A9%20%25");
  EXPECT_EQ(value_of(object, "site"), "truck-07");
  EXPECT_EQ(value_of(object, "stream"), "TELEMETRY");
  EXPECT_EQ(value_of(object, "sequence"), "7");
  EXPECT_EQ(value_of(object, "timestamp"), "7");
  EXPECT_EQ(value_of(object, "spool-sequence"), "7");
  EXPECT_EQ(value_of(object, "accepted-at"), "2023-11-14T22:13:20.000000000Z");
  EXPECT_EQ(value_of(object, "clock"), "untrusted");
  EXPECT_EQ(value_of(object, "payload-omitted"), "(none)");
}

// S3 refuses more than 2 KiB of it, names without their prefix and values taken together.
TEST(S3Object, MetadataFits_WhateverTheRecordIsCalled) {
  DueRecord record = made_record(UINT64_MAX, "x", std::string(4000, '\xff'));
  record.key = "msg:" + std::string(196, 'k');
  record.envelope.origin = {std::string(2000, 's'), UINT64_MAX, INT64_MIN};
  record.envelope.payload_omitted = true;
  record.envelope.original_size = UINT64_MAX;
  const S3Object object = object_of(record, {"", "", FileFormat::raw, std::string(64, 's')});
  std::size_t bytes = 0;
  for (const Header& header : object.metadata) {
    EXPECT_TRUE(http_header_fits(header)) << header.name;
    bytes += header.name.size() - std::string_view("x-amz-meta-").size() + header.value.size();
  }
  EXPECT_LT(bytes, 1536u);
  EXPECT_TRUE(value_of(object, "subject").starts_with("h:"));
}

TEST(S3Object, Likeness) {
  const S3Naming naming{"", "", FileFormat::json, "truck-07"};
  const DueRecord record = made_record(1, "hello");
  const S3Object object = object_of(record, naming);
  const auto found = [&](const S3Object& there) {
    HttpResponse response;
    response.status = 200;
    response.headers = there.metadata;
    response.headers.push_back({"Content-Length", std::to_string(there.content.size())});
    return response;
  };
  EXPECT_EQ(s3_likeness(object, found(object)), S3Likeness::same_try);
  DueRecord later = record;
  later.sequence = 99;
  later.envelope.headers = {{"Trace", "other"}};
  EXPECT_EQ(s3_likeness(object, found(object_of(later, naming))), S3Likeness::same_content);
  EXPECT_EQ(s3_likeness(object, found(object_of(made_record(1, "hello", "telemetry.b"), naming))), S3Likeness::other);
  EXPECT_EQ(s3_likeness(object, found(object_of(made_record(1, "hallo"), naming))), S3Likeness::other);
  S3Object bare = object;
  bare.metadata.clear();
  EXPECT_EQ(s3_likeness(object, found(bare)), S3Likeness::unsaid);
  bare.content.push_back('x');
  EXPECT_EQ(s3_likeness(object, found(bare)), S3Likeness::other);
}

// --- Credentials

TEST(S3Credentials, AProfileIsFoundAmongOthers) {
  const std::string text =
      "# ours\n[other]\naws_access_key_id = NOT\naws_secret_access_key = no\n\n"
      "[ default ]\r\naws_access_key_id=AKID\r\n; remark\nregion = x\naws_secret_access_key =  s+/=cret \n"
      "aws_session_token = to==ken\n[third]\naws_access_key_id = NOT\n";
  const auto found = parse_s3_credentials(text, "default");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->access_key, "AKID");
  EXPECT_EQ(found->secret, "s+/=cret");
  EXPECT_EQ(found->token, "to==ken");
  EXPECT_EQ(parse_s3_credentials(text, "other")->token, "");
}

TEST(S3Credentials, WhatIsNone) {
  for (const char* text :
       {"", "[default]", "[default]\naws_access_key_id = A\n", "[default]\naws_secret_access_key = s\n",
        "aws_access_key_id = A\naws_secret_access_key = s\n",
        "[default\naws_access_key_id = A\naws_secret_access_key=s",
        "[default]\naws_access_key_id = A/B\naws_secret_access_key = s\n",
        "[default]\naws_access_key_id = A\naws_secret_access_key = s s\n",
        "[default]\naws_access_key_id = A\naws_secret_access_key = s\naws_session_token = \xff\n"}) {
    EXPECT_FALSE(parse_s3_credentials(text, "default")) << text;
  }
}

TEST(S3Credentials, AFileIsReadAgainWhenItWasRenewed_AndItsErrorHoldsNothingOfIt) {
  const TemporaryDirectory directory;
  const std::string path = directory / "credentials";
  S3CredentialsFile file(path, "default");
  EXPECT_FALSE(file.refresh().ok());
  std::ofstream(path) << "[default]\naws_access_key_id = A\naws_secret_access_key = s\n";
  ASSERT_TRUE(file.refresh().ok());
  EXPECT_EQ(file.credentials().access_key, "A");
  std::ofstream(path + ".new") << "[default]\naws_access_key_id = B\naws_secret_access_key = s\n";
  ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  ASSERT_TRUE(file.refresh().ok());
  EXPECT_EQ(file.credentials().access_key, "B");
  std::ofstream(path) << "hush\n";
  const auto broken = file.refresh();
  ASSERT_FALSE(broken.ok());
  EXPECT_TRUE(broken.error().text.starts_with("file_unusable"));
  EXPECT_EQ(broken.error().text.find("hush"), std::string::npos);
  EXPECT_EQ(file.credentials().access_key, "");
}

// --- The bucket

TEST(S3Endpoint, WhatIsOne) {
  const SimulatedClock clock;
  const auto url = [&](const char* endpoint) {
    return S3Bucket({endpoint, "records", "us-east-1", false}, clock).request("GET", "a", {"A", "s", ""}).url;
  };
  EXPECT_EQ(url("https://store.example"), "https://store.example/records/a");
  EXPECT_EQ(url("https://store.example:443/"), "https://store.example/records/a");
  EXPECT_EQ(url("http://127.0.0.1:9000"), "http://127.0.0.1:9000/records/a");
  EXPECT_EQ(url("http://[::1]:9000"), "http://[::1]:9000/records/a");
  EXPECT_EQ(url("http://[::1]"), "http://[::1]/records/a");
  for (const char* text : {"", "store.example", "ftp://store.example", "https://", "https://store.example/b",
                           "https://store.example?b", "https://user:secret@store.example", "https://store.example:0",
                           "https://store.example:70000", "https://[::1", "https://[]"}) {
    EXPECT_FALSE(parse_s3_endpoint(text)) << text;
  }
}

TEST(S3Bucket, PathAndVirtualHost) {
  const SimulatedClock clock;
  const S3Credentials who{"AKID", "secret", "token"};
  const S3Bucket by_path({"https://store.example:8443", "records", "eu-1", false}, clock);
  const HttpRequest request = by_path.request("HEAD", "a=b/c", who);
  EXPECT_EQ(request.url, "https://store.example:8443/records/a%3Db/c");
  const auto header = [](const HttpRequest& of, std::string_view name) {
    for (const Header& one : of.headers) {
      if (one.name == name) return one.value;
    }
    return std::string();
  };
  EXPECT_EQ(header(request, "Host"), "store.example:8443");
  EXPECT_EQ(header(request, "x-amz-security-token"), "token");
  EXPECT_NE(header(request, "Authorization").find("/eu-1/s3/aws4_request"), std::string::npos);
  EXPECT_NE(header(request, "Authorization").find("x-amz-security-token"), std::string::npos);
  const S3Bucket by_host({"https://store.example", "records", "eu-1", true}, clock);
  EXPECT_EQ(by_host.request("HEAD", "c", who).url, "https://records.store.example/c");
  EXPECT_EQ(header(by_host.request("HEAD", "c", who), "Host"), "records.store.example");
}

// --- Refusals

TEST(S3Error, TheCodeOfADocument) {
  EXPECT_EQ(s3_error_code("<Error><Code>NoSuchKey</Code></Error>"), "NoSuchKey");
  EXPECT_EQ(s3_error_code("\xef\xbb\xbf<?xml version='1.0'?>\n<Error xmlns=\"x\">\n <Message>a <b>c</b></Message>\n"
                          " <Empty/> <Code>KMS.NotFoundException</Code>"),
            "KMS.NotFoundException");
}

TEST(S3Error, WhatHasNone) {
  for (const char* body :
       {"", "<Error>", "<Errors><Code>A</Code></Errors>", "<html><Code>A</Code></html>", "<Error/><Code>A</Code>",
        "<Error><Message><Code>A</Code></Message></Error>", "<Error><Code></Code></Error>",
        "<Error><Code>No Such</Code></Error>", "<Error><Code>A", "<Error>text<Code>A</Code></Error>",
        "<?xml <Error><Code>A</Code></Error>", "<Error><Co de>A</Co de></Error>", "{\"Code\":\"A\"}"}) {
    EXPECT_EQ(s3_error_code(body), "") << body;
  }
  EXPECT_EQ(s3_error_code("<Error><Code>" + std::string(65, 'A') + "</Code></Error>"), "");
  EXPECT_EQ(s3_error_code("<Error><Message>" + std::string(5000, 'a') + "</Message><Code>A</Code></Error>"), "");
}

Outcome refusal(int status, const std::string& code) {
  HttpResponse response;
  response.status = status;
  if (!code.empty()) response.body = "<Error><Code>" + code + "</Code></Error>";
  return outcome_of_s3_refusal(response);
}

TEST(S3Error, EveryRowOfTheTable) {
  struct Row {
    int status;
    const char* code;
    OutcomeKind kind;
    const char* state;
  };
  const auto target = OutcomeKind::hold_target, again = OutcomeKind::retry;
  for (const Row& row : {
           Row{404, "NoSuchBucket", target, "no_bucket"},
           Row{403, "SignatureDoesNotMatch", target, "credentials_refused"},
           Row{403, "InvalidAccessKeyId", target, "credentials_refused"},
           Row{401, "", target, "credentials_refused"},
           Row{400, "ExpiredToken", target, "token_expired"},
           Row{403, "AccessDenied", target, "access_denied"},
           Row{403, "RequestTimeTooSkewed", target, "clock_skew"},
           Row{403, "", OutcomeKind::hold_lane, "forbidden"},
           Row{301, "PermanentRedirect", target, "redirected"},
           Row{302, "", target, "redirected"},
           Row{400, "AuthorizationHeaderMalformed", target, "wrong_region"},
           Row{403, "QuotaExceeded", target, "store_full"},
           Row{507, "", target, "store_full"},
           Row{400, "InvalidStorageClass", target, "setting_refused"},
           Row{404, "", target, "not_an_object_store"},
           Row{405, "MethodNotAllowed", target, "not_an_object_store"},
           Row{501, "", target, "not_an_object_store"},
           Row{407, "", target, "proxy_refused"},
           Row{400, "XAmzContentSHA256Mismatch", again, "upload_damaged"},
           Row{400, "BadDigest", again, "upload_damaged"},
           Row{400, "RequestTimeout", again, "request_timeout"},
           Row{409, "ConditionalRequestConflict", again, "in_progress"},
           Row{503, "SlowDown", again, "throttled"},
           Row{429, "", again, "throttled"},
           Row{500, "InternalError", again, "server_error"},
           Row{400, "InvalidArgument", again, "unknown_error"},
           Row{422, "", again, "unknown_error"},
           Row{412, "PreconditionFailed", again, "unknown_error"},
       }) {
    const Outcome outcome = refusal(row.status, row.code);
    EXPECT_EQ(outcome.kind, row.kind) << row.status << row.code;
    EXPECT_STREQ(outcome.state, row.state) << row.status << row.code;
  }
  EXPECT_EQ(refusal(400, "EntityTooLarge").reason, Reason::oversize);
  EXPECT_EQ(refusal(413, "").reason, Reason::oversize);
  EXPECT_EQ(refusal(400, "KeyTooLongError").reason, Reason::unencodable);
  EXPECT_EQ(refusal(400, "MetadataTooLarge").reason, Reason::unencodable);
}

TEST(S3Error, NoCodeThatIsNotKnown_IsAVerdictOnTheRecord) {
  for (int status = 300; status < 600; ++status) {
    if (status == 413) continue;
    for (const char* code : {"", "Whatever", "InvalidRequest", "MalformedXML"}) {
      EXPECT_NE(refusal(status, code).kind, OutcomeKind::rejected) << status << code;
      EXPECT_NE(refusal(status, code).kind, OutcomeKind::delivered) << status << code;
    }
  }
}

}  // namespace
}  // namespace holdfast
