// The one file of this room that knows Boost.JSON.
#include "spool/payload_field.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <optional>
#include <utility>

#include "crypto/digest.h"
#include "crypto/text.h"
#include "spool/check.h"
#include "spool/plain_decimal.h"

namespace holdfast {
namespace {

namespace json = boost::json;
using Found = std::variant<FieldValue, Reason>;
using Failure = boost::system::error_code;

// Follows the path while the parser walks over the whole text. The objects that are open from the outermost one in and
// lie on the path are `on_path_`; while no other one is open inside them, keys are compared with the path's next.
class PathHandler {
 public:
  explicit PathHandler(const FieldPath& path) : keys_(path.keys) {}

  Found result() && { return repeated_ ? Found(Reason::field_repeated) : std::move(found_); }

  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;

  bool on_document_begin(Failure&) { return true; }
  bool on_document_end(Failure&) { return true; }

  bool on_object_begin(Failure&) {
    if (at_field()) {
      found_ = Reason::field_object;
    } else if (on_the_way()) {
      seen_.at(on_path_++) = false;
    }
    return open();
  }
  bool on_object_end(std::size_t, Failure&) {
    if (open_ == on_path_) --on_path_;
    --open_;
    return true;
  }
  bool on_array_begin(Failure&) {
    if (at_field()) found_ = Reason::field_array;
    return open();
  }
  bool on_array_end(std::size_t, Failure&) {
    --open_;
    return true;
  }

  // `so_far` is the length up to the end of this part.
  bool on_key_part(json::string_view part, std::size_t so_far, Failure&) {
    if (compares_keys()) compare(part, so_far);
    return true;
  }
  bool on_key(json::string_view part, std::size_t size, Failure&) {
    if (!compares_keys()) return true;
    compare(part, size);
    wanted_ = same_ && size == keys_[on_path_ - 1].size();
    if (wanted_ && std::exchange(seen_.at(on_path_ - 1), true)) repeated_ = true;
    return true;
  }

  bool on_string_part(json::string_view part, std::size_t so_far, Failure&) {
    if (at_field()) collect(part, so_far);
    return true;
  }
  bool on_string(json::string_view part, std::size_t size, Failure&) {
    if (!at_field()) return pass();
    collect(part, size);
    if (size > kMaxFieldText) return end_field(Reason::field_too_long);
    if (size == 0) return end_field(Reason::field_empty);
    return end_field(FieldValue{FieldType::string, std::move(text_)});
  }

  // The text is given whole to one write, so a number comes in parts only where it breaks off.
  bool on_number_part(json::string_view, Failure&) { return true; }
  bool on_int64(std::int64_t, json::string_view text, Failure&) { return on_number(text); }
  bool on_uint64(std::uint64_t, json::string_view text, Failure&) { return on_number(text); }
  bool on_double(double, json::string_view text, Failure&) { return on_number(text); }

  bool on_bool(bool value, Failure&) {
    return at_field() ? end_field(FieldValue{FieldType::boolean, value ? "true" : "false"}) : pass();
  }
  bool on_null(Failure&) { return at_field() ? end_field(Reason::field_null) : pass(); }

  bool on_comment_part(json::string_view, Failure&) { return true; }
  bool on_comment(json::string_view, Failure&) { return true; }

 private:
  bool compares_keys() const { return open_ == on_path_; }
  // The next value is what the path leads to so far: as a whole, or one more step.
  bool on_the_way() const { return open_ == on_path_ && (open_ == 0 || wanted_); }
  bool at_field() const { return on_the_way() && on_path_ == keys_.size(); }

  bool open() {
    ++open_;
    return pass();
  }
  bool pass() {
    wanted_ = false;
    return true;
  }
  bool end_field(Found found) {
    found_ = std::move(found);
    return pass();
  }

  void compare(json::string_view part, std::size_t so_far) {
    const std::string_view wanted = keys_[on_path_ - 1];
    const std::size_t from = so_far - part.size();
    same_ = (from == 0 || same_) && so_far <= wanted.size() &&
            wanted.substr(from, part.size()) == std::string_view(part.data(), part.size());
  }

  void collect(json::string_view part, std::size_t so_far) {
    if (so_far == part.size()) text_.clear();
    if (so_far <= kMaxFieldText) text_.append(part.data(), part.size());
  }

  bool on_number(json::string_view text) {
    if (!at_field()) return pass();
    auto plain = plain_decimal({text.data(), text.size()});
    if (!plain) return end_field(Reason::field_absurd_number);
    return end_field(FieldValue{FieldType::number, std::move(*plain)});
  }

  const std::vector<std::string>& keys_;
  std::size_t open_ = 0;
  std::size_t on_path_ = 0;
  std::array<bool, kMaxFieldKeys> seen_{};  // of each object on the path: its key that the path wants
  bool same_ = false;                       // the key that is being read, so far
  bool wanted_ = false;                     // the next value is that of the path's next key
  bool repeated_ = false;
  std::string text_;
  Found found_ = Reason::field_missing;
};

// `failed` also where it ended before the text did.
Found read_json(const FieldPath& path, std::string_view text, Failure& failed) {
  json::parse_options strict;
  strict.max_depth = kMaxJsonDepth;
  json::basic_parser<PathHandler> parser(strict, path);
  const std::size_t read = parser.write_some(false, text.data(), text.size(), failed);
  if (!failed && read < text.size()) failed = json::error::extra_data;
  return std::move(parser.handler()).result();
}

// Where the digits that begin at `from` end. More than nine significant ones become 999,999,999 in as many characters.
std::size_t bound_exponent(std::string& text, std::size_t from) {
  constexpr std::size_t kDigits = 9;
  const std::size_t end = std::min(text.find_first_not_of("0123456789", from), text.size());
  const std::size_t significant = std::min(text.find_first_not_of('0', from), end);
  if (end - significant <= kDigits) return end;
  const auto at = [&](std::size_t place) { return text.begin() + static_cast<std::ptrdiff_t>(place); };
  std::fill(at(from), at(end - kDigits), '0');
  std::fill(at(end - kDigits), at(end), '9');
  return end;
}

// A copy in which no exponent is too large for the library, which gives up on what does not fit an int although it is a
// number all the same. No payload has the digits to make up for such an exponent, so what is absurd stays absurd. Where
// the text is no JSON, what is a string may be mistaken only behind the place where it ceases to be.
std::string with_bounded_exponents(std::string_view text) {
  std::string bounded(text);
  bool in_string = false;
  for (std::size_t at = 0; at < bounded.size(); ++at) {
    const char c = bounded[at];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (c == '\\') ++at;
    } else if (c == 'e' || c == 'E') {
      const bool sign = at + 1 < bounded.size() && (bounded[at + 1] == '-' || bounded[at + 1] == '+');
      at = bound_exponent(bounded, at + (sign ? 2 : 1)) - 1;
    }
  }
  return bounded;
}

std::optional<Found> find_in_json(const FieldPath& path, std::string_view text) {
  Failure failed;
  Found found = read_json(path, text, failed);
  if (failed == json::error::exponent_overflow) {
    failed = {};
    found = read_json(path, with_bounded_exponents(text), failed);
  }
  if (failed) return std::nullopt;
  return found;
}

Found find_whole(ByteView payload, bool is_text) {
  if (payload.empty()) return Reason::field_empty;
  const std::size_t size = is_text ? payload.size() : (payload.size() + 2) / 3 * 4;
  if (size > kMaxFieldText) return Reason::field_too_long;
  return FieldValue{FieldType::string, is_text ? std::string(as_text(payload)) : to_base64(payload)};
}

// The names of the envelope are nats-sinks', version 1 of it.
Found find_in_envelope(const std::string& path, ByteView payload) {
  const auto string = [](std::string text) { return FieldValue{FieldType::string, std::move(text)}; };
  const auto number = [](std::size_t count) { return FieldValue{FieldType::number, std::to_string(count)}; };
  const auto is_text = [&] { return is_utf8(as_text(payload)); };
  if (path == "payload") return find_whole(payload, is_text());
  if (path == "_nats_sinks.payload_format") return string(is_text() ? "text" : "bytes");
  if (path == "_nats_sinks.payload_encoding") return string(is_text() ? "utf-8" : "base64");
  if (path == "_nats_sinks.sha256") return string(to_hex(sha256(payload)));
  if (path == "_nats_sinks.size_bytes") return number(payload.size());
  if (path == "_nats_sinks.payload_envelope_version") return number(1);
  return Reason::not_json;
}

}  // namespace

std::variant<FieldValue, Reason> find_field(const FieldPath& path, ByteView payload) noexcept {
  CHECK(!path.keys.empty() && path.keys.size() <= kMaxFieldKeys);
  if (auto found = find_in_json(path, as_text(payload))) return std::move(*found);
  return find_in_envelope(path.text, payload);
}

}  // namespace holdfast
