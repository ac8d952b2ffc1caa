#include "forwarder/s3_target.h"

#include <algorithm>
#include <deque>
#include <map>

#include "forwarder/http_verdict.h"
#include "forwarder/s3_error.h"

namespace holdfast {
namespace {

// An object without our metadata is compared byte for byte up to here.
constexpr std::uint64_t kMostRead = 1u << 20;

// 200 without an ETag, or with a body, says a captive portal or some other server.
bool is_stored(const HttpResponse& response) {
  const auto tag = response.header("ETag");
  return response.status == 200 && response.fault == HttpFault::none && tag && !tag->empty() && response.body.empty();
}

// Where the store says what it has computed.
bool is_intact(const S3Object& object, const HttpResponse& response) {
  const auto computed = response.header("x-amz-checksum-crc32c");
  return !computed || *computed == object.crc32c;
}

// What a store says of credentials, of their date, and of nothing else that a record could change.
bool is_of_signature(const HttpResponse& response) {
  return response.status == 400 || response.status == 401 || response.status == 403;
}

const char* content_type(FileFormat format) {
  return format == FileFormat::json ? "application/json" : "application/octet-stream";
}

}  // namespace

// The records of one delivery: each goes through one to four requests, one at a time.
class S3Target::Round {
 public:
  Round(S3Target& target, const std::string& proxy_login, std::span<const Delivery> window, const Report& report)
      : of_(target), options_(target.options_), proxy_login_(proxy_login), window_(window), report_(report) {}

  std::optional<HttpRequest> next();
  void ended(std::size_t place, const HttpResponse& response);
  // After the last: what was not sent waits with the target, when it is known for what.
  Result<void> end();

 private:
  enum class Step : std::uint8_t {
    look_first,  // is the name free?
    put,         // under the condition
    prove,       // again, under the condition: the store must refuse
    put_bare,    // without it
    look_after,  // the name was taken: by what?
    read,        // by what, byte for byte
  };
  struct Going {
    S3Object object;
    Step step = Step::put;
    bool was_there = false;     // this record, when its name was looked at
    std::uint64_t lessons = 0;  // of the bucket, when the request was signed
    std::size_t answers = 0;    // of all requests, when it went
  };

  Step first_step() const;
  HttpRequest request(std::size_t place);
  HttpRequest put_request(const Going& going);
  void go_on(std::size_t place, Step step);
  void answered(std::size_t place, const Going& going, const HttpResponse& response);
  void unanswered(std::size_t place, const Going& going, const HttpResponse& response);
  void put_ended(std::size_t place, const Going& going, const HttpResponse& response);
  void proof_ended(std::size_t place, const Going& going, const HttpResponse& response);
  void look_ended(std::size_t place, const Going& going, const HttpResponse& response);
  void read_ended(std::size_t place, const Going& going, const HttpResponse& response);
  void taken(std::size_t place);
  void condition_unknown(std::size_t place);
  void settle_by_likeness(std::size_t place, const S3Object& object, S3Likeness likeness);
  void refused(std::size_t place, const Going& going, const HttpResponse& response);
  void settle(std::size_t place, const Outcome& outcome);
  void stop(const Outcome& rest);

  S3Target& of_;
  const S3TargetOptions& options_;
  const std::string& proxy_login_;
  const std::span<const Delivery> window_;
  const Report& report_;
  std::size_t next_place_ = 0;
  std::deque<std::size_t> again_;  // with their next step
  std::map<std::size_t, Going> going_;
  std::size_t answers_ = 0;
  std::size_t failures_in_row_ = 0;
  std::size_t unreported_ = window_.size();
  std::optional<Outcome> rest_;          // of what was not sent
  std::optional<HttpFault> no_contact_;  // nothing is known of it
};

S3Target::Round::Step S3Target::Round::first_step() const {
  if (options_.on_existing == S3OnExisting::replace) return Step::put_bare;
  if (of_.condition_ == Condition::kept) return Step::put;
  if (options_.compare) return Step::look_first;
  return of_.condition_ == Condition::unproven ? Step::put : Step::put_bare;
}

// What was begun is ended first. Until it is known what the store makes of the condition, one record goes at a time.
std::optional<HttpRequest> S3Target::Round::next() {
  if (no_contact_) return std::nullopt;
  if (!again_.empty()) {
    const std::size_t place = again_.front();
    again_.pop_front();
    return request(place);
  }
  if (rest_ || next_place_ == window_.size()) return std::nullopt;
  const bool alone = of_.condition_ == Condition::unproven && options_.on_existing != S3OnExisting::replace;
  if (alone && !going_.empty()) return std::nullopt;
  const std::size_t place = next_place_++;
  Going& going = going_[place];
  going.object = s3_object(window_[place], options_.naming);
  going.step = first_step();
  return request(place);
}

HttpRequest S3Target::Round::request(std::size_t place) {
  Going& going = going_.at(place);
  going.lessons = of_.bucket_.lessons();
  going.answers = answers_;
  const auto bare = [&](const char* method) {
    return of_.bucket_.request(method, going.object.key, of_.credentials_.credentials());
  };
  HttpRequest request;
  if (going.step == Step::look_first || going.step == Step::look_after) {
    request = bare("HEAD");
  } else {
    request = going.step == Step::read ? bare("GET") : put_request(going);
  }
  request.tag = place;
  request.proxy_login = proxy_login_;
  return request;
}

HttpRequest S3Target::Round::put_request(const Going& going) {
  const S3Object& object = going.object;
  std::vector<Header> headers = object.metadata;
  headers.push_back({"Content-Type", content_type(options_.naming.format)});
  headers.push_back({"x-amz-checksum-crc32c", object.crc32c});
  if (going.step != Step::put_bare) headers.push_back({"If-None-Match", "*"});
  headers.insert(headers.end(), options_.headers.begin(), options_.headers.end());
  return of_.bucket_.request("PUT", object.key, of_.credentials_.credentials(), std::move(headers), object.content,
                             object.sha256);
}

void S3Target::Round::go_on(std::size_t place, Step step) {
  going_.at(place).step = step;
  again_.push_back(place);
}

void S3Target::Round::ended(std::size_t place, const HttpResponse& response) {
  const Going& going = going_.at(place);
  const bool accepts = response.status / 100 == 2;
  // Who accepts must have said all of it; who refuses has said enough.
  if (response.status == 0 || (accepts && response.fault != HttpFault::none)) return unanswered(place, going, response);
  ++answers_;
  answered(place, going, response);
}

void S3Target::Round::answered(std::size_t place, const Going& going, const HttpResponse& response) {
  switch (going.step) {
    case Step::put:
    case Step::put_bare:
      return put_ended(place, going, response);
    case Step::prove:
      return proof_ended(place, going, response);
    case Step::look_first:
    case Step::look_after:
      return look_ended(place, going, response);
    case Step::read:
      return read_ended(place, going, response);
  }
}

// Where others were answered meanwhile, it is this request that fails: a peer that hangs over one record, or hangs up
// on it, does not hold the others. Where nothing is answered there is no contact.
void S3Target::Round::unanswered(std::size_t place, const Going& going, const HttpResponse& response) {
  if (const auto outcome = outcome_of_fault(response)) {
    settle(place, *outcome);
    return stop(*outcome);
  }
  const bool sent = response.may_have_arrived;
  if (!sent || answers_ == going.answers) no_contact_ = response.fault;
  if (sent) return settle(place, retry("no_answer"));
  going_.erase(place);
}

void S3Target::Round::put_ended(std::size_t place, const Going& going, const HttpResponse& response) {
  const bool conditional = going.step == Step::put;
  if (is_stored(response)) {
    if (!is_intact(going.object, response)) return settle(place, retry("upload_damaged"));
    if (conditional && of_.condition_ == Condition::unproven) return go_on(place, Step::prove);
    return settle(place, accepted());
  }
  if (response.status / 100 == 2) {
    settle(place, hold_target("not_an_object_store"));
    return stop(hold_target("not_an_object_store"));
  }
  if (conditional && response.status == 412) return taken(place);
  if (conditional && response.status == 501) return condition_unknown(place);
  refused(place, going, response);
}

// The object is there, and is this record's: whatever the store does now, it has the same bytes.
void S3Target::Round::proof_ended(std::size_t place, const Going& going, const HttpResponse& response) {
  const Outcome outcome = accepted(going.was_there ? OutcomeKind::duplicate : OutcomeKind::delivered);
  if (response.status == 412) {
    of_.condition_ = Condition::kept;
    return settle(place, outcome);
  }
  if (response.status == 501) return condition_unknown(place);
  if (!is_stored(response)) return refused(place, going, response);
  of_.condition_ = Condition::ignored;
  settle(place, outcome);
  if (options_.conditional == S3Conditional::required) stop(hold_target("condition_ignored"));
}

void S3Target::Round::look_ended(std::size_t place, const Going& going, const HttpResponse& response) {
  const bool first = going.step == Step::look_first;
  const bool proving = of_.condition_ == Condition::unproven;
  if (response.status == 200) {
    const S3Likeness likeness = s3_likeness(going.object, response);
    // After a start there may be many that were sent before: the first of them shows what the store does.
    const bool can_prove = first && proving && likeness == S3Likeness::same_try;
    if (!can_prove) return settle_by_likeness(place, going.object, likeness);
    going_.at(place).was_there = true;
    return go_on(place, Step::prove);
  }
  if (response.status == 404) {
    if (!first) return settle(place, retry("in_progress"));  // it was there a moment ago
    return go_on(place, proving ? Step::put : Step::put_bare);
  }
  if (!is_of_signature(response)) return refused(place, going, response);
  // A HEAD's refusal has no words, and S3 says 403 of what is not there to who may not list. A put under the condition,
  // which protects what is there, says more; else a GET does.
  go_on(place, first && proving ? Step::put : Step::read);
}

void S3Target::Round::read_ended(std::size_t place, const Going& going, const HttpResponse& response) {
  if (response.status == 404) return settle(place, retry("in_progress"));
  if (response.status != 200) return refused(place, going, response);
  const bool same = as_text(going.object.content) == response.body;
  settle_by_likeness(place, going.object, same ? S3Likeness::same_content : S3Likeness::other);
}

// Refused under the condition: the store keeps it.
void S3Target::Round::taken(std::size_t place) {
  of_.condition_ = Condition::kept;
  if (!options_.compare) return settle(place, accepted(OutcomeKind::duplicate));
  go_on(place, Step::look_after);
}

void S3Target::Round::condition_unknown(std::size_t place) {
  if (options_.conditional == S3Conditional::required) {
    settle(place, hold_target("condition_unsupported"));
    return stop(hold_target("condition_unsupported"));
  }
  of_.condition_ = Condition::unknown_to_it;
  go_on(place, options_.compare ? Step::look_first : Step::put_bare);
}

void S3Target::Round::settle_by_likeness(std::size_t place, const S3Object& object, S3Likeness likeness) {
  if (likeness == S3Likeness::unsaid && options_.on_existing == S3OnExisting::skip &&
      object.content.size() <= kMostRead) {
    return go_on(place, Step::read);
  }
  const bool same = likeness == S3Likeness::same_try ||
                    (likeness == S3Likeness::same_content && options_.on_existing == S3OnExisting::skip);
  settle(place, same ? accepted(OutcomeKind::duplicate) : rejected(Reason::exists_otherwise));
}

// A store that refuses for the date says so in several ways: its own Date tells. One that only fails is not sent the
// whole window again and again over a link that is paid for.
void S3Target::Round::refused(std::size_t place, const Going& going, const HttpResponse& response) {
  Outcome outcome = outcome_of_s3_refusal(response);
  const bool other_clock = going.lessons != of_.bucket_.lessons();
  if (is_of_signature(response) && (other_clock || of_.bucket_.learn_time(response))) {
    return settle(place, retry("clock_skew"));
  }
  const bool put = going.step == Step::put || going.step == Step::prove || going.step == Step::put_bare;
  if (!put && outcome.kind == OutcomeKind::rejected) outcome = retry("unknown_error");
  if (!put && (s3_error_code(response.body) == "AccessDenied" || outcome.kind == OutcomeKind::hold_lane)) {
    outcome = hold_target("read_refused");
  }
  settle(place, outcome);
  if (outcome.kind == OutcomeKind::hold_target) stop(outcome);
  failures_in_row_ = response.status / 100 == 5 ? failures_in_row_ + 1 : 0;
  if (failures_in_row_ >= options_.client.window) stop(hold_target("server_error"));
  if (!s3_asks_for_less(outcome)) return;
  Outcome less = hold_target("throttled");
  less.retry_after = outcome.retry_after;
  stop(less);
}

// Whatever refers to the record is gone after this.
void S3Target::Round::settle(std::size_t place, const Outcome& outcome) {
  going_.erase(place);
  --unreported_;
  if (outcome.kind == OutcomeKind::delivered) failures_in_row_ = 0;
  report_(place, outcome);
}

void S3Target::Round::stop(const Outcome& rest) {
  if (!rest_) rest_ = rest;
}

Result<void> S3Target::Round::end() {
  while (rest_ && next_place_ < window_.size()) settle(next_place_++, *rest_);
  if (unreported_ == 0) return {};  // what hangs over its only record says nothing of the next
  return Error{ErrorKind::unavailable, http_fault_text(no_contact_.value_or(HttpFault::other))};
}

S3Target::S3Target(S3TargetOptions options)
    : options_(std::move(options)),
      credentials_(options_.credentials_file, options_.profile),
      proxy_login_(options_.proxy_login_file),
      bucket_(options_.place, *options_.clock),
      client_(options_.client) {}

Result<void> S3Target::deliver(std::span<const Delivery> window, const Report& report) {
  const auto all_wait = [&](const char* code) {
    for (std::size_t place = 0; place < window.size(); ++place) report(place, hold_target(code));
    return Result<void>();
  };
  if (!credentials_.refresh().ok()) return all_wait(hold_target("file_unusable").state);
  std::string proxy_login;
  if (proxy_login_.is_named()) {
    const auto login = proxy_login_.read();
    if (!login.ok()) return all_wait(hold_target("file_unusable").state);
    proxy_login = std::string(*login);
  }
  const bool held = condition_ == Condition::ignored && options_.conditional == S3Conditional::required;
  if (held) return all_wait(hold_target("condition_ignored").state);
  Round round(*this, proxy_login, window, report);
  HOLDFAST_TRY(client_.carry([&] { return round.next(); },
                             [&](std::size_t place, const HttpResponse& response) { round.ended(place, response); }));
  return round.end();
}

}  // namespace holdfast
