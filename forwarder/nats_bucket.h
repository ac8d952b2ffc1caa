// A key-value bucket of JetStream as the place that records go to: keys, and what is there already. Pure.
//
// A bucket NAME is the stream KV_NAME; the value of a key is the last message on $KV.NAME.<key> (the public description
// of NATS key-value stores, ADR-8). A record's key is the wire key, or what a template makes of it, with every byte
// that a key may not have as =XX: letters, digits and - _ / . stand for themselves, all else, and the = itself, is
// escaped; so is a dot at either end or behind another, and the first byte of "_kv", which is reserved. Two names never
// get one key, and any decoder of quoted-printable gives the name back:
//
//     seq:truck-07:TELEMETRY:12:1700000000000000000 -> seq=3Atruck-07=3ATELEMETRY=3A12=3A1700000000000000000
//
// The value is the payload, byte for byte; the headers are those of nats_wire.h, the wire key among them as
// Nats-Msg-Id, by which the record is known again after the server has forgotten the id.
//
// What happens to a key that has a value:
// - fail (the default): the same record (its wire key and its payload), a duplicate; anything else stays, and the
//   record is rejected, exists_otherwise. So a record whose value somebody has changed since is in quarantine when it
//   comes twice, never lost.
// - skip: whatever is there stays, and the record counts as a duplicate: the first one wins, by the operator's word.
// - replace: the record is put. The same record twice is harmless; but a record that is tried again may put back what a
//   later one had replaced, where a template gives both one key. For keys of which the last value counts, use it with
//   one record on its way at a time (window = 1).
//
// A key that was deleted or purged has no value, only a marker: it is created again, on the marker's revision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "forwarder/nats_messages.h"
#include "forwarder/subject_template.h"
#include "forwarder/target.h"

namespace holdfast {

enum class ExistingValue : std::uint8_t { fail, skip, replace };

struct NatsBucket {
  std::string name;
  std::optional<SubjectTemplate> key;  // none: the wire key
  ExistingValue existing = ExistingValue::fail;
};

bool valid_bucket_name(std::string_view name);  // letters, digits, - and _; at most 200
// The text around the variables of a key's template: bytes that a key may have, and no dots that it may not.
bool valid_key_template(std::string_view text);

std::string bucket_stream(std::string_view bucket);
// Nothing: a name that is empty or longer than a subject can be.
std::optional<std::string> bucket_subject(std::string_view bucket, std::string_view name);

// What the last message on a key says of a record that was not created because there is one.
struct ExistingVerdict {
  std::optional<Outcome> outcome;
  std::uint64_t revision = 0;  // without an outcome: of the marker that may be replaced
};
ExistingVerdict judge_existing(const StoredContent& existing, const Delivery& delivery, ExistingValue policy);

// The message is this record's: its wire key, and its payload.
bool is_same_message(const StoredContent& stored, const Delivery& delivery);

}  // namespace holdfast
