// Signatures of requests in the manner of AWS, version 4 (AWS General Reference, "Signature Version 4 signing process";
// for S3, "Authenticating Requests: Using the Authorization Header"). Pure.
//
// Signed here and not by libcurl, which asks the machine's clock for the date: a box's clock is often wrong, and a
// store refuses what is more than a quarter of an hour off. Here the date is the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "spool/envelope.h"

namespace holdfast {

struct SigV4Scope {
  std::string region;
  std::string service = "s3";
};

// What is signed: all headers that are given, "host" and "x-amz-date" among them, in any order and case.
struct SigV4Request {
  std::string_view method;
  std::string_view path;   // percent-encoded as it is sent
  std::string_view query;  // likewise, its parameters in the order of their names
  std::span<const Header> headers;
  std::string_view payload_sha256;  // hexadecimal
};

// 20130524T000000Z: the value of x-amz-date. Of the years 0 to 9999.
std::string sigv4_date(std::int64_t seconds_since_1970);

// The value of the Authorization header. `date` is that of the x-amz-date header.
std::string sigv4_authorization(std::string_view access_key, std::string_view secret, const SigV4Scope& scope,
                                std::string_view date, const SigV4Request& request);

// A path as it is sent and signed: everything but letters, digits, '-', '.', '_', '~' and '/' as %XX.
std::string sigv4_encoded_path(std::string_view path);

}  // namespace holdfast
