#include "forwarder/retry_after.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "crypto/text.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMost = 24 * 60 * 60;  // a longer one is a mistake, and an operator may want to wait for it

// Words between spaces, commas and dashes.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty() && words.size() < 8) {
    const std::size_t begin = text.find_first_not_of(" ,-");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" ,-"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::optional<unsigned> month_of(std::string_view word) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto found = std::ranges::find(kMonths, word);
  if (found == kMonths.end()) return std::nullopt;
  return static_cast<unsigned>(found - kMonths.begin()) + 1;
}

// Two digits are of this century, or of the last one from 70 on.
std::optional<int> year_of(std::string_view word) {
  const auto number = parse_decimal<int>(word);
  if (!number || *number < 0 || (word.size() != 2 && word.size() != 4)) return std::nullopt;
  if (word.size() == 4) return number;
  return *number + (*number >= 70 ? 1900 : 2000);
}

std::optional<std::int64_t> seconds_of_day(std::string_view word) {
  if (word.size() != 8 || word[2] != ':' || word[5] != ':') return std::nullopt;
  const auto hours = parse_decimal<unsigned>(word.substr(0, 2));
  const auto minutes = parse_decimal<unsigned>(word.substr(3, 2));
  const auto seconds = parse_decimal<unsigned>(word.substr(6, 2));
  if (!hours || !minutes || !seconds || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  return *hours * 3600 + *minutes * 60 + *seconds;
}

}  // namespace

// Sun, 06 Nov 1994 08:49:37 GMT; Sunday, 06-Nov-94 08:49:37 GMT; Sun Nov  6 08:49:37 1994.
std::optional<std::int64_t> parse_http_date(std::string_view text) {
  std::vector<std::string_view> words = words_of(text);
  if (words.size() == 5) {
    words = {words[0], words[2], words[1], words[4], words[3], "GMT"};
  }
  if (words.size() != 6 || words[5] != "GMT") return std::nullopt;
  const auto day = parse_decimal<unsigned>(words[1]);
  const auto month = month_of(words[2]);
  const auto year = year_of(words[3]);
  const auto seconds = seconds_of_day(words[4]);
  if (!day || !month || !year || !seconds) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok()) return std::nullopt;
  return std::int64_t{std::chrono::sys_days(date).time_since_epoch().count()} * 86400 + *seconds;
}

std::optional<Nanoseconds> retry_after(const HttpResponse& response) {
  const auto asked = response.header("Retry-After");
  if (!asked || asked->empty()) return std::nullopt;
  const auto seconds = [](std::int64_t count) -> Nanoseconds {
    return std::chrono::seconds(std::clamp<std::int64_t>(count, 0, kMost));
  };
  if (asked->find_first_not_of("0123456789") == std::string_view::npos) {
    return seconds(parse_decimal<std::int64_t>(*asked).value_or(kMost));
  }
  const auto then = parse_http_date(*asked);
  const auto now = parse_http_date(response.header("Date").value_or(""));
  if (!then || !now) return std::nullopt;
  return seconds(*then - *now);
}

}  // namespace holdfast
