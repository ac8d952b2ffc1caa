#include "forwarder/guarded_connect.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "forwarder/bounded_call.h"
#include "forwarder/own_socket.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(2);       // for a call to return once its socket is shut down
constexpr auto kLook = std::chrono::milliseconds(20);  // how often a connect in progress is looked at
constexpr std::size_t kMostCandidates = 32;            // addresses tried in one connect

class Turn {
 public:
  static std::optional<Turn> take(const std::string& url, Moment deadline, std::stop_token stop) {
    std::unique_lock lock(queue().mutex);
    const auto free = [&] { return queue().taken.count(url) == 0; };
    if (!queue().changed.wait_until(lock, std::move(stop), deadline, free)) return std::nullopt;
    queue().taken.insert(url);
    return Turn(url);
  }
  Turn(Turn&& other) noexcept : url_(std::exchange(other.url_, {})) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (url_.empty()) return;
    const std::lock_guard lock(queue().mutex);
    queue().taken.erase(url_);
    queue().changed.notify_all();
  }

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::set<std::string> taken;
  };
  static Queue& queue() {
    static Queue* const the = new Queue;  // never destroyed: threads may outlive main
    return *the;
  }
  explicit Turn(std::string url) : url_(std::move(url)) {}
  std::string url_;
};

// Owns what the thread touches.
class Walk {
 public:
  Walk(std::vector<NatsEndpoint> endpoints, Moment deadline, ConnectAttempt attempt)
      : endpoints_(std::move(endpoints)), deadline_(deadline), attempt_(std::move(attempt)) {}

  void run() {
    std::vector<Candidate> candidates;
    for (const NatsEndpoint& endpoint : endpoints_) resolve(endpoint, kMostCandidates, candidates);
    resolved_ = !candidates.empty();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto share = begin(candidates[i].address, candidates.size() - i);
      if (!share || attempt_(candidates[i], *share)) break;
      const std::lock_guard lock(mutex_);
      peer_.reset();
    }
  }

  // Ends what is late. Called again and again until run() has returned.
  void look(bool give_up) {
    const std::lock_guard lock(mutex_);
    given_up_ = given_up_ || give_up;
    if (peer_ && (given_up_ || steady_clock::now() >= peer_deadline_)) hold_socket_to(*peer_).shut_down();
  }

  bool resolved() const { return resolved_; }  // after run() has returned

 private:
  std::optional<Nanoseconds> begin(const PeerAddress& peer, std::size_t left) {
    const std::lock_guard lock(mutex_);
    const Moment now = steady_clock::now();
    if (given_up_ || now >= deadline_) return std::nullopt;
    const Nanoseconds share = (deadline_ - now) / static_cast<std::int64_t>(left);
    peer_ = peer;
    peer_deadline_ = now + share;
    return share;
  }

  const std::vector<NatsEndpoint> endpoints_;
  const Moment deadline_;
  const ConnectAttempt attempt_;
  bool resolved_ = false;

  std::mutex mutex_;  // of what look() needs
  bool given_up_ = false;
  std::optional<PeerAddress> peer_;
  Moment peer_deadline_;
};

// True: run() has returned. False: it is left behind.
bool see_through(BoundedCall& call, Walk& walk, Moment deadline, const std::stop_token& stop) {
  std::optional<Moment> late_since;
  while (!call.wait_until(steady_clock::now() + kLook)) {
    const Moment now = steady_clock::now();
    if (!late_since && (now >= deadline || stop.stop_requested())) late_since = now;
    walk.look(late_since.has_value());
    if (late_since && now >= *late_since + kGrace) return false;
  }
  return true;
}

}  // namespace

ConnectEnd connect_guarded(const std::string& url, std::vector<NatsEndpoint> endpoints, Nanoseconds limit,
                           const std::stop_token& stop, ConnectAttempt attempt) {
  const Moment deadline = steady_clock::now() + limit;
  const auto turn = Turn::take(url, deadline, stop);
  if (!turn) return ConnectEnd::busy;
  const auto walk = std::make_shared<Walk>(std::move(endpoints), deadline, std::move(attempt));
  auto call = BoundedCall::start([walk] { walk->run(); });
  if (!call || !see_through(*call, *walk, deadline, stop)) return ConnectEnd::left_behind;
  return walk->resolved() ? ConnectEnd::returned : ConnectEnd::unresolved;
}

}  // namespace holdfast
