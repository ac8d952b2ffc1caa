// An object store of ours on the loopback with the semantics that S3 documents and the servers in Debian lack: 412 to a
// name that is taken, 409, the kinds of 403, a clock of its own. Over HttpStub; its objects outlive stop().
//
// It looks at digests, dates, access key and token, and believes any signature: that ours are right is asked of a real
// server (swift_server.h).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tests/support/http_stub.h"

namespace holdfast {

class S3Stub {
 public:
  enum class Condition { kept, not_implemented, ignored };  // what it makes of If-None-Match
  struct Object {
    std::string content;
    std::map<std::string, std::string> metadata;  // x-amz-meta-..., names in lower case
  };

  S3Stub();

  HttpStub& stub() { return stub_; }
  std::string url() const { return stub_.url(""); }
  std::string bucket() const { return "records"; }

  struct Manners {
    Condition condition = Condition::kept;
    std::chrono::seconds clock_shift{0};     // its clock, from the machine's
    std::string access_key = "AKIDEXAMPLE";  // of whoever it knows
    std::string token = {};                  // wanted; another one is expired
    bool may_read = true;                    // else HEAD and GET are 403
    bool keeps_metadata = true;
    bool has_bucket = true;
  };
  void behave(const std::function<void(Manners& manners)>& change);

  // By key.
  std::map<std::string, Object> objects() const;
  void put(const std::string& key, Object object);
  void erase(const std::string& key);
  std::size_t puts(const std::string& key) const;  // requests to put it, whatever came of them

  // Asked before all else; nothing: it answers as it does.
  using First = std::function<std::optional<StubAnswer>(const StubRequest& request)>;
  void first_ask(First first);

  static StubAnswer refusal(int status, const std::string& code);

 private:
  StubAnswer answer(const StubRequest& request);
  std::optional<StubAnswer> refuse(const StubRequest& request) const;
  StubAnswer put(const StubRequest& request, const std::string& key);
  StubAnswer get(const std::string& key) const;
  std::int64_t now() const;

  mutable std::mutex mutex_;
  Manners manners_;
  First first_;
  std::map<std::string, Object> objects_;
  std::map<std::string, std::size_t> puts_;
  HttpStub stub_;  // last: it calls
};

}  // namespace holdfast
