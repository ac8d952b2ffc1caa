#include "spool/unwritten.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::size_t kMaxRejections = 4096;  // that wait for housekeeping; and for another target's word
// How long a settlement may wait for a commit to ride on.
constexpr Nanoseconds kDoneDelay = std::chrono::milliseconds(200);

}  // namespace

void Unwritten::add_done(const TargetSettlement& settlement, Nanoseconds now) {
  if (done_.empty()) done_since_ = now;
  done_.push_back(settlement);
}

bool Unwritten::done_is_due(Nanoseconds now) const {
  return !done_.empty() && now - done_since_ >= kDoneDelay;
}

void Unwritten::add_filed(const TargetSettlement& settlement) {
  hidden_.insert({settlement.sequence, settlement.target});
  filed_.push_back(settlement);
}

bool Unwritten::is_filed(const TargetSettlement& settlement) const {
  return std::ranges::find(filed_, settlement) != filed_.end();
}

std::vector<TargetSettlement> Unwritten::take_filed(std::size_t limit) {
  const auto end = filed_.begin() + static_cast<std::ptrdiff_t>(std::min(filed_.size(), limit));
  std::vector<TargetSettlement> taken(filed_.begin(), end);
  filed_.erase(filed_.begin(), end);
  return taken;
}

void Unwritten::put_back_filed(const std::vector<TargetSettlement>& settlements) {
  filed_.insert(filed_.begin(), settlements.begin(), settlements.end());
}

void Unwritten::filed_is_written(const std::vector<TargetSettlement>& settlements) {
  for (const TargetSettlement& settlement : settlements) hidden_.erase({settlement.sequence, settlement.target});
}

void Unwritten::show(Sequence sequence) {
  auto entry = hidden_.lower_bound({sequence, TargetNumber{}});
  while (entry != hidden_.end() && entry->first == sequence) entry = hidden_.erase(entry);
}

bool Unwritten::reject(Rejection rejection) {
  const bool too_many = rejections_.size() >= kMaxRejections;
  forgotten_ = forgotten_ || too_many;
  if (!too_many) rejections_.push_back(std::move(rejection));
  return !too_many;
}

void Unwritten::reject(Rejection rejection, TargetNumber hidden_from) {
  const Sequence sequence = rejection.sequence;
  if (reject(std::move(rejection))) hidden_.insert({sequence, hidden_from});
}

bool Unwritten::is_rejected(Sequence sequence) const {
  return std::ranges::find(rejections_, sequence, &Rejection::sequence) != rejections_.end();
}

std::optional<Rejection> Unwritten::take_rejection() {
  if (rejections_.empty()) return {};
  std::optional<Rejection> first = std::move(rejections_.front());
  rejections_.pop_front();
  return first;
}

void Unwritten::remember(const Rejection& rejection) {
  if (remembered_.size() < kMaxRejections) {
    remembered_.insert_or_assign({rejection.sequence, rejection.target}, rejection);
    return;
  }
  hidden_.erase({rejection.sequence, rejection.target});
  forgotten_ = true;
}

const Rejection* Unwritten::remembered(Sequence sequence, TargetNumber target) const {
  const auto known = remembered_.find({sequence, target});
  return known == remembered_.end() ? nullptr : &known->second;
}

void Unwritten::forget(Sequence sequence) {
  auto known = remembered_.lower_bound({sequence, TargetNumber{}});
  while (known != remembered_.end() && known->first.first == sequence) {
    hidden_.erase(known->first);
    known = remembered_.erase(known);
  }
  ask_for_forgotten();
}

void Unwritten::ask_for_forgotten() {
  if (!forgotten_ || remembered_.size() > kMaxRejections / 2 || rejections_.size() > kMaxRejections / 2) return;
  forgotten_ = false;
  custody_.send_all_back();
}

}  // namespace holdfast
