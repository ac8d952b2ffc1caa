// What an operator can ask of the appliance. A command is a function over the spool and what stands around it; it
// returns JSON. The running service calls it when the control socket asks, and where none runs the command line opens
// the spool and calls it itself: the same code, the same answer.
//
// Errors: `invalid` the request is wrong; `not_found` what it names is not there; `unavailable` not now, or only in a
// running appliance; `io` the spool's life is over.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "appliance/appliance_status.h"
#include "appliance/json.h"
#include "appliance/router.h"
#include "spool/spool.h"

namespace holdfast {

// Who may: whoever can reach the socket; or only root and the service's own user, for what opens, moves, destroys, or
// holds up records.
enum class Right : std::uint8_t { read, change };

enum class TargetOrder : std::uint8_t { hold, resume, kick };

// Where a command is carried out.
struct Premises {
  Spool& spool;
  const Router& router;
  std::function<ApplianceStatus()> status;
  std::function<Result<void>(const std::string& target, TargetOrder order)> order;
};

inline constexpr std::size_t kMaxPage = 1000;  // records in one answer; the caller asks again with "after"

// Nothing: there is no such command ("spool list").
std::optional<Right> right_of(std::string_view command);

// Which target or records a command was about, for the log once it has been carried out: without the subject of a
// filter (I7).
std::string about(const Json& arguments);

// Whether a user may; `own` is the service's.
bool may(Right right, unsigned uid, unsigned own);

Result<Json> run_command(const Premises& premises, std::string_view command, const Json& arguments);

// "target=hub", "id=1f2e", "subject=a.>", "sequence=17", "all". Several narrow it down.
Result<RecordFilter> parse_filter(const Json& words, const Spool& spool);

}  // namespace holdfast
