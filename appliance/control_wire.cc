#include "appliance/control_wire.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::string_view kRoot = "/v1/";
constexpr ErrorKind kKinds[] = {ErrorKind::full,    ErrorKind::io,        ErrorKind::corrupt, ErrorKind::unavailable,
                                ErrorKind::invalid, ErrorKind::not_found, ErrorKind::exists};

bool is_command_character(char c) {
  return (c >= 'a' && c <= 'z') || c == '/';
}

}  // namespace

Result<CommandCall> read_call(std::string_view method, std::string_view target, std::string_view body) {
  const bool get = method == "GET";
  if (!get && method != "POST") return Error{ErrorKind::invalid, "a command is asked for with GET or POST"};
  if (!target.starts_with(kRoot) || !std::all_of(target.begin() + kRoot.size(), target.end(), is_command_character))
    return Error{ErrorKind::not_found, "there is nothing here; commands are at /v1/, like /v1/status"};
  CommandCall call{std::string(target.substr(kRoot.size())), Json(Json::Fields())};
  std::replace(call.command.begin(), call.command.end(), '/', ' ');
  if (get || body.empty()) return call;
  auto arguments = parse_json(body);
  if (!arguments || !arguments->is_fields())
    return Error{ErrorKind::invalid, "the body must be a JSON object with the command's arguments"};
  call.arguments = std::move(*arguments);
  return call;
}

std::string call_target(std::string_view command) {
  std::string target = std::string(kRoot) + std::string(command);
  std::replace(target.begin(), target.end(), ' ', '/');
  return target;
}

int status_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
      return 400;
    case ErrorKind::not_found:
      return 404;
    case ErrorKind::exists:
      return 409;
    case ErrorKind::unavailable:
      return 503;
    case ErrorKind::full:
      return 507;
    case ErrorKind::io:
    case ErrorKind::corrupt:
      return 500;
  }
  return 500;
}

std::string failure_body(const Error& error) {
  Json failure;
  failure.set("kind", error_kind_text(error.kind));
  failure.set("text", error.text);
  Json body;
  body.set("error", std::move(failure));
  return json_text(body);
}

Error read_failure(std::string_view body) {
  const Json json = parse_json(body).value_or(Json());
  const Json& failure = json["error"];
  if (failure["text"].text().empty()) return {ErrorKind::unavailable, "the appliance gave an answer that is none"};
  for (const ErrorKind kind : kKinds)
    if (failure["kind"].text() == error_kind_text(kind)) return {kind, failure["text"].text()};
  return {ErrorKind::unavailable, failure["text"].text()};
}

}  // namespace holdfast
