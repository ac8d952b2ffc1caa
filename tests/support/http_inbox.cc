#include "tests/support/http_inbox.h"

#include <boost/json.hpp>
#include <sstream>

namespace holdfast {
namespace {

namespace json = boost::json;

struct Line {
  std::string key;
  std::string payload;
};

Line read_line(const std::string& text) {
  const json::object line = json::parse(text).as_object();
  return {std::string(line.at("key").as_string()), "base64:" + std::string(line.at("payload").as_string())};
}

}  // namespace

HttpInbox::HttpInbox(Takes takes)
    : takes_(takes), stub_([this](const StubRequest& request) { return answer(request); }) {}

std::map<std::string, std::string> HttpInbox::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::size_t HttpInbox::arrivals(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return arrivals_.count(key);
}

void HttpInbox::refuse(const std::string& payload) {
  const std::lock_guard lock(mutex_);
  refused_.insert(payload);
}

void HttpInbox::answer_all(StubAnswer answer) {
  stub_.answer_with([answer](const StubRequest&) { return answer; });
}

void HttpInbox::well() {
  stub_.answer_with([this](const StubRequest& request) { return answer(request); });
}

HttpInbox::Taken HttpInbox::take(const std::string& key, const std::string& payload) {
  const std::lock_guard lock(mutex_);
  arrivals_.insert(key);
  if (refused_.contains(payload)) return Taken::refused;
  const auto [at, fresh] = held_.emplace(key, payload);
  if (fresh) return Taken::fresh;
  return at->second == payload ? Taken::again : Taken::otherwise;
}

StubAnswer HttpInbox::answer(const StubRequest& request) {
  if (takes_ == Takes::batch) return answer_batch(request);
  const Line line =
      takes_ == Takes::raw ? Line{request.header("idempotency-key"), request.body} : read_line(request.body);
  switch (take(line.key, line.payload)) {
    case Taken::fresh:
      return {201, {}, "stored"};
    case Taken::again:
      return {200, {{"Idempotent-Replayed", "true"}}, "stored"};
    case Taken::otherwise:
      return {422, {}, "that key is taken"};
    case Taken::refused:
      break;
  }
  return {400, {}, "not in this shape"};
}

StubAnswer HttpInbox::answer_batch(const StubRequest& request) {
  std::istringstream lines(request.body);
  json::array verdicts;
  for (std::string text; std::getline(lines, text);) {
    const Line line = read_line(text);
    const Taken taken = take(line.key, line.payload);
    if (taken == Taken::refused) return {400, {}, "one of them is not in this shape"};
    const char* verdict = taken == Taken::fresh ? "accepted" : taken == Taken::again ? "duplicate" : "conflict";
    verdicts.push_back({{"key", line.key}, {"verdict", verdict}});
  }
  return {200, {{"Content-Type", "application/json"}}, json::serialize(json::object{{"verdicts", verdicts}})};
}

}  // namespace holdfast
