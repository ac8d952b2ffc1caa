// The worlds of the HTTP target: an endpoint that knows records by their keys, and three ways to send to it.
#pragma once

#include "forwarder/http_target.h"
#include "tests/forwarder/target_worlds.h"
#include "tests/support/http_inbox.h"

namespace holdfast {

inline HttpTargetOptions http_options(const std::string& url, HttpInbox::Takes takes = HttpInbox::Takes::raw) {
  HttpTargetOptions options;
  options.site = "truck-07";
  options.url = url;
  options.client.https_only = false;
  options.client.deadline = std::chrono::minutes(2);  // a test that waits for it has failed
  if (takes != HttpInbox::Takes::raw) options.body = HttpBody::envelope;
  if (takes == HttpInbox::Takes::batch) options.batch = 7;
  return options;
}

class HttpWorld : public TargetWorld {
 public:
  explicit HttpWorld(HttpInbox::Takes takes) : takes_(takes), inbox_(takes) {}

  std::unique_ptr<Target> target() override { return std::make_unique<HttpTarget>(http_options(inbox_.url(), takes_)); }
  std::multimap<std::string, std::string> upstream() override {
    const auto held = inbox_.held();
    return {held.begin(), held.end()};
  }
  // 422 says that it does not take the record, and not why; the verdicts of a batch do.
  bool tells_conflicts() const override { return takes_ == HttpInbox::Takes::batch; }
  void break_upstream() override { inbox_.stub().stop(); }
  void repair_upstream() override { inbox_.stub().start(); }
  bool hang(Target&) override {
    StubAnswer nothing;
    nothing.manner = Manner::hang;
    inbox_.answer_all(nothing);
    return true;
  }

 private:
  const HttpInbox::Takes takes_;
  HttpInbox inbox_;
};

}  // namespace holdfast
