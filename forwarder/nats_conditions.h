// What a stream of JetStream says of itself that bears on how safe records are in it (docs/certification.md).
#pragma once

#include <string>
#include <vector>

#include "forwarder/certified_target.h"
#include "forwarder/nats_connection.h"
#include "forwarder/nats_stream.h"
#include "forwarder/nats_target.h"

namespace holdfast {

// Pure. Nothing of a stream that needs no condition.
std::vector<Condition> conditions_of(const StreamKeeping& stream);

// Ask the server. Errors: `unavailable`; `not_found`: no stream there takes the record, or several do.
// Where a record of the target goes: the stream that it names, its bucket's, or the one that takes the subject.
Result<std::string> stream_behind(NatsConnection& connection, const NatsTargetOptions& target, const Delivery& record);
Result<std::vector<Condition>> ask_nats_conditions(const NatsTargetOptions& target, const std::string& subject);

}  // namespace holdfast
