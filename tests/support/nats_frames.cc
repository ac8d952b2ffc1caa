#include "tests/support/nats_frames.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "spool/check.h"

namespace holdfast {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kAckSubject = "$JS.ACK.";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(" \t"); begin < line.size();
       begin = line.find_first_not_of(" \t", begin)) {
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::size_t number(std::string_view word) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  CHECK(error == std::errc{} && end == word.data() + word.size());
  return value;
}

// PUB subject [reply] size; HPUB subject [reply] header-size size; MSG and HMSG have a subscription behind the subject.
struct Shape {
  bool carries = false;  // a payload
  bool headers = false;
  bool subscription = false;
};

Shape shape_of(std::string_view verb) {
  return {verb == "PUB" || verb == "HPUB" || verb == "MSG" || verb == "HMSG", verb == "HPUB" || verb == "HMSG",
          verb == "MSG" || verb == "HMSG"};
}

}  // namespace

bool NatsFrame::is_delivery() const {
  return (verb == "MSG" || verb == "HMSG") && reply.starts_with(kAckSubject);
}

bool NatsFrame::is_ack() const {
  return (verb == "PUB" || verb == "HPUB") && subject.starts_with(kAckSubject) && payload.starts_with("+ACK");
}

std::optional<NatsFrame> NatsFrames::first() const {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  const std::size_t line_end = rest.find(kLineEnd);
  if (line_end == std::string_view::npos) return std::nullopt;
  NatsFrame frame;
  frame.bytes = rest.substr(0, line_end + kLineEnd.size());
  const std::string_view line = rest.substr(0, line_end);
  frame.verb = line.substr(0, line.find_first_of(" \t"));
  const Shape shape = shape_of(frame.verb);
  if (!shape.carries) return frame;

  const auto words = words_of(line);
  const std::size_t before = shape.subscription ? 3 : 2;  // words that come before the reply
  const std::size_t sizes = shape.headers ? 2 : 1;
  CHECK(words.size() == before + sizes || words.size() == before + 1 + sizes);
  frame.subject = words[1];
  if (words.size() > before + sizes) frame.reply = words[before];
  const std::size_t size = number(words.back());
  const std::size_t whole = frame.bytes.size() + size + kLineEnd.size();
  if (rest.size() < whole) return std::nullopt;
  const std::size_t header = shape.headers ? number(words[words.size() - 2]) : 0;
  CHECK(header <= size);
  frame.payload = rest.substr(frame.bytes.size() + header, size - header);
  frame.bytes = rest.substr(0, whole);
  return frame;
}

void NatsFrames::drop_first() {
  constexpr std::size_t kWorthMoving = 1u << 16;
  const auto frame = first();
  CHECK(frame.has_value());
  begin_ += frame->bytes.size();
  if (begin_ < bytes_.size() && begin_ < kWorthMoving) return;
  bytes_.erase(0, begin_);
  begin_ = 0;
}

}  // namespace holdfast
