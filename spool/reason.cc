#include "spool/reason.h"

#include <array>

namespace holdfast {
namespace {

// Every number that reason_text knows; tests/spool/reason_test.cc walks all 65536.
constexpr std::array kReasons{
    Reason::none,
    Reason::no_identity,
    Reason::no_route,
    Reason::too_large,
    Reason::undecodable_headers,
    Reason::payload_omitted,
    Reason::not_json,
    Reason::field_missing,
    Reason::field_null,
    Reason::field_object,
    Reason::field_array,
    Reason::field_empty,
    Reason::field_too_long,
    Reason::field_absurd_number,
    Reason::field_repeated,
    Reason::conflict,
    Reason::duplicate_record,
    Reason::damaged,
    Reason::unopenable,
    Reason::undecodable,
    Reason::rejected,
    Reason::oversize,
    Reason::unencodable,
    Reason::exists_otherwise,
    Reason::discarded,
    Reason::expired,
};

}  // namespace

std::string_view reason_text(Reason reason) {
  switch (reason) {
    case Reason::none:
      return "none";
    case Reason::no_identity:
      return "no_identity";
    case Reason::no_route:
      return "no_route";
    case Reason::too_large:
      return "too_large";
    case Reason::undecodable_headers:
      return "undecodable_headers";
    case Reason::payload_omitted:
      return "payload_omitted";
    case Reason::not_json:
      return "not_json";
    case Reason::field_missing:
      return "field_missing";
    case Reason::field_null:
      return "field_null";
    case Reason::field_object:
      return "field_object";
    case Reason::field_array:
      return "field_array";
    case Reason::field_empty:
      return "field_empty";
    case Reason::field_too_long:
      return "field_too_long";
    case Reason::field_absurd_number:
      return "field_absurd_number";
    case Reason::field_repeated:
      return "field_repeated";
    case Reason::conflict:
      return "conflict";
    case Reason::duplicate_record:
      return "duplicate_record";
    case Reason::damaged:
      return "damaged";
    case Reason::unopenable:
      return "unopenable";
    case Reason::undecodable:
      return "undecodable";
    case Reason::rejected:
      return "rejected";
    case Reason::oversize:
      return "oversize";
    case Reason::unencodable:
      return "unencodable";
    case Reason::exists_otherwise:
      return "exists_otherwise";
    case Reason::discarded:
      return "discarded";
    case Reason::expired:
      return "expired";
  }
  return "unknown";  // a number from a newer program
}

std::optional<Reason> reason_from_text(std::string_view text) {
  for (Reason reason : kReasons) {
    if (reason_text(reason) == text) return reason;
  }
  return std::nullopt;
}

}  // namespace holdfast
