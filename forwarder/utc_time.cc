#include "forwarder/utc_time.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {
namespace {

// Days since 1970 of a date of the Gregorian calendar (counting from the first of March, so that leap days come last).
std::int64_t days_since_1970(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

struct Date {
  std::int64_t year, month, day;
};

Date date_of(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t day_of_era = days - era * 146097;
  const std::int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  const std::int64_t month = shifted + (shifted < 10 ? 3 : -9);
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day_of_year - (153 * shifted + 2) / 5 + 1};
}

// Reads fields of fixed places.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : rest_(text) {}
  std::int64_t digits(std::size_t count) {
    std::int64_t value = 0;
    const std::string_view field = rest_.substr(0, count);
    if (field.size() != count || field.find_first_not_of("0123456789") != std::string_view::npos) good_ = false;
    for (std::size_t i = 0; good_ && i < field.size(); ++i) value = value * 10 + (field[i] - '0');
    rest_.remove_prefix(field.size());
    return value;
  }
  std::int64_t between(std::size_t count, std::int64_t least, std::int64_t most) {
    const std::int64_t value = digits(count);
    good_ = good_ && value >= least && value <= most;
    return value;
  }
  bool is_next(char c) const { return !rest_.empty() && rest_.front() == c; }
  void skip(char c) {
    good_ = good_ && is_next(c);
    rest_.remove_prefix(rest_.empty() ? 0 : 1);
  }
  // Up to nine digits after the point.
  std::int64_t fraction() {
    const std::size_t count = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    if (count == 0 || count > 9) good_ = false;
    std::int64_t value = digits(count);
    for (std::size_t i = count; i < 9; ++i) value *= 10;
    return value;
  }
  bool done() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::int64_t days_in_month(std::int64_t year, std::int64_t month) {
  const std::int64_t next_year = month == 12 ? year + 1 : year;
  const std::int64_t next_month = month == 12 ? 1 : month + 1;
  return days_since_1970(next_year, next_month, 1) - days_since_1970(year, month, 1);
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  TimeReader in(text);
  const std::int64_t year = in.between(4, 1678, 2261);
  in.skip('-');
  const std::int64_t month = in.between(2, 1, 12);
  in.skip('-');
  const std::int64_t day = in.between(2, 1, 31);
  in.skip('T');
  const std::int64_t hour = in.between(2, 0, 23);
  in.skip(':');
  const std::int64_t minute = in.between(2, 0, 59);
  in.skip(':');
  const std::int64_t second = in.between(2, 0, 59);
  std::int64_t ns = 0;
  if (in.is_next('.')) {
    in.skip('.');
    ns = in.fraction();
  }
  std::int64_t offset_minutes = 0;
  if (in.is_next('+') || in.is_next('-')) {
    const bool east = in.is_next('+');
    in.skip(east ? '+' : '-');
    offset_minutes = in.between(2, 0, 23) * 60;
    in.skip(':');
    offset_minutes += in.between(2, 0, 59);
    if (!east) offset_minutes = -offset_minutes;
  } else {
    in.skip('Z');
  }
  if (!in.done() || day > days_in_month(year, month)) return std::nullopt;
  const std::int64_t minutes = (days_since_1970(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
  return (minutes * 60 + second) * 1'000'000'000 + ns;
}

std::string format_time(std::int64_t ns_since_1970) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kDay = 86'400;
  const std::int64_t ns = ((ns_since_1970 % kSecond) + kSecond) % kSecond;
  const std::int64_t seconds = ns_since_1970 / kSecond - (ns_since_1970 % kSecond < 0 ? 1 : 0);
  const std::int64_t of_day = ((seconds % kDay) + kDay) % kDay;
  const Date date = date_of((seconds - of_day) / kDay);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", date.year, date.month, date.day, of_day / 3600,
                     of_day / 60 % 60, of_day % 60, ns);
}

}  // namespace holdfast
