// Any bytes as what an object store says in a refusal, and as a file of credentials.
#include <algorithm>

#include "forwarder/s3_credentials.h"
#include "forwarder/s3_error.h"
#include "spool/check.h"
#include "tests/fuzz/fuzz_case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const std::string_view text = as_text(ByteView(data, size));
  const std::string_view code = s3_error_code(text);
  CHECK(code.size() <= 64 && std::ranges::all_of(code, [](char c) { return c > 0x20 && c < 0x7f; }));
  HttpResponse response;
  response.status = 400;
  response.body = text;
  const Outcome outcome = outcome_of_s3_refusal(response);
  CHECK(outcome.kind != OutcomeKind::delivered && outcome.kind != OutcomeKind::duplicate);
  CHECK(outcome.kind != OutcomeKind::rejected || !code.empty());
  if (const auto found = parse_s3_credentials(text, "default")) {
    CHECK(!found->access_key.empty() && !found->secret.empty());
    CHECK(http_header_fits({"Name", found->access_key}));
    CHECK(found->token.empty() || http_header_fits({"Name", found->token}));
  }
  return 0;
}
