#include "forwarder/disk_failure.h"

namespace holdfast {

std::optional<Outcome> outcome_of_disk(const Error& error) {
  switch (error.kind) {
    case ErrorKind::full:
      return retry("disk_full");
    case ErrorKind::not_found:
      return hold_target("directory_missing");
    case ErrorKind::invalid:
      return hold_target("directory_refused");
    default:
      return std::nullopt;
  }
}

Error disk_failed(const char* verb, const Error& error) {
  const std::size_t colon = error.text.rfind(": ");
  const std::string why = colon == std::string::npos ? error_kind_text(error.kind) : error.text.substr(colon + 2);
  return {ErrorKind::unavailable, std::string("cannot ") + verb + " the target's directory: " + why};
}

}  // namespace holdfast
