// The command line's end of the control socket.
#pragma once

#include <memory>
#include <string>

#include "appliance/control_wire.h"
#include "spool/clock.h"

namespace holdfast {

class ControlClient {
 public:
  // `not_found`: no appliance runs there. `invalid`: the socket may not be used by this user.
  static Result<std::unique_ptr<ControlClient>> connect(const std::string& path);
  ~ControlClient();

  // The answer, or the appliance's own failure. `unavailable`: it did not answer within `limit`, or left meanwhile.
  Result<Json> ask(const std::string& command, const Json& arguments, Nanoseconds limit = std::chrono::minutes(30));

 private:
  struct Parts;
  explicit ControlClient(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
