// How certification learns what an HTTP endpoint holds, from the endpoint itself (docs/targets.md, "Certification"):
//
//     GET    {verify_url}?key=<wire key, %XX>    200 {"copies":<n>}, and ,"as_sent":false where the content is another
//     DELETE {verify_url}?key=<wire key, %XX>    2xx, or 404
#pragma once

#include <memory>
#include <string>

#include "forwarder/http_target.h"
#include "forwarder/readback.h"

namespace holdfast {

// Reached and let in as the target is.
std::unique_ptr<Readback> make_http_readback(std::string verify_url, const HttpTargetOptions& target);

// The answer to the question; nothing: it is none.
std::optional<Held> parse_held(std::string_view document);

}  // namespace holdfast
