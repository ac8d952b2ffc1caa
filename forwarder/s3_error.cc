#include "forwarder/s3_error.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "forwarder/retry_after.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostBody = 4096;
constexpr std::size_t kMostCode = 64;
constexpr std::size_t kMostWords = 1024;
constexpr const char* kThrottled = "throttled";

// Walks over a document; what does not fit makes it stand still for good.
class Scan {
 public:
  explicit Scan(std::string_view text) : rest_(text) {}

  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // What stands before `end`, which is taken too; nothing when there is none.
  std::optional<std::string_view> take_until(std::string_view end) {
    const std::size_t at = rest_.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return before;
  }

 private:
  std::string_view rest_;
};

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kMostCode && std::ranges::all_of(text, [](char c) {
    const char folded = ascii_lower(c);
    return (folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9') || c == '.';
  });
}

// Past the declaration and the opening of the root.
bool enter_error(Scan& scan) {
  (void)scan.take("\xef\xbb\xbf");
  scan.skip_space();
  if (scan.take("<?xml") && !scan.take_until("?>")) return false;
  scan.skip_space();
  if (!scan.take("<Error")) return false;
  const auto attributes = scan.take_until(">");
  return attributes && (attributes->empty() || attributes->front() == ' ') && !attributes->ends_with('/');
}

struct Row {
  Outcome outcome;
  std::vector<std::string_view> codes;
};

// A rejection here needs a code that speaks of the record alone.
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {rejected(Reason::oversize), {"EntityTooLarge", "MaxMessageLengthExceeded"}},
      {rejected(Reason::unencodable), {"KeyTooLongError", "MetadataTooLarge"}},
      {hold_target("no_bucket"), {"NoSuchBucket", "InvalidBucketName"}},
      {hold_target("credentials_refused"),
       {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidSecurity"}},
      {hold_target("token_expired"), {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}},
      {hold_target("access_denied"),
       {"AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidPayer", "NotSignedUp", "UnauthorizedAccess"}},
      {hold_target("clock_skew"), {"RequestTimeTooSkewed", "RequestExpired"}},
      {hold_target("redirected"), {"PermanentRedirect", "Redirect", "TemporaryRedirect"}},
      {hold_target("wrong_region"), {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}},
      {hold_target("store_full"), {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"}},
      {hold_target("setting_refused"),
       {"InvalidStorageClass", "InvalidEncryptionAlgorithmError", "KMS.DisabledException", "KMS.NotFoundException",
        "KMS.InvalidKeyUsageException", "KMS.KMSInvalidStateException"}},
      {retry("upload_damaged"),
       {"BadDigest", "InvalidDigest", "IncompleteBody", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"}},
      {retry("request_timeout"), {"RequestTimeout"}},
      {retry("in_progress"), {"ConditionalRequestConflict", "OperationAborted"}},
      {retry("throttled"),
       {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests"}},
  };
  return kRows;
}

Outcome outcome_of_status(int status) {
  if (status / 100 == 3) return hold_target("redirected");
  switch (status) {
    case 401:
      return hold_target("credentials_refused");
    case 403:  // without a code of the store's: something in front of it, which may mean this record
      return hold_lane("forbidden");
    case 404:
    case 405:
    case 410:
    case 501:
      return hold_target("not_an_object_store");
    case 407:
      return hold_target("proxy_refused");
    case 408:
      return retry("request_timeout");
    case 409:
      return retry("in_progress");
    case 413:
      return rejected(Reason::oversize);
    case 429:
    case 503:
      return retry("throttled");
    case 507:
      return hold_target("store_full");
    default:
      return status / 100 == 5 ? retry("server_error") : retry("unknown_error");
  }
}

Outcome classify(const HttpResponse& response) {
  const std::string_view code = s3_error_code(response.body);
  if (!code.empty()) {
    const auto knows = [&](const Row& row) { return std::ranges::find(row.codes, code) != row.codes.end(); };
    const auto found = std::ranges::find_if(rows(), knows);
    if (found != rows().end()) return found->outcome;
  }
  return outcome_of_status(response.status);
}

}  // namespace

std::string_view s3_error_code(std::string_view body) {
  Scan scan(body.substr(0, kMostBody));
  if (!enter_error(scan)) return {};
  for (;;) {
    scan.skip_space();
    if (!scan.take("<")) return {};
    const auto name = scan.take_until(">");
    if (!name) return {};
    if (name->ends_with('/') && is_word(name->substr(0, name->size() - 1))) continue;
    if (!is_word(*name)) return {};
    const auto text = scan.take_until("</" + std::string(*name) + ">");
    if (!text) return {};
    if (*name == "Code") return is_word(*text) ? *text : std::string_view();
  }
}

Outcome outcome_of_s3_refusal(const HttpResponse& response) {
  Outcome outcome = classify(response);
  if (outcome.kind == OutcomeKind::retry) outcome.retry_after = retry_after(response);
  if (outcome.kind == OutcomeKind::rejected) outcome.words = response.body.substr(0, kMostWords);
  return outcome;
}

bool s3_asks_for_less(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::retry && std::strcmp(outcome.state, kThrottled) == 0;
}

}  // namespace holdfast
