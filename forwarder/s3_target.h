// A bucket of an object store as a target: one object per record (s3_object.h has what it is called and holds,
// s3_error.h what a refusal means).
//
// `delivered` means that the store has answered 200 to the very request that put the object there, with an ETag and
// without a body: something that is no store does not. The store compares the digests that go with each request, so
// that what was damaged on its way is refused. An object is put under the condition that its name is free; when it is
// not, the object that is there is looked at, and is a duplicate where it is this record (on_existing, below).
//
// Not every store knows the condition, and some take it and do not keep it. So the first object of a life is put twice
// (once, where it was there already): a store that takes it the second time, too, ignores the condition. What follows
// says `conditional`. An object that is put twice has the same bytes and metadata both times.
//
// What says something about the target and not about a record ends the delivery: what was not sent yet waits with it.
// The credentials are read again when their file was renewed.
//
// Errors are `unavailable`. Threads: as Target.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forwarder/http_client.h"
#include "forwarder/readback.h"
#include "forwarder/s3_bucket.h"
#include "forwarder/s3_credentials.h"
#include "forwarder/s3_object.h"
#include "forwarder/secret_file.h"
#include "forwarder/target.h"

namespace holdfast {

enum class S3OnExisting : std::uint8_t {
  skip,     // the same content: a duplicate; any other: rejected
  replace,  // put without a condition, and delivered
  fail,     // a duplicate only where this very record put it there; else rejected, whatever its content
};

enum class S3Conditional : std::uint8_t {
  required,      // a store that does not keep the condition holds the target
  if_supported,  // there, each name is looked at before the object is put: one more request, and no guarantee
};

struct S3TargetOptions {
  S3Place place;
  S3Naming naming;
  std::string credentials_file;
  std::string profile = "default";
  S3OnExisting on_existing = S3OnExisting::skip;
  S3Conditional conditional = S3Conditional::required;
  bool compare = true;          // false: what has the name is taken for the record unseen (skip only)
  std::vector<Header> headers;  // with every object: storage class, encryption
  std::string proxy_login_file;
  HttpClientOptions client;
  const Clock* clock = &system_clock();
};

class S3Target : public Target {
 public:
  explicit S3Target(S3TargetOptions options);

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  // Ends the delivery in progress, or the next one if there is none.
  void interrupt() override { client_.interrupt(); }

 private:
  // What this store makes of the condition, as far as it has shown that.
  enum class Condition : std::uint8_t { unproven, kept, unknown_to_it, ignored };
  class Round;  // one deliver

  const S3TargetOptions options_;
  S3CredentialsFile credentials_;
  SecretFile proxy_login_;
  S3Bucket bucket_;
  HttpClient client_;
  Condition condition_ = Condition::unproven;
};

// By GET and DELETE: needs those rights. Objects of more than 256 MiB cannot be asked about.
std::unique_ptr<Readback> make_s3_readback(S3TargetOptions options);

}  // namespace holdfast
