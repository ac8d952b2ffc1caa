// The worlds of the S3 target: a store of ours that keeps the condition, one that ignores it, and Swift, which does not
// know it.
#pragma once

#include <fstream>

#include "forwarder/s3_target.h"
#include "tests/forwarder/target_worlds.h"
#include "tests/support/s3_stub.h"
#include "tests/support/swift_server.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {

inline void write_s3_credentials(const std::string& path, const std::string& access_key, const std::string& secret,
                                 const std::string& token = "") {
  std::ofstream file(path + ".new");
  file << "[default]\naws_access_key_id = " << access_key << "\naws_secret_access_key = " << secret << "\n";
  if (!token.empty()) file << "aws_session_token = " << token << "\n";
  file.close();
  EXPECT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
}

inline S3TargetOptions s3_options(const std::string& url, const std::string& credentials_file) {
  S3TargetOptions options;
  options.place = {url, "records", "us-east-1", false};
  options.naming.prefix = "in/";
  options.naming.site = "truck-07";
  options.credentials_file = credentials_file;
  options.client.https_only = false;
  options.client.deadline = std::chrono::minutes(2);  // a test that waits for it has failed
  return options;
}

class S3StubWorld : public TargetWorld {
 public:
  explicit S3StubWorld(S3Stub::Condition condition) : condition_(condition) {
    store_.behave([&](S3Stub::Manners& manners) { manners.condition = condition; });
    write_s3_credentials(credentials_, "AKIDEXAMPLE", "secret");
  }

  S3TargetOptions options() const {
    S3TargetOptions options = s3_options(store_.url(), credentials_);
    if (condition_ != S3Stub::Condition::kept) options.conditional = S3Conditional::if_supported;
    return options;
  }
  std::unique_ptr<Target> target() override { return std::make_unique<S3Target>(options()); }
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    for (const auto& [key, object] : store_.objects()) {
      copies.emplace(object.metadata.at("x-amz-meta-holdfast-key"), object.content);
    }
    return copies;
  }
  void break_upstream() override { store_.stub().stop(); }
  void repair_upstream() override { store_.stub().start(); }
  bool hang(Target&) override {
    store_.first_ask([](const StubRequest&) {
      StubAnswer nothing;
      nothing.manner = Manner::hang;
      return nothing;
    });
    return true;
  }

 private:
  const S3Stub::Condition condition_;
  const TemporaryDirectory directory_;
  const std::string credentials_ = directory_ / "credentials";
  S3Stub store_;
};

// One store for all, which is slow to start; a bucket for each.
class SwiftWorld : public TargetWorld {
 public:
  SwiftWorld() {
    static int buckets = 0;
    bucket_ = "records-" + std::to_string(++buckets);
    server().start();
    write_s3_credentials(credentials_, server().access_key(), server().secret());
    EXPECT_EQ(ask("PUT", "").status, 200);
  }
  ~SwiftWorld() override { server().thaw(); }

  static SwiftServer& server() {
    static SwiftServer one;
    return one;
  }
  S3TargetOptions options() const {
    S3TargetOptions options = s3_options(server().url(), credentials_);
    options.place.bucket = bucket_;
    options.conditional = S3Conditional::if_supported;
    return options;
  }
  std::unique_ptr<Target> target() override { return std::make_unique<S3Target>(options()); }
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    const HttpResponse list = ask("GET", "");
    EXPECT_EQ(list.status, 200);
    for (std::size_t at = list.body.find("<Key>"); at != std::string::npos; at = list.body.find("<Key>", at + 1)) {
      const std::string key = list.body.substr(at + 5, list.body.find("</Key>", at) - at - 5);
      const HttpResponse object = ask("GET", key);
      copies.emplace(object.header("x-amz-meta-holdfast-key").value_or("?"), object.body);
    }
    return copies;
  }
  void break_upstream() override { server().stop(); }
  void repair_upstream() override { server().start(); }
  bool hang(Target&) override {
    server().freeze();
    return true;
  }

  const std::string& credentials_file() const { return credentials_; }
  HttpResponse ask(const char* method, const std::string& key) {
    const S3Bucket bucket({server().url(), bucket_, server().region(), false}, system_clock());
    HttpClientOptions plain;
    plain.https_only = false;
    HttpClient client(plain);
    const S3Credentials who{server().access_key(), server().secret(), ""};
    const auto response = client.exchange(bucket.request(method, key, who));
    return response.ok() ? *response : HttpResponse();
  }

 private:
  const TemporaryDirectory directory_;
  const std::string credentials_ = directory_ / "credentials";
  std::string bucket_;
};

}  // namespace holdfast
