// What a NATS target's stream or bucket holds of given records (readback.h), asked of JetStream itself.
//
// Of a stream: what was stored since it was first looked at, for a stream may have any number of older messages; so it
// is looked at once before the records are sent. A removal that is the first thing asked begins where the stream does:
// it is for what an earlier run has left. It asks for the messages on a record's subject, one after the other
// (STREAM.MSG.GET), and counts those with its Nats-Msg-Id; above 100,000 in one look it gives up. Of a bucket: the
// value of the record's key. remove() deletes those messages (STREAM.MSG.DELETE); a bucket's key then has no value, and
// no marker.
//
// Errors: `not_found`, there is no saying which stream it is; `unavailable`, whatever else. Threads: one.
#pragma once

#include <memory>

#include "forwarder/nats_target.h"
#include "forwarder/readback.h"

namespace holdfast {

// Connects when it is first asked, and where the URL says, not to connect_to: what is asked must not go through what
// is being tried. The user must be allowed to ask JetStream for the stream's messages, and to delete them.
std::unique_ptr<Readback> make_nats_readback(NatsTargetOptions options);

}  // namespace holdfast
