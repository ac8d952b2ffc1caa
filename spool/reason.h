// Why a record was set aside, or left without being delivered. Numbers are on disk (notes, index) and never reused.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast {

enum class Reason : std::uint16_t {
  none = 0,
  // refused at the intake
  no_identity = 1,          // the strategy finds no key in it
  no_route = 2,             // no route matches its subject
  too_large = 3,            // above what a record may be
  undecodable_headers = 4,  // headers that the client library cannot read
  payload_omitted = 5,      // a payload-derived identity and no payload
  // the identity is a field of the payload, and
  not_json = 6,              // the payload is not JSON, and its path leads nowhere else
  field_missing = 7,         // it is not there, or what should hold it is no object
  field_null = 8,            // it is null
  field_object = 9,          // an object
  field_array = 10,          // an array
  field_empty = 11,          // an empty string
  field_too_long = 12,       // a string of more than 1 MiB
  field_absurd_number = 13,  // a number of more than 100 characters when it is written out
  field_repeated = 14,       // an object on the way to it has the same key twice
  // found in custody
  conflict = 20,          // same identity as an earlier record, other content
  duplicate_record = 21,  // same identity and content as an earlier record that was not known when this was taken
  damaged = 22,           // bytes that are not what was written
  unopenable = 23,        // sealed with a key that is not there, or altered
  undecodable = 24,       // opened, but not a record body that this version knows
  // said by a target, which has accepted others since
  rejected = 40,          // the request was malformed for it (400, 422, a schema)
  oversize = 41,          // above what it takes
  unencodable = 42,       // the target's protocol cannot carry it (a header, a subject, a name)
  exists_otherwise = 43,  // it has other content under the same key
  // decided by an operator or a policy
  discarded = 60,
  expired = 61,
};

// The snake_case name, as shown and as written in --json.
std::string_view reason_text(Reason reason);
std::optional<Reason> reason_from_text(std::string_view text);

}  // namespace holdfast
