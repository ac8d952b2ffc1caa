#include "forwarder/code.h"

#include <algorithm>
#include <iterator>

namespace holdfast {
namespace {

struct Code {
  const char* code;
  const char* text;
};

constexpr Code kCodes[] = {
    {"unreachable", "no connection to it"},
    {"credentials_refused", "it refuses the credentials"},
    {"file_unusable", "a file of credentials or TLS cannot be used"},
    {"unreported", "it said nothing of some records"},
    {"refused", "it wants the record later"},
    {"rejected_unproven", "it has accepted nothing else since"},
    {"no_stream", "no stream there takes the subject, or JetStream is not there"},
    {"wrong_stream", "another stream than the expected one takes the subject"},
    {"not_permitted", "the user may not publish to the subject"},
    {"not_a_stream", "something else than a stream answers on the subject"},
    {"stream_full", "the stream is at its limit"},
    {"stream_sealed", "the stream is sealed"},
    {"no_resources", "the server has no room"},
    {"key_taken", "another writer was at the key in the same moment"},
    {"look_not_permitted", "the user may not read what the bucket has (STREAM.MSG.GET)"},
    {"in_progress", "the server is still storing it"},
    {"unknown_error", "the server gave an error that is not known here"},
    {"disk_full", "the target's disk is full"},
    {"directory_missing", "the target's directory is not there"},
    {"directory_refused", "the target's directory may not be written"},
    {"directory_taken", "something else has the name of a directory there"},
    {"name_taken", "another process is writing the file"},
};

// Those that the text of an error may begin with.
constexpr const char* kOfErrors[] = {"credentials_refused", "file_unusable"};

}  // namespace

const char* code_of(const Error& error) {
  const auto found = std::ranges::find_if(kOfErrors, [&](const char* code) { return error.text.starts_with(code); });
  return found == std::end(kOfErrors) ? "unreachable" : *found;
}

std::string_view code_text(std::string_view code) {
  const auto found = std::ranges::find_if(kCodes, [&](const Code& one) { return code == one.code; });
  return found == std::end(kCodes) ? "" : found->text;
}

}  // namespace holdfast
