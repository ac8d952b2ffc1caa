#include "appliance/pull_credit.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr auto kLate = std::chrono::seconds(2);  // for the end of a request to arrive

}  // namespace

bool ends_served_request(int status, std::string_view why) {
  constexpr int kNoMessages = 404, kTimeout = 408, kConflict = 409;
  if (status == kNoMessages || status == kTimeout) return true;
  // Either ends a request with max_bytes: the first before the batch was full, the second (since 2.10, nats-server
  // #3822) also when it was.
  return status == kConflict && (why.find("Exceeds MaxBytes") != why.npos || why.find("Batch Completed") != why.npos);
}

std::uint64_t PullCredit::ask(std::uint64_t batch, Nanoseconds expires, Moment now) {
  if (requests_.empty()) heard_at_ = now;
  open_ += batch;
  requests_[++last_] = now + expires + kLate;
  return last_;
}

void PullCredit::came() {
  if (open_ > 0) --open_;
  if (open_ == 0) requests_.clear();
}

bool PullCredit::ended(std::uint64_t number, std::uint64_t left) {
  if (requests_.erase(number) == 0) return false;
  open_ -= std::min(open_, left);
  if (requests_.empty()) open_ = 0;
  return true;
}

void PullCredit::expire(Moment now) {
  std::erase_if(requests_, [&](const auto& request) { return request.second < now; });
  if (requests_.empty()) open_ = 0;
}

void PullCredit::forget() {
  requests_.clear();
  open_ = 0;
}

}  // namespace holdfast
