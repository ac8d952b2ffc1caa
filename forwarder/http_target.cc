#include "forwarder/http_target.h"

#include <algorithm>
#include <deque>
#include <map>

namespace holdfast {
namespace {

constexpr std::size_t kBatchBytes = 1u << 20;  // of payloads: what is sent again when a request is lost

}  // namespace

// Places in the window that go, or went, in one request.
class HttpTarget::Round {
 public:
  Round(const HttpTargetOptions& options, const HttpSecrets& secrets, std::span<const Delivery> window,
        const Report& report)
      : options_(options), secrets_(secrets), window_(window), report_(report) {
    for (std::size_t begin = 0; begin < window.size();) {
      const Lot lot = lot_from(begin);
      begin += lot.count;
      waiting_.push_back(lot);
    }
  }

  std::optional<HttpRequest> next();
  void ended(std::size_t tag, const HttpResponse& response);
  // After the last: what was not sent waits with the target, when it is known for what.
  Result<void> end();

 private:
  struct Lot {
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  struct Going {
    Lot lot;
    Bytes body;
    std::size_t answers = 0;  // of all requests, when it went
  };

  Lot lot_from(std::size_t begin) const;
  std::span<const Delivery> records(const Lot& lot) const { return window_.subspan(lot.begin, lot.count); }
  void answered(const Lot& lot, const HttpResponse& response);
  void unanswered(const Going& gone, const HttpResponse& response);
  void hear_verdicts(const Lot& lot, HttpVerdicts said);
  void settle(const Lot& lot, const Outcome& outcome);
  void stop(const Outcome& rest);

  const HttpTargetOptions& options_;
  const HttpSecrets& secrets_;
  const std::span<const Delivery> window_;
  const Report& report_;
  std::deque<Lot> waiting_;
  std::map<std::size_t, Going> going_;
  std::size_t next_tag_ = 0;
  std::size_t answers_ = 0;
  std::size_t unreported_ = window_.size();
  std::optional<Outcome> rest_;          // of what was not sent
  std::optional<HttpFault> no_contact_;  // nothing is known of it
};

HttpTarget::Round::Lot HttpTarget::Round::lot_from(std::size_t begin) const {
  Lot lot{begin, 1};
  std::size_t bytes = window_[begin].record->envelope.payload.size();
  while (lot.count < options_.batch && begin + lot.count < window_.size()) {
    bytes += window_[begin + lot.count].record->envelope.payload.size();
    if (bytes > kBatchBytes) break;
    ++lot.count;
  }
  return lot;
}

std::optional<HttpRequest> HttpTarget::Round::next() {
  if (rest_ || no_contact_ || waiting_.empty()) return std::nullopt;
  const std::size_t tag = next_tag_++;
  Going& going = going_[tag];
  going.lot = waiting_.front();
  going.answers = answers_;
  waiting_.pop_front();
  const Delivery& first = window_[going.lot.begin];
  const bool raw = options_.body == HttpBody::raw && options_.batch == 1;

  HttpRequest request;
  request.tag = tag;
  request.method = options_.method;
  request.url = options_.url;
  request.proxy_login = secrets_.proxy_login;
  if (going.lot.count == 1) {
    request.headers = http_record_headers(first, options_.site, raw ? HttpBody::raw : HttpBody::envelope);
    request.headers.push_back({options_.key_header, first.wire_key});
  } else {
    request.headers.push_back({"Holdfast-Site", options_.site});
  }
  const char* json = options_.batch > 1 ? "application/x-ndjson" : "application/json";
  request.headers.push_back({"Content-Type", raw ? options_.content_type : json});
  request.headers.insert(request.headers.end(), options_.headers.begin(), options_.headers.end());
  request.headers.insert(request.headers.end(), secrets_.headers.begin(), secrets_.headers.end());
  if (!raw) going.body = http_envelopes(records(going.lot));
  request.body = raw ? ByteView(first.record->envelope.payload) : ByteView(going.body);
  return request;
}

void HttpTarget::Round::ended(std::size_t tag, const HttpResponse& response) {
  const auto gone = going_.extract(tag);
  if (response.status == 0) return unanswered(gone.mapped(), response);
  ++answers_;
  answered(gone.mapped().lot, response);
}

void HttpTarget::Round::answered(const Lot& lot, const HttpResponse& response) {
  HttpExpect expect = options_.expect;
  HttpVerdicts verdicts;
  if (options_.batch > 1) {
    verdicts = parse_http_verdicts(response);
    if (verdicts.present) expect.statuses.push_back(207);  // says that each item has a status of its own
  }
  if (verdicts.present && response.fault == HttpFault::none && is_expected(response, expect)) {
    return hear_verdicts(lot, std::move(verdicts));
  }
  const Outcome outcome = outcome_of_response(response, expect);
  if (outcome.kind == OutcomeKind::rejected && lot.count > 1) {
    const std::size_t half = lot.count / 2;
    waiting_.push_front({lot.begin + half, lot.count - half});
    waiting_.push_front({lot.begin, half});
    return;
  }
  settle(lot, outcome);
  if (outcome.kind == OutcomeKind::hold_target) stop(outcome);
  if (!asks_for_less(response)) return;
  Outcome less = hold_target("throttled");
  less.retry_after = outcome.retry_after;
  stop(less);
}

// Where others were answered meanwhile, it is this request that fails: a peer that hangs over one record, or hangs up
// on it, does not hold the others. Where nothing is answered there is no contact.
void HttpTarget::Round::unanswered(const Going& gone, const HttpResponse& response) {
  if (const auto outcome = outcome_of_fault(response)) {
    settle(gone.lot, *outcome);
    return stop(*outcome);
  }
  if (!response.may_have_arrived || answers_ == gone.answers) no_contact_ = response.fault;
  if (response.may_have_arrived) settle(gone.lot, retry("no_answer"));
}

// By their keys, in any order. A key that is not in the request says nothing, nor does the second verdict for one.
void HttpTarget::Round::hear_verdicts(const Lot& lot, HttpVerdicts said) {
  std::map<std::string, Outcome> outcomes;
  for (HttpVerdict& one : said.verdicts) outcomes.emplace(std::move(one.key), std::move(one.outcome));
  for (std::size_t place = lot.begin; place < lot.begin + lot.count; ++place) {
    const auto outcome = outcomes.find(window_[place].wire_key);
    settle({place, 1}, outcome == outcomes.end() ? retry("no_verdict") : outcome->second);
  }
}

void HttpTarget::Round::settle(const Lot& lot, const Outcome& outcome) {
  for (std::size_t place = lot.begin; place < lot.begin + lot.count; ++place) report_(place, outcome);
  unreported_ -= lot.count;
}

void HttpTarget::Round::stop(const Outcome& rest) {
  if (!rest_) rest_ = rest;
}

Result<void> HttpTarget::Round::end() {
  if (rest_) {
    for (const Lot& lot : waiting_) settle(lot, *rest_);
    waiting_.clear();
  }
  if (unreported_ == 0) return {};  // what hangs over its only record says nothing of the next
  return Error{ErrorKind::unavailable, http_fault_text(no_contact_.value_or(HttpFault::other))};
}

HttpTarget::HttpTarget(HttpTargetOptions options)
    : options_(std::move(options)),
      credentials_(options_.bearer_file, options_.basic_file, options_.proxy_login_file),
      client_(options_.client) {}

Result<void> HttpTarget::deliver(std::span<const Delivery> window, const Report& report) {
  const Result<HttpSecrets> secrets = credentials_.read();
  if (!secrets.ok()) {
    for (std::size_t place = 0; place < window.size(); ++place) report(place, hold_target("file_unusable"));
    return {};
  }
  Round round(options_, *secrets, window, report);
  HOLDFAST_TRY(client_.carry([&] { return round.next(); },
                             [&](std::size_t tag, const HttpResponse& response) { round.ended(tag, response); }));
  return round.end();
}

}  // namespace holdfast
