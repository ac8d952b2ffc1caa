#include "appliance/rate_meter.h"

namespace holdfast {
namespace {

constexpr Nanoseconds kWindow = std::chrono::seconds(10);
constexpr std::size_t kReadings = 64;

}  // namespace

double RateMeter::note(Nanoseconds now, std::uint64_t count) {
  if (!readings_.empty() && (count < readings_.back().count || now <= readings_.back().at)) readings_.clear();
  readings_.push_back({now, count});
  while (readings_.size() > kReadings || (readings_.size() > 2 && now - readings_[1].at >= kWindow))
    readings_.pop_front();
  const double seconds = std::chrono::duration<double>(now - readings_.front().at).count();
  return seconds <= 0 ? 0 : static_cast<double>(count - readings_.front().count) / seconds;
}

}  // namespace holdfast
