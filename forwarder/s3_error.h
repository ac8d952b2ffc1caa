// What a refusal of an object store means for a record: the table "s3" of docs/targets.md. Pure.
//
// By the status, and by the Code of the error document where there is one (Amazon S3 API Reference, "Error responses").
// An answer that is not known is a retry or a hold: never a verdict on the record.
#pragma once

#include <string_view>

#include "forwarder/http_client.h"
#include "forwarder/outcome.h"

namespace holdfast {

// The text of Code, a child of the root Error; empty when the body is no such document. Looks at the first 4 KiB, and
// takes only letters, digits and dots, at most 64.
std::string_view s3_error_code(std::string_view body);

// Of a response that is no success (its status is not 2xx) and has arrived whole, or at least its head.
Outcome outcome_of_s3_refusal(const HttpResponse& response);

// The store wants less of everything: nothing else is to go for now.
bool s3_asks_for_less(const Outcome& outcome);

}  // namespace holdfast
