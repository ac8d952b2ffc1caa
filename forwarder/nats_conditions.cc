#include "forwarder/nats_conditions.h"

#include <fmt/format.h>

#include "forwarder/nats_wire.h"

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr auto kAskLimit = std::chrono::seconds(5);
// An outage that a field deployment has to bear. A key that is known for longer is known for long enough.
constexpr Nanoseconds kLongOutage = hours(7 * 24);

std::string window_text(Nanoseconds window) {
  if (window < minutes(1)) return fmt::format("{} s", std::chrono::duration<double>(window).count());
  if (window < hours(2)) return fmt::format("{} min", std::chrono::duration_cast<minutes>(window).count());
  return fmt::format("{} h", std::chrono::duration_cast<hours>(window).count());
}

}  // namespace

std::vector<Condition> conditions_of(const StreamKeeping& stream) {
  std::vector<Condition> conditions;
  if (stream.duplicate_window < kLongOutage)
    conditions.push_back(
        {"duplicate_window",
         fmt::format("it knows a key for {}: what is tried again after a longer outage comes twice, under "
                     "the same key, and consumers must tell",
                     window_text(stream.duplicate_window))});
  if (stream.replicas <= 1)
    conditions.push_back({"replicas",
                          "one server holds it, which may confirm before its disk has a record: a cut of its power can "
                          "lose what it confirmed"});
  if (stream.in_memory)
    conditions.push_back({"storage", "it is kept in memory: what it confirmed goes when its servers restart"});
  return conditions;
}

namespace {

Result<std::string> stream_that_takes(NatsConnection& connection, const std::string& subject) {
  const auto reply = connection.request(stream_names_subject(), stream_names_request(subject), kAskLimit);
  if (!reply.ok()) return reply.error();
  if (reply->status != 0) return Error{ErrorKind::unavailable, "JetStream does not answer"};
  auto names = parse_stream_names(reply->payload);
  if (const auto* error = std::get_if<ApiError>(&names))
    return Error{ErrorKind::unavailable, "JetStream does not say which stream it is: " + error_name(*error)};
  auto& found = std::get<std::vector<std::string>>(names);
  if (found.size() != 1) return Error{ErrorKind::not_found, "not just one stream takes the subject"};
  return std::move(found.front());
}

}  // namespace

Result<std::string> stream_behind(NatsConnection& connection, const NatsTargetOptions& target, const Delivery& record) {
  if (target.to.bucket) return bucket_stream(target.to.bucket->name);
  if (!target.to.stream.empty()) return target.to.stream;
  const auto wire = wire_for(record, target.to, target.site);
  if (!wire) return Error{ErrorKind::not_found, "the record has no subject there"};
  return stream_that_takes(connection, wire->subject);
}

Result<std::vector<Condition>> ask_nats_conditions(const NatsTargetOptions& target, const std::string& subject) {
  const auto connection = NatsConnection::connect(target.nats);
  if (!connection.ok()) return connection.error();
  DueRecord record;
  record.envelope.subject = subject;
  const auto stream = stream_behind(**connection, target, {&record, "certify"});
  if (!stream.ok()) return stream.error();
  const auto reply = (*connection)->request(stream_info_subject(*stream), "", kAskLimit);
  if (!reply.ok()) return reply.error();
  const auto info = parse_stream_keeping(reply->payload);
  if (const auto* error = std::get_if<ApiError>(&info))
    return Error{ErrorKind::unavailable, "the stream says nothing of itself: " + error_name(*error)};
  return conditions_of(std::get<StreamKeeping>(info));
}

}  // namespace holdfast
