// The JSON of HTTP answers: their door to Boost.JSON.
#include <boost/json.hpp>

#include "forwarder/http_readback.h"
#include "forwarder/http_verdict.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

namespace json = boost::json;

constexpr double kMostSeconds = 24 * 60 * 60;

std::optional<Nanoseconds> time_of(const json::object& said) {
  const json::value* asked = said.if_contains("retry_after");
  if (asked == nullptr || !asked->is_number()) return std::nullopt;
  const double seconds = asked->to_number<double>();
  if (!(seconds >= 0 && seconds <= kMostSeconds)) return std::nullopt;
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

Outcome outcome_of(std::string_view verdict, const json::object& said) {
  if (verdict == "accepted") return accepted();
  if (verdict == "duplicate") return accepted(OutcomeKind::duplicate);
  if (verdict == "conflict") return rejected(Reason::exists_otherwise);
  if (verdict == "rejected") return rejected(Reason::rejected);
  if (verdict == "too_large") return rejected(Reason::oversize);
  if (verdict == "retry") return retry("refused", time_of(said));
  return retry("unknown_verdict");
}

std::string_view text_of(const json::object& said, std::string_view name) {
  const json::value* value = said.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

json::value parse(std::string_view text, boost::system::error_code& error) {
  json::parse_options options;
  options.max_depth = 16;
  return json::parse({text.data(), text.size()}, error, {}, options);
}

bool says_json(const HttpResponse& response) {
  std::string type(response.header("Content-Type").value_or(""));
  for (char& c : type) c = ascii_lower(c);
  return type.find("json") != std::string::npos;
}

}  // namespace

HttpVerdicts parse_http_verdicts(const HttpResponse& response) {
  boost::system::error_code error;
  const json::value document = parse(response.body, error);
  HttpVerdicts found;
  if (error) {
    found.present = !response.body.empty() && says_json(response);
    return found;
  }
  const json::object* root = document.if_object();
  const json::value* verdicts = root == nullptr ? nullptr : root->if_contains("verdicts");
  if (verdicts == nullptr) return found;
  found.present = true;
  if (!verdicts->is_array()) return found;
  for (const json::value& one : verdicts->get_array()) {
    const json::object* said = one.if_object();
    if (said == nullptr) continue;
    found.verdicts.push_back({std::string(text_of(*said, "key")), outcome_of(text_of(*said, "verdict"), *said)});
  }
  return found;
}

std::optional<Held> parse_held(std::string_view document) {
  boost::system::error_code error;
  const json::value value = parse(document, error);
  const json::object* said = error ? nullptr : value.if_object();
  const json::value* copies = said == nullptr ? nullptr : said->if_contains("copies");
  if (copies == nullptr || !copies->is_int64() || copies->get_int64() < 0) return std::nullopt;
  Held held;
  held.copies = static_cast<std::uint64_t>(copies->get_int64());
  const json::value* as_sent = said->if_contains("as_sent");
  if (as_sent != nullptr && !as_sent->is_bool()) return std::nullopt;
  held.as_sent = as_sent == nullptr || as_sent->get_bool();
  return held;
}

}  // namespace holdfast
