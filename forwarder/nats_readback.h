// How certification learns what a stream of JetStream holds: it reads the messages on the records' subjects, from where
// the stream ended when it was first asked on.
//
// A removal that is the first thing asked begins where the stream begins: it is for what an earlier run has left.
#pragma once

#include <memory>

#include "forwarder/nats_target.h"
#include "forwarder/readback.h"

namespace holdfast {

// Reached and let in as the target is; the user must be allowed to ask JetStream for the stream's messages, and to
// delete them.
std::unique_ptr<Readback> make_nats_readback(const NatsTargetOptions& target);

}  // namespace holdfast
