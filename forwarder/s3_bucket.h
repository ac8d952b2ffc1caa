// One bucket of an object store, and how it is asked: requests with their signature, by the store's own clock where the
// box's is wrong. Sends nothing itself.
//
// A request's date is the box's, until the store has refused one whose date is more than five minutes off the Date of
// its answer; from then on it is the store's, carried on by the monotonic clock, so that a box that believes in 1970,
// or is set right later, is understood all the same. Nothing but signatures uses that time.
//
// Threads: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forwarder/http_client.h"
#include "forwarder/http_url.h"
#include "forwarder/s3_credentials.h"
#include "spool/clock.h"

namespace holdfast {

// "https://host" or "http://host", with ":port" perhaps, and nothing behind it but one '/'. Pure.
std::optional<HttpUrl> parse_s3_endpoint(std::string_view text);

// Lower-case letters, digits, '-' and '.', 3 to 63 of them, a letter or digit at either end, never two dots.
bool is_s3_bucket_name(std::string_view text);

struct S3Place {
  std::string endpoint;
  std::string bucket;
  std::string region = "us-east-1";
  bool virtual_host = false;  // the bucket is a part of the host's name, not of the path
};

class S3Bucket {
 public:
  // A place that parse_s3_endpoint and is_s3_bucket_name take. The clock outlives it.
  S3Bucket(const S3Place& place, const Clock& clock);

  // `headers`: with all that is to be signed beside host, date and digest. `body_sha256`: in hexadecimal.
  HttpRequest request(std::string method, std::string_view key, const S3Credentials& credentials,
                      std::vector<Header> headers, ByteView body, std::string_view body_sha256) const;
  // A request without a body.
  HttpRequest request(std::string method, std::string_view key, const S3Credentials& credentials) const;

  // Of a refusal: true when its Date was not the one that requests are signed with, and now it is.
  bool learn_time(const HttpResponse& refusal);
  // How often that was so: a request that was signed before the last time was signed by another clock.
  std::uint64_t lessons() const { return lessons_; }

 private:
  std::int64_t now() const;  // seconds since 1970

  const std::string region_;
  const Clock& clock_;
  std::string scheme_;
  std::string authority_;                 // what the Host header says
  std::string base_path_;                 // encoded; ends with '/'
  std::optional<Nanoseconds> from_boot_;  // the store's clock, less the monotonic one
  std::uint64_t lessons_ = 0;
};

}  // namespace holdfast
