// What goes over the control socket, on both sides of it: commands as HTTP targets, answers and failures as JSON. Pure.
#pragma once

#include <string>
#include <string_view>

#include "appliance/json.h"
#include "spool/result.h"

namespace holdfast {

struct CommandCall {
  std::string command;  // "spool list"
  Json arguments;
};

// "POST", "/v1/spool/list", "{...}": the command and its arguments, or why it is no request of ours.
Result<CommandCall> read_call(std::string_view method, std::string_view target, std::string_view body);
// "spool list" -> "/v1/spool/list".
std::string call_target(std::string_view command);

// The status that a failure goes out with.
int status_of(const Error& error);
std::string failure_body(const Error& error);
// Of an answer that is not 200.
Error read_failure(std::string_view body);

}  // namespace holdfast
