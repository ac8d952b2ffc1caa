// Base64 with padding (RFC 4648, section 4): payloads that are no text, in JSON. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "crypto/bytes.h"

namespace holdfast {

std::string to_base64(ByteView bytes);
// Nothing when it is not exactly that.
std::optional<Bytes> from_base64(std::string_view text);

}  // namespace holdfast
