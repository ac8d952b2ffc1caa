#include "appliance/control_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "appliance/progress.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Local = asio::local::stream_protocol;
using Response = http::response<http::string_body>;

constexpr std::size_t kMaxHeaderBytes = 8u << 10;
constexpr std::size_t kWorkers = 4;  // commands at the same time: `status` must get through beside long ones

Response to_response(int status, std::string body) {
  Response response;
  response.result(static_cast<unsigned>(status));
  response.body() = std::move(body);
  return response;
}

Response to_response(const CallAnswer& answer) {
  if (answer.result.ok()) return to_response(200, json_text(*answer.result));
  return to_response(answer.status != 0 ? answer.status : status_of(answer.result.error()),
                     failure_body(answer.result.error()));
}

// One connection: read, carry out, answer, until the peer has had enough.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Local::socket socket, Peer peer, CallHandler handler, std::shared_ptr<asio::thread_pool> workers,
          Nanoseconds patience, std::shared_ptr<void> place)
      : stream_(std::move(socket)),
        peer_(peer),
        handler_(std::move(handler)),
        workers_(std::move(workers)),
        patience_(patience),
        place_(std::move(place)) {}

  void read() {
    parser_.emplace();
    parser_->body_limit(kMaxRequestBytes);
    parser_->header_limit(kMaxHeaderBytes);
    stream_.expires_after(patience_);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code failed, std::size_t) { self->on_read(failed); });
  }

 private:
  void on_read(beast::error_code failed) {
    if (failed == http::error::body_limit || failed == http::error::header_limit)
      return answer(to_response(413, failure_body({ErrorKind::invalid, "the request is too large"})), false);
    if (failed) return;  // gone, too slow, or no HTTP
    const auto& request = parser_->get();
    const bool keep_alive = request.keep_alive();
    auto call = read_call({request.method_string().data(), request.method_string().size()},
                          {request.target().data(), request.target().size()}, request.body());
    if (!call) return answer(to_response({call.error()}), keep_alive);
    stream_.expires_never();
    const auto workers = workers_.lock();
    if (!workers) return;
    asio::post(*workers, [self = shared_from_this(), call = std::move(*call), keep_alive]() mutable {
      auto response = to_response(self->handler_(call, self->peer_));
      // The session goes where it came from: its end belongs to the loop's thread.
      const auto loop = self->stream_.get_executor();
      asio::post(loop, [self = std::move(self), response = std::move(response), keep_alive]() mutable {
        self->answer(std::move(response), keep_alive);
      });
    });
  }

  void answer(Response response, bool keep_alive) {
    response_ = std::move(response);
    response_.version(11);
    response_.set(http::field::content_type, "application/json");
    response_.keep_alive(keep_alive);
    response_.prepare_payload();
    stream_.expires_after(patience_);
    http::async_write(stream_, response_,
                      [self = shared_from_this(), keep_alive](beast::error_code failed, std::size_t) {
                        if (!failed && keep_alive) self->read();
                      });
  }

  beast::basic_stream<Local> stream_;
  const Peer peer_;
  const CallHandler handler_;
  const std::weak_ptr<asio::thread_pool> workers_;
  const Nanoseconds patience_;
  const std::shared_ptr<void> place_;  // among kMaxConnections; given back when the session goes
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
};

}  // namespace

struct ControlServer::Parts : std::enable_shared_from_this<Parts> {
  Parts(ControlLoop& loop, int listening, CallHandler handler_in, Nanoseconds patience_in)
      : acceptor(loop.context(), Local(), listening), handler(std::move(handler_in)), patience(patience_in) {}

  // One at a time, and none while all places are taken: who comes then waits in the kernel's queue.
  void accept() {
    if (accepting || stopping || connections == kMaxConnections) return;
    accepting = true;
    acceptor.async_accept([self = shared_from_this()](beast::error_code failed, Local::socket socket) {
      self->accepting = false;
      if (!failed) self->welcome(std::move(socket));
      if (failed != asio::error::operation_aborted) self->accept();
    });
  }

  void welcome(Local::socket socket) {
    const auto peer = peer_of(socket.native_handle());
    if (!peer) return;
    ++connections;
    const std::shared_ptr<void> place(nullptr, [self = weak_from_this()](void*) {
      const auto parts = self.lock();
      if (!parts) return;
      --parts->connections;
      parts->accept();
    });
    std::make_shared<Session>(std::move(socket), *peer, handler, workers, patience, place)->read();
  }

  // Waits for them on a thread that may be left behind with them.
  void end_workers() {
    if (workers_ended.valid()) return;
    workers->stop();
    auto ended = std::make_shared<std::promise<void>>();
    workers_ended = ended->get_future().share();
    std::thread([all = workers, ended] {
      all->join();
      ended->set_value();
    }).detach();
  }

  Local::acceptor acceptor;
  const CallHandler handler;
  const Nanoseconds patience;
  std::size_t connections = 0;
  bool accepting = false;
  bool stopping = false;
  const std::shared_ptr<asio::thread_pool> workers = std::make_shared<asio::thread_pool>(kWorkers);
  std::shared_future<void> workers_ended;
};

ControlServer::ControlServer(ControlLoop& loop, int listening, CallHandler handler, Nanoseconds patience)
    : parts_(std::make_shared<Parts>(loop, listening, std::move(handler), patience)) {
  parts_->accept();
}

ControlServer::~ControlServer() = default;

bool ControlServer::stop(Nanoseconds deadline) {
  parts_->stopping = true;
  beast::error_code ignored;
  parts_->acceptor.close(ignored);
  parts_->end_workers();
  const auto until =
      std::chrono::steady_clock::time_point(std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline));
  return parts_->workers_ended.wait_until(until) == std::future_status::ready;
}

}  // namespace holdfast
