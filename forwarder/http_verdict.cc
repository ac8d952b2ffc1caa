#include "forwarder/http_verdict.h"

#include <algorithm>

#include "forwarder/retry_after.h"
#include "forwarder/wildcard.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostWords = 1024;

std::string words_of(const HttpResponse& response) {
  return response.body.substr(0, kMostWords);
}

// A success counts when all of it came.
Outcome outcome_of_success(const HttpResponse& response, const HttpExpect& expect) {
  if (response.fault == HttpFault::too_large) return retry("response_too_large");
  if (response.fault != HttpFault::none) return retry("response_cut");
  if (!is_expected(response, expect)) return hold_lane("unexpected_answer");
  const auto replayed = response.header("Idempotent-Replayed");
  return accepted(replayed == "true" ? OutcomeKind::duplicate : OutcomeKind::delivered);
}

Outcome outcome_of_refusal(const HttpResponse& response) {
  switch (response.status) {
    case 400:
    case 422:
      return rejected(Reason::rejected, words_of(response));
    case 413:
      return rejected(Reason::oversize, words_of(response));
    case 401:
      return hold_target("credentials_refused");
    case 403:  // of this record, perhaps: a filter before the server looks into bodies
      return hold_lane("forbidden");
    case 404:
    case 405:
    case 410:
    case 415:
      return hold_target("no_endpoint");
    case 407:
      return hold_target("proxy_refused");
    case 408:
      return retry("request_timeout", retry_after(response));
    case 409:
      return retry("in_progress", retry_after(response));
    case 425:
      return retry("too_early", retry_after(response));
    case 429:
      return retry("throttled", retry_after(response));
    default:
      return retry("unknown_status", retry_after(response));
  }
}

}  // namespace

bool is_expected(const HttpResponse& response, const HttpExpect& expect) {
  if (std::ranges::find(expect.statuses, response.status) == expect.statuses.end()) return false;
  if (!expect.header.empty()) {
    const auto value = response.header(expect.header);
    if (!value) return false;
    if (!expect.header_value.empty() && !matches_wildcard(expect.header_value, *value)) return false;
  }
  return expect.body.empty() || matches_wildcard(expect.body, response.body);
}

Outcome outcome_of_response(const HttpResponse& response, const HttpExpect& expect) {
  const bool named = std::ranges::find(expect.statuses, response.status) != expect.statuses.end();
  if (named || response.status / 100 == 2) return outcome_of_success(response, expect);
  if (response.status / 100 == 3) return hold_target("redirected");
  if (response.status / 100 == 5) return retry("server_error", retry_after(response));
  return outcome_of_refusal(response);
}

std::optional<Outcome> outcome_of_fault(const HttpResponse& response) {
  switch (response.fault) {
    case HttpFault::refused:
      return hold_target("not_sendable");
    case HttpFault::proxy:
      return hold_target("proxy_refused");
    case HttpFault::certificate:
      return hold_target("certificate_refused");
    case HttpFault::own_identity:
      return hold_target("credentials_refused");
    case HttpFault::file_unusable:
      return hold_target("file_unusable");
    default:
      return std::nullopt;
  }
}

bool asks_for_less(const HttpResponse& response) {
  return response.status == 429 || (response.status == 503 && retry_after(response).has_value());
}

}  // namespace holdfast
