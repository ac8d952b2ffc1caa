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
    {"certificate_refused", "its certificate is expired, of another name, or not trusted"},
    {"forbidden", "it may not take the record from us (403)"},
    {"no_answer", "it took the request and gave no answer"},
    {"no_endpoint", "the URL takes no such requests (404, 405, 410, 415)"},
    {"no_verdict", "its answer to a batch leaves out some records"},
    {"not_sendable", "the request cannot be made up"},
    {"proxy_refused", "the proxy does not let it through"},
    {"redirected", "it redirects elsewhere: a moved endpoint, or a captive portal"},
    {"request_timeout", "it waited too long for the request (408)"},
    {"response_cut", "its answer did not come whole"},
    {"response_too_large", "its answer is above response_bytes"},
    {"server_error", "it fails (5xx)"},
    {"throttled", "it wants fewer requests (429)"},
    {"too_early", "it wants the record later (425)"},
    {"unexpected_answer", "its answer is not what is expected: a captive portal, or another server"},
    {"unknown_status", "it answers with a status that is not known here"},
    {"access_denied", "the store denies it: a policy, or the account"},
    {"clock_skew", "the store's clock is another than the box's; requests are signed by the store's where it tells it"},
    {"condition_ignored", "the store overwrites whatever it is told; conditional = \"if_supported\" accepts that"},
    {"condition_unsupported", "the store knows no condition (501); conditional = \"if_supported\" does without"},
    {"no_bucket", "the bucket is not there"},
    {"not_an_object_store", "something else than an object store answers"},
    {"read_refused", "it does not show what has the name already: reading is not permitted"},
    {"setting_refused", "it does not take the storage class or the encryption"},
    {"store_full", "the store is full, or its quota"},
    {"token_expired", "the session token has expired; the file of credentials must be renewed"},
    {"upload_damaged", "what arrived is not what was sent"},
    {"wrong_region", "the bucket is in another region"},
    {"unknown_verdict", "its answer to a batch has a word that is not known here"},
    {"no_database", "there is no such database"},
    {"read_only", "the database takes no writes"},
    {"no_table", "the table is not there, or hidden from the user"},
    {"no_table_for_subject", "no table of the target takes the subject"},
    {"no_column", "a column is not there"},
    {"column_mismatch", "a column cannot be given what it needs"},
    {"no_privilege", "the user may not write the table"},
    {"no_unique_key", "no unique constraint of its own on the key's column"},
    {"other_unique_key", "a further unique constraint, which an upsert could meet"},
    {"key_not_exact", "the key's column is too short, or takes two keys for one"},
    {"table_not_transactional", "the table has no transactions, or does not survive a crash"},
    {"statement_refused", "the database cannot carry out the statement"},
    {"contended", "others had the rows, or it took too long"},
    {"parent_missing", "a row that it refers to is not there"},
    {"no_partition", "no partition takes the row"},
};

// Those that the text of an error may begin with.
constexpr const char* kOfErrors[] = {"credentials_refused", "file_unusable", "no_database", "no_resources"};

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
