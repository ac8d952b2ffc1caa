// An endpoint as docs/targets.md asks for one: it knows records by their keys, takes each once, says that it had one
// already, and refuses other content under a key that it has. Over HttpStub; its memory outlives stop().
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "tests/support/http_stub.h"

namespace holdfast {

class HttpInbox {
 public:
  enum class Takes { raw, envelope, batch };
  explicit HttpInbox(Takes takes);

  HttpStub& stub() { return stub_; }
  std::string url() const { return stub_.url(); }
  // What it holds: a payload for each key; of envelopes in base64, with "base64:" before it.
  std::map<std::string, std::string> held() const;
  // As often as it was sent, whatever came of it.
  std::size_t arrivals(const std::string& key) const;

  // Records with such a payload are refused for good (400; in a batch of several, the batch).
  void refuse(const std::string& payload);
  // Answers this instead, nothing is taken; until well().
  void answer_all(StubAnswer answer);
  void well();

 private:
  enum class Taken { fresh, again, otherwise, refused };
  StubAnswer answer(const StubRequest& request);
  StubAnswer answer_batch(const StubRequest& request);
  Taken take(const std::string& key, const std::string& payload);

  const Takes takes_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> held_;
  std::multiset<std::string> arrivals_;
  std::set<std::string> refused_;
  HttpStub stub_;  // last: it calls
};

}  // namespace holdfast
