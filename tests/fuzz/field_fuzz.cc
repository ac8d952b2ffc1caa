// Any bytes as a path and a payload: the first line, and what follows it. What is found is one of the few things that a
// field may be, makes a key that reads back as path, type and value, and does not depend on what stands around it.
#include <algorithm>
#include <array>

#include "spool/check.h"
#include "spool/identity.h"
#include "spool/payload_field.h"
#include "spool/plain_decimal.h"
#include "tests/fuzz/fuzz_case.h"

namespace holdfast {
namespace {

using Found = std::variant<FieldValue, Reason>;

void check_value(const FieldValue& value) {
  switch (value.type) {
    case FieldType::string:
      CHECK(!value.text.empty() && value.text.size() <= kMaxFieldText);
      return;
    case FieldType::number:
      CHECK(value.text.size() <= kMaxPlainDecimal && plain_decimal(value.text) == value.text);
      return;
    case FieldType::boolean:
      CHECK(value.text == "true" || value.text == "false");
      return;
  }
}

std::string unescaped(std::string_view component) {
  std::string bytes;
  while (!component.empty()) {
    const bool escape = component.front() == '%';
    CHECK(!escape || component.size() >= 3);
    const auto digit = [&](std::size_t at) { return std::string_view("0123456789ABCDEF").find(component[at]); };
    bytes.push_back(escape ? static_cast<char>(digit(1) * 16 + digit(2)) : component.front());
    component.remove_prefix(escape ? 3 : 1);
  }
  return bytes;
}

void check_key(const FieldPath& path, const Envelope& envelope, const FieldValue& value) {
  const auto identified = identify({Strategy::payload_field, {}, path}, "site", envelope);
  std::string_view key = std::get<Identity>(identified).key;
  CHECK(std::count(key.begin(), key.end(), ':') == 3);
  std::array<std::string_view, 4> part;
  for (auto& one : part) {
    one = key.substr(0, key.find(':'));
    key.remove_prefix(std::min(key.size(), one.size() + 1));
  }
  constexpr std::array<std::string_view, 3> kTypes{"string", "number", "boolean"};
  CHECK(part[0] == "field" && unescaped(part[1]) == path.text);
  CHECK(part[2] == kTypes.at(static_cast<std::size_t>(value.type)) && unescaped(part[3]) == value.text);
}

// JSON in an object is found through it.
void check_around(const FieldPath& path, ByteView payload, const Found& found) {
  const auto deeper = parse_field_path("k." + path.text);
  if (!deeper.ok()) return;
  const std::string inside = "{\"x\":[{\"k\":0}],\"k\": " + std::string(as_text(payload)) + "\n}";
  const Found again = find_field(*deeper, as_bytes(inside));
  // It may have been nested as deep as can be.
  CHECK(again == found || again == Found(Reason::not_json));
}

bool may_be_of_the_envelope(const FieldPath& path) {
  return path.keys.front() == "payload" || path.keys.front() == "_nats_sinks";
}

}  // namespace
}  // namespace holdfast

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const ByteView bytes(data, size);
  const std::string_view text = as_text(bytes);
  const std::size_t line = std::min(text.find('\n'), size);
  const auto path = parse_field_path(text.substr(0, line));
  if (!path.ok()) return 0;
  CHECK(path->text == text.substr(0, line) && !path->keys.empty() && path->keys.size() <= kMaxFieldKeys);
  Envelope envelope;
  if (line < size) envelope.payload.assign(data + line + 1, data + size);
  const Found found = find_field(*path, envelope.payload);
  CHECK(found == find_field(*path, envelope.payload));
  if (const auto* value = std::get_if<FieldValue>(&found)) {
    check_value(*value);
    check_key(*path, envelope, *value);
  }
  if (found != Found(Reason::not_json) && !may_be_of_the_envelope(*path)) check_around(*path, envelope.payload, found);
  return 0;
}
