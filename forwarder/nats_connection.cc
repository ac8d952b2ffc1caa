#include "forwarder/nats_connection.h"

#include <fmt/format.h>
#include <nats/nats.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "crypto/text.h"
#include "forwarder/bounded_call.h"
#include "forwarder/call_watch.h"
#include "forwarder/guarded_connect.h"
#include "forwarder/nats_life.h"
#include "forwarder/nats_url.h"
#include "forwarder/nkey_file.h"
#include "forwarder/own_socket.h"

namespace holdfast {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr auto kCloseLimit = seconds(5);       // for the library to close; then it is left to itself
constexpr auto kCallLimit = seconds(8);        // for one publish or subscription in which nothing reaches the peer
constexpr auto kUnacknowledged = seconds(30);  // until the kernel gives a silent peer up
constexpr int kUnansweredPings = 2;
constexpr int kSignAgain = 2;
constexpr std::string_view kCredentialsRefused = "credentials_refused";
constexpr std::string_view kFileUnusable = "file_unusable";

Error unavailable(std::string text) {
  return {ErrorKind::unavailable, std::move(text)};
}

std::int64_t whole_milliseconds(Nanoseconds time) {
  return std::max<std::int64_t>(1, duration_cast<milliseconds>(time).count());
}

// Why a connect failed, in words of ours. The library's own text can hold the server's.
const char* connect_failure(natsStatus status) {
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
      return "the server does not take the credentials";
    case NATS_NO_SERVER:
      return "nothing accepts connections there";
    case NATS_TIMEOUT:
      return "no answer in time";
    case NATS_SECURE_CONNECTION_REQUIRED:
      return "the server wants TLS (tls://)";
    case NATS_SECURE_CONNECTION_WANTED:
      return "the server has no TLS";
    case NATS_SSL_ERROR:
      return "TLS failed (certificate, name or CA)";
    case NATS_PROTOCOL_ERROR:
    case NATS_CONNECTION_CLOSED:
    case NATS_IO_ERROR:
    case NATS_CONNECTION_DISCONNECTED:
      return "the connection was ended before it was ready (with TLS: a client certificate may be missing)";
    default:
      return "it cannot be connected to";
  }
}

Error send_error(natsStatus status) {
  if (status == NATS_MAX_PAYLOAD) return {ErrorKind::invalid, "larger than the server takes"};
  if (status == NATS_INVALID_SUBJECT || status == NATS_INVALID_ARG) {
    return {ErrorKind::invalid, "a subject or header that cannot be sent"};
  }
  return unavailable("the connection is lost");
}

struct Subscriber {
  Gate gate;
  NatsConnection::Callback callback;
  natsSubscription* subscription = nullptr;
};

// Subscribers whom the library may still call. The library says when it will not any more.
struct Callable {
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Subscriber>> subscribers;
};
Callable& callable() {
  static Callable* const the = new Callable;  // never destroyed: the library's threads may outlive main
  return *the;
}

void call_subscriber(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
  auto* subscriber = static_cast<Subscriber*>(closure);
  subscriber->gate.pass([&] { subscriber->callback(NatsMessage(message)); });
  natsMsg_Destroy(message);
}

void forget_subscriber(void* closure) {
  std::shared_ptr<Subscriber> last;  // goes after the lock
  const std::lock_guard lock(callable().mutex);
  const auto at = callable().subscribers.find(closure);
  if (at == callable().subscribers.end()) return;
  last = std::move(at->second);
  callable().subscribers.erase(at);
}

std::shared_ptr<NatsLife> life_of(void* closure) {
  return find_life(reinterpret_cast<std::uintptr_t>(closure));
}

void on_ended(natsConnection*, void* closure) {
  if (const auto life = life_of(closure)) life->lost();
}

// `Permissions Violation for Publish to "some.subject"`: the only way the library tells which.
void on_error(natsConnection* connection, natsSubscription*, natsStatus status, void* closure) {
  constexpr std::string_view kBefore = "for Publish to \"";
  constexpr std::size_t kLongest = 256;  // of the library's text
  if (status != NATS_NOT_PERMITTED) return;
  const auto life = life_of(closure);
  const char* said = nullptr;
  (void)natsConnection_GetLastError(connection, &said);
  if (!life || said == nullptr) return;
  const std::string text(said, ::strnlen(said, kLongest));
  const std::size_t before = text.find(kBefore);
  if (before == std::string::npos) return;
  const std::size_t begin = before + kBefore.size();
  life->refused(text.substr(begin, text.find('"', begin) - begin));
}

// The first setting that was refused, in our words; every call's status is looked at, or a CA that failed to load would
// be ignored.
class Settings {
 public:
  explicit Settings(natsOptions* options) : options_(options) {}
  template <typename Call, typename... Arguments>
  void set(const char* what, Call call, Arguments... arguments) {
    if (refused_ == nullptr && call(options_, arguments...) != NATS_OK) refused_ = what;
  }
  void refuse(const char* what) {
    if (refused_ == nullptr) refused_ = what;
  }
  const char* refused() const { return refused_; }

 private:
  natsOptions* options_;
  const char* refused_ = nullptr;
};

void set_identity(Settings& settings, const NatsOptions& options) {
  if (!options.creds_file.empty()) {
    settings.set("the credentials file cannot be used", natsOptions_SetUserCredentialsFromFiles,
                 options.creds_file.c_str(), nullptr);
  }
  if (options.nkey_file.empty()) return;
  const auto key = public_key_of_seed_file(options.nkey_file);
  if (!key) return settings.refuse("the nkey file holds no seed of a user");
  settings.set("the nkey file cannot be used", natsOptions_SetNKeyFromSeed, key->c_str(), options.nkey_file.c_str());
}

void set_tls(Settings& settings, const NatsOptions& options, const NatsEndpoint& endpoint) {
  if (!endpoint.tls) return;
  settings.set("TLS cannot be turned on", natsOptions_SetSecure, true);
  settings.set("TLS cannot be turned on", natsOptions_SetExpectedHostname, endpoint.host.c_str());
  if (!options.tls_ca.empty()) {
    settings.set("the file of tls_ca cannot be used", natsOptions_LoadCATrustedCertificates, options.tls_ca.c_str());
  }
  if (!options.tls_cert.empty()) {
    settings.set("the files of tls_cert and tls_key cannot be used", natsOptions_LoadCertificatesChain,
                 options.tls_cert.c_str(), options.tls_key.c_str());
  }
}

// Nothing of the library's own reconnecting: a fresh connection is bounded by us, a mended one is not. No write
// deadline: after one the library forgets the rest of what it was sending and goes on in the middle of it (CallWatch
// ends the connection instead).
const char* configure(natsOptions* raw, const NatsOptions& options, const Candidate& to, Nanoseconds limit,
                      void* life) {
  constexpr const char* kRefused = "the client library refuses its settings";
  const std::string& login = to.endpoint.login;
  const std::string url = fmt::format("nats://{}{}{}:{}", login, login.empty() ? "" : "@", to.literal, to.port);
  Settings settings(raw);
  settings.set(kRefused, natsOptions_SetURL, url.c_str());
  settings.set(kRefused, natsOptions_SetName, options.client_name.c_str());
  settings.set(kRefused, natsOptions_SetTimeout, whole_milliseconds(limit));
  settings.set(kRefused, natsOptions_SetPingInterval, whole_milliseconds(options.ping_interval));
  settings.set(kRefused, natsOptions_SetMaxPingsOut, kUnansweredPings);
  settings.set(kRefused, natsOptions_SetAllowReconnect, false);
  settings.set(kRefused, natsOptions_SetMaxReconnect, 0);
  settings.set(kRefused, natsOptions_SetReconnectBufSize, 0);
  settings.set(kRefused, natsOptions_SetRetryOnFailedConnect, false, nullptr, nullptr);
  settings.set(kRefused, natsOptions_SetIgnoreDiscoveredServers, true);
  settings.set(kRefused, natsOptions_SetDisconnectedCB, on_ended, life);
  settings.set(kRefused, natsOptions_SetClosedCB, on_ended, life);
  settings.set(kRefused, natsOptions_SetErrorHandler, on_error, life);
  set_tls(settings, options, to.endpoint);
  set_identity(settings, options);
  return settings.refused();
}

struct Library {
  explicit Library(natsConnection* the) : connection(the) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { natsConnection_Destroy(connection); }
  natsConnection* const connection;
};

// What one connect leaves: a connection, or why there is none.
struct Attempt {
  NatsOptions options;
  std::uintptr_t life = 0;
  std::shared_ptr<Library> client;
  HeldSocket socket;
  std::string failure = "no time was left";
  bool refused = false;

  bool run(const Candidate& to, Nanoseconds share) {
    const Moment deadline = steady_clock::now() + share;
    const char* why = connect(to, share);
    // Of some hundred greetings the library leaves one unsigned (seen with 3.4.1); the next has another nonce.
    const bool signs = !options.nkey_file.empty() || !options.creds_file.empty();
    for (int again = 0; why != nullptr && refused && signs && again < kSignAgain; ++again) {
      const Nanoseconds left = deadline - steady_clock::now();
      if (left <= Nanoseconds(0)) break;
      why = connect(to, left);
    }
    nats_ReleaseThreadMemory();
    if (why != nullptr) failure = fmt::format("cannot connect to {}: {}", place_of(to.endpoint), why);
    return why == nullptr;
  }

 private:
  const char* connect(const Candidate& to, Nanoseconds share) {
    natsOptions* raw = nullptr;
    if (natsOptions_Create(&raw) != NATS_OK) return "no memory";
    const std::unique_ptr<natsOptions, decltype(&natsOptions_Destroy)> owner(raw, &natsOptions_Destroy);
    if (const char* why = configure(raw, options, to, share, reinterpret_cast<void*>(life))) return why;
    natsConnection* connection = nullptr;
    const natsStatus status = natsConnection_Connect(&connection, raw);
    refused = status == NATS_CONNECTION_AUTH_FAILED;
    if (status != NATS_OK) return connect_failure(status);
    auto made = std::make_shared<Library>(connection);
    socket = hold_socket_to(to.address);
    if (!socket) return connect_failure(NATS_CONNECTION_CLOSED);
    client = std::move(made);
    return nullptr;
  }
};

// The library says of a file that it cannot use no more than that there is no connection.
std::optional<std::string> unusable_file(const NatsOptions& options) {
  const std::pair<const char*, const std::string&> files[] = {{"creds_file", options.creds_file},
                                                              {"nkey_file", options.nkey_file},
                                                              {"tls_ca", options.tls_ca},
                                                              {"tls_cert", options.tls_cert},
                                                              {"tls_key", options.tls_key}};
  for (const auto& [key, file] : files) {
    if (file.empty()) continue;
    if (::access(file.c_str(), R_OK) != 0)
      return fmt::format("{} ({}) cannot be read: {}", file, key, std::strerror(errno));
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return fmt::format("{} ({}) is not a file", file, key);
  }
  if (!options.creds_file.empty() && !holds_credentials(options.creds_file))
    return options.creds_file + " holds no user's credentials";
  if (!options.nkey_file.empty() && !public_key_of_seed_file(options.nkey_file))
    return options.nkey_file + " holds no seed of a user";
  return std::nullopt;
}

Error connect_error(ConnectEnd end, const Attempt& attempt, const NatsEndpoint& first) {
  const auto cannot = [&](const char* why) {
    return unavailable(fmt::format("cannot connect to {}: {}", place_of(first), why));
  };
  if (end == ConnectEnd::unresolved) return cannot("its name is not known");
  if (end == ConnectEnd::busy) return cannot("another connection to it is being made");
  if (end == ConnectEnd::left_behind) return cannot("it hangs, and was left behind");
  return unavailable(attempt.refused ? fmt::format("{}: {}", kCredentialsRefused, attempt.failure) : attempt.failure);
}

}  // namespace

struct NatsConnection::Parts {
  Parts(std::shared_ptr<NatsLife> its_life, Attempt& made)
      : life(std::move(its_life)), number(made.life), client(std::move(made.client)), socket(std::move(made.socket)) {
    socket.give_up_after(kUnacknowledged);
    natsInbox* name = nullptr;
    CHECK(natsInbox_Create(&name) == NATS_OK);
    inbox = name;
    natsInbox_Destroy(name);
  }

  const std::shared_ptr<NatsLife> life;
  const std::uintptr_t number;
  std::shared_ptr<Library> client;
  const HeldSocket socket;
  std::string inbox;

  std::mutex mutex;
  std::vector<std::shared_ptr<Subscriber>> subscribers;
  std::uint64_t last_number = 0;  // of inboxes and requests
  std::string replies;            // the inbox for replies, once there is one

  void abort() {
    life->end();
    socket.shut_down();
  }
  CallWatch watch{kCallLimit, [this] { return socket.bytes_acknowledged(); }, [this] { abort(); }};
  Result<void> sent(natsStatus status) {
    if (status == NATS_OK) return {};
    Error error = send_error(status);
    if (error.kind == ErrorKind::unavailable) abort();  // it may have sent a part
    return error;
  }
};

NatsConnection::NatsConnection(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<NatsConnection>> NatsConnection::connect(const NatsOptions& options, NatsEvents events,
                                                                std::stop_token stop) {
  auto endpoints = parse_nats_url(options.url);
  if (!endpoints) return Error{ErrorKind::invalid, "the url is not nats://host:port or tls://host:port"};
  if (const auto why = unusable_file(options)) return unavailable(fmt::format("{}: {}", kFileUnusable, *why));
  const auto life = std::make_shared<NatsLife>(std::move(events));
  const auto attempt = std::make_shared<Attempt>();
  attempt->options = options;
  attempt->life = add_life(life);
  for (NatsEndpoint& endpoint : *endpoints) endpoint.through = options.connect_to;
  const ConnectEnd end =
      connect_guarded(options.connect_to.empty() ? options.url : options.connect_to, *endpoints, options.connect_limit,
                      stop, [attempt](const Candidate& to, Nanoseconds share) { return attempt->run(to, share); });
  if (end == ConnectEnd::returned && attempt->client) {
    return std::unique_ptr<NatsConnection>(new NatsConnection(std::make_unique<Parts>(life, *attempt)));
  }
  remove_life(attempt->life);
  return connect_error(end, *attempt, endpoints->front());
}

NatsConnection::~NatsConnection() {
  Parts& parts = *parts_;
  parts.life->shut();
  for (const auto& subscriber : parts.subscribers) subscriber->gate.shut();
  parts.abort();
  remove_life(parts.number);
  auto close = [client = std::move(parts.client), subscribers = std::move(parts.subscribers)]() mutable {
    natsConnection_Close(client->connection);
    for (const auto& subscriber : subscribers) natsSubscription_Destroy(subscriber->subscription);
    client.reset();
    nats_ReleaseThreadMemory();
  };
  if (auto call = BoundedCall::start(std::move(close))) call->wait_until(steady_clock::now() + kCloseLimit);
}

bool NatsConnection::alive() const {
  return parts_->life->alive();
}

void NatsConnection::abort() {
  parts_->abort();
}

Result<void> NatsConnection::subscribe(const std::string& subject, Callback callback) {
  const auto subscriber = std::make_shared<Subscriber>();
  subscriber->callback = std::move(callback);
  {
    const std::lock_guard lock(callable().mutex);
    callable().subscribers[subscriber.get()] = subscriber;
  }
  const CallWatch::Call call(parts_->watch);
  const natsStatus status = natsConnection_Subscribe(&subscriber->subscription, parts_->client->connection,
                                                     subject.c_str(), call_subscriber, subscriber.get());
  if (status != NATS_OK) {
    forget_subscriber(subscriber.get());
    return parts_->sent(status);
  }
  const std::lock_guard lock(parts_->mutex);
  parts_->subscribers.push_back(subscriber);
  constexpr int kNoLimit = -1;
  const bool set =
      natsSubscription_SetPendingLimits(subscriber->subscription, kNoLimit, kNoLimit) == NATS_OK &&
      natsSubscription_SetOnCompleteCB(subscriber->subscription, forget_subscriber, subscriber.get()) == NATS_OK;
  if (!set) return unavailable("the connection is lost");
  return {};
}

std::string NatsConnection::new_inbox() {
  const std::lock_guard lock(parts_->mutex);
  return fmt::format("{}.{}", parts_->inbox, ++parts_->last_number);
}

Result<void> NatsConnection::publish(const std::string& subject, const std::string& reply,
                                     std::span<const Header> headers, ByteView payload) {
  if (!alive()) return unavailable("the connection is lost");
  constexpr std::size_t kMostBytes = 1u << 30;  // the library counts in int
  if (payload.size() > kMostBytes) return send_error(NATS_MAX_PAYLOAD);
  natsConnection* connection = parts_->client->connection;
  const auto size = static_cast<int>(payload.size());
  const char* reply_to = reply.empty() ? nullptr : reply.c_str();
  const CallWatch::Call call(parts_->watch);
  if (headers.empty()) {
    const natsStatus sent =
        reply_to == nullptr
            ? natsConnection_Publish(connection, subject.c_str(), payload.data(), size)
            : natsConnection_PublishRequest(connection, subject.c_str(), reply_to, payload.data(), size);
    return parts_->sent(sent);
  }
  natsMsg* raw = nullptr;
  natsStatus status = natsMsg_Create(&raw, subject.c_str(), reply_to, as_text(payload).data(), size);
  const std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)> message(raw, &natsMsg_Destroy);
  for (const Header& header : headers) {
    if (status == NATS_OK) status = natsMsgHeader_Add(raw, header.name.c_str(), header.value.c_str());
  }
  if (status == NATS_OK) status = natsConnection_PublishMsg(connection, raw);
  return parts_->sent(status);
}

Result<NatsReply> NatsConnection::request(const std::string& subject, std::string_view payload, Nanoseconds limit) {
  const Moment deadline = steady_clock::now() + limit;
  HOLDFAST_TRY(listen_for_replies());
  std::uint64_t number = 0;
  std::string reply_to;
  {
    const std::lock_guard lock(parts_->mutex);
    number = ++parts_->last_number;
    reply_to = fmt::format("{}.{}", parts_->replies, number);
  }
  parts_->life->expect(number);
  const auto sent = publish(subject, reply_to, {}, as_bytes(payload));
  auto reply = parts_->life->await(number, sent.ok() ? deadline : Moment{});
  if (!sent.ok()) return sent.error();
  if (reply) return *std::move(reply);
  return unavailable(alive() ? "no answer in time" : "the connection is lost");
}

Result<void> NatsConnection::listen_for_replies() {
  std::string inbox;
  {
    const std::lock_guard lock(parts_->mutex);
    if (!parts_->replies.empty()) return {};
    parts_->replies = inbox = parts_->inbox + ".replies";
  }
  return subscribe(inbox + ".*", [life = parts_->life.get(), prefix = inbox.size() + 1](const NatsMessage& message) {
    const std::string_view digits = message.subject().substr(std::min(prefix, message.subject().size()));
    const auto number = parse_decimal<std::uint64_t>(digits);
    if (number) life->answer(*number, {message.status(), std::string(as_text(message.payload()))});
  });
}

Result<void> NatsConnection::flush(Nanoseconds limit) {
  const Moment deadline = steady_clock::now() + limit;
  auto status = std::make_shared<std::atomic<natsStatus>>(NATS_TIMEOUT);
  auto call = BoundedCall::start([client = parts_->client, status, limit] {
    *status = natsConnection_FlushTimeout(client->connection, whole_milliseconds(limit));
    nats_ReleaseThreadMemory();
  });
  // The library says ok as well when it could not even ask: then we have shut the socket down, or it is not connected
  // any more.
  const bool said_ok = call && call->wait_until(deadline) && *status == NATS_OK;
  if (said_ok && alive() && parts_->socket.connected()) return {};
  abort();
  return unavailable("what was sent is not known to have arrived");
}

std::uint64_t NatsConnection::bytes_arrived() const {
  return parts_->socket.bytes_acknowledged();
}

std::size_t NatsConnection::max_payload() const {
  const CallWatch::Call call(parts_->watch);
  const std::int64_t most = natsConnection_GetMaxPayload(parts_->client->connection);
  return most < 0 ? 0 : static_cast<std::size_t>(most);
}

bool credentials_refused(const Error& error) {
  return error.text.starts_with(kCredentialsRefused);
}

}  // namespace holdfast
