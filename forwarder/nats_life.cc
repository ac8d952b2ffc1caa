#include "forwarder/nats_life.h"

namespace holdfast {
namespace {

struct Lives {
  std::mutex mutex;
  std::uintptr_t last = 0;
  std::map<std::uintptr_t, std::weak_ptr<NatsLife>> known;
};
Lives& lives() {
  static Lives* const the = new Lives;  // never destroyed: the library's threads may outlive main
  return *the;
}

}  // namespace

void NatsLife::lost() {
  const bool first = alive_.exchange(false);
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  if (!first || !events_.lost) return;
  gate_.pass([&] { events_.lost(); });
}

void NatsLife::refused(std::string subject) {
  if (!events_.publish_refused) return;
  gate_.pass([&] { events_.publish_refused(std::move(subject)); });
}

void NatsLife::end() {
  alive_ = false;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void NatsLife::expect(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  expected_[number] = std::nullopt;
}

void NatsLife::answer(std::uint64_t number, NatsReply reply) {
  const std::lock_guard lock(mutex_);
  const auto at = expected_.find(number);
  if (at == expected_.end() || at->second) return;
  at->second = std::move(reply);
  changed_.notify_all();
}

std::optional<NatsReply> NatsLife::await(std::uint64_t number, Moment deadline) {
  std::unique_lock lock(mutex_);
  const auto at = expected_.find(number);
  if (at == expected_.end()) return std::nullopt;
  changed_.wait_until(lock, deadline, [&] { return at->second.has_value() || !alive_; });
  std::optional<NatsReply> reply = std::move(at->second);
  expected_.erase(at);
  return reply;
}

std::uintptr_t add_life(std::weak_ptr<NatsLife> life) {
  const std::lock_guard lock(lives().mutex);
  lives().known[++lives().last] = std::move(life);
  return lives().last;
}

std::shared_ptr<NatsLife> find_life(std::uintptr_t number) {
  const std::lock_guard lock(lives().mutex);
  const auto at = lives().known.find(number);
  return at == lives().known.end() ? nullptr : at->second.lock();
}

void remove_life(std::uintptr_t number) {
  const std::lock_guard lock(lives().mutex);
  lives().known.erase(number);
}

}  // namespace holdfast
