// What an HTTP answer means for a record: the table "http" of docs/targets.md. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forwarder/http_client.h"
#include "forwarder/outcome.h"

namespace holdfast {

// What an answer must be for its status to count as success: a captive portal and a wrong server say 200, too.
struct HttpExpect {
  std::vector<int> statuses = {200, 201, 202, 204};
  std::string header;        // its name; none: not looked at
  std::string header_value;  // a pattern (wildcard.h); none: it need only be there
  std::string body;          // a pattern of the whole body; none: not looked at
};

// Whether it is a success by its status, and is what was expected.
bool is_expected(const HttpResponse& response, const HttpExpect& expect);

// Of an exchange that brought a status. Never nothing: what is not known is a retry or a hold, with its code.
Outcome outcome_of_response(const HttpResponse& response, const HttpExpect& expect);

// Of one that brought none, where that says something: the request surely did not arrive, and what is wrong is not the
// record. Nothing: nothing is known.
std::optional<Outcome> outcome_of_fault(const HttpResponse& response);

// The server wants less of everything, not only of this record: nothing else is to go before then.
bool asks_for_less(const HttpResponse& response);

// One record of a batch, as the answer has it.
struct HttpVerdict {
  std::string key;
  Outcome outcome;
};
struct HttpVerdicts {
  bool present = false;  // the answer has verdicts, or should have had: it is JSON that cannot be read
  std::vector<HttpVerdict> verdicts;
};
// {"verdicts":[{"key":..,"verdict":..,"retry_after":<seconds>},..]}; verdicts: accepted, duplicate, conflict, rejected,
// too_large, retry. Another word is retry `unknown_verdict`.
HttpVerdicts parse_http_verdicts(const HttpResponse& response);

}  // namespace holdfast
