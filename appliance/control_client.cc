#include "appliance/control_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <utility>

#include "appliance/control_socket.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Local = asio::local::stream_protocol;

constexpr std::uint64_t kMaxAnswerBytes = 512u << 20;  // a record of the largest size, opened, in base64

}  // namespace

struct ControlClient::Parts {
  explicit Parts(int fd) : stream(Local::socket(context, Local(), fd)) {}

  // Sends, receives; both within one deadline.
  beast::error_code exchange(const http::request<http::string_body>& request) {
    beast::error_code outcome;
    context.restart();
    http::async_write(stream, request, [&](beast::error_code failed, std::size_t) {
      outcome = failed;
      if (failed) return;
      http::async_read(stream, buffer, *parser, [&](beast::error_code late, std::size_t) { outcome = late; });
    });
    context.run();
    return outcome;
  }

  asio::io_context context{1};
  beast::basic_stream<Local> stream;
  beast::flat_buffer buffer;
  std::optional<http::response_parser<http::string_body>> parser;
};

ControlClient::ControlClient(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ControlClient::~ControlClient() = default;

Result<std::unique_ptr<ControlClient>> ControlClient::connect(const std::string& path) {
  const auto fd = connect_to(path);
  if (!fd) return fd.error();
  return std::unique_ptr<ControlClient>(new ControlClient(std::make_unique<Parts>(*fd)));
}

Result<Json> ControlClient::ask(const std::string& command, const Json& arguments, Nanoseconds limit) {
  http::request<http::string_body> request(http::verb::post, call_target(command), 11);
  request.set(http::field::host, "holdfast");
  request.set(http::field::content_type, "application/json");
  request.body() = json_text(arguments.is_fields() ? arguments : Json(Json::Fields()));
  request.prepare_payload();

  parts_->parser.emplace();
  parts_->parser->body_limit(kMaxAnswerBytes);
  parts_->stream.expires_after(limit);
  if (const auto failed = parts_->exchange(request))
    return Error{ErrorKind::unavailable, "the appliance did not answer: " + failed.message()};
  const auto& response = parts_->parser->get();
  if (response.result() != http::status::ok) return read_failure(response.body());
  auto answer = parse_json(response.body());
  if (!answer) return Error{ErrorKind::unavailable, "the appliance gave an answer that is none"};
  return std::move(*answer);
}

}  // namespace holdfast
