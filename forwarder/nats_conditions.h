// What a stream of JetStream says of itself that bears on how safe records are in it (docs/certification.md).
#pragma once

#include <string>
#include <vector>

#include "forwarder/certified_target.h"
#include "forwarder/nats_connection.h"
#include "forwarder/nats_stream.h"

namespace holdfast {

// Pure. Nothing of a stream that needs no condition.
std::vector<Condition> conditions_of(const StreamKeeping& stream);

// Asks the server. Errors: `unavailable`; `not_found`: no stream there takes the subject, or several do.
Result<std::string> stream_that_takes(NatsConnection& connection, const std::string& subject);
Result<std::vector<Condition>> ask_nats_conditions(const NatsOptions& nats, const std::string& subject);

}  // namespace holdfast
