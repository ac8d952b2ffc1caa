// The JSON of nats_messages.h: the one file of this room that knows Boost.JSON.
#include <boost/json.hpp>
#include <limits>

#include "crypto/text.h"
#include "forwarder/nats_messages.h"
#include "forwarder/nats_stream.h"

namespace holdfast {
namespace {

namespace json = boost::json;

constexpr std::size_t kLongestWords = 1024;

// A document of a server's. Reads only what is there and of the right kind; anything else makes it bad.
class Document {
 public:
  explicit Document(std::string_view text) : memory_(buffer_, sizeof buffer_) {
    boost::system::error_code error;
    json::parse_options options;
    options.max_depth = 16;
    value_ = json::parse({text.data(), text.size()}, error, &memory_, options);
    if (error) value_ = nullptr;
  }
  const json::object* root() const { return value_.if_object(); }

 private:
  unsigned char buffer_[4096];
  json::monotonic_resource memory_;
  json::value value_ = json::value(json::storage_ptr(&memory_));
};

// Fields of one object. What is absent gives the default; what is of another kind makes it bad.
class Fields {
 public:
  explicit Fields(const json::object* object) : object_(object) {}

  Fields object(const char* name) {
    const json::value* value = find(name);
    if (value == nullptr) return Fields(nullptr);
    if (!value->is_object()) good_ = false;
    return Fields(value->if_object());
  }
  std::string text(const char* name) {
    const json::value* value = find(name);
    if (value == nullptr) return {};
    const json::string* text = value->if_string();
    if (text == nullptr) good_ = false;
    return text == nullptr ? std::string() : std::string(text->data(), text->size());
  }
  std::uint64_t count(const char* name) {
    const json::value* value = find(name);
    if (value == nullptr) return 0;
    if (value->is_uint64()) return value->get_uint64();
    if (value->is_int64() && value->get_int64() >= 0) return static_cast<std::uint64_t>(value->get_int64());
    good_ = false;
    return 0;
  }
  std::int64_t number(const char* name, std::int64_t absent) {
    const json::value* value = find(name);
    if (value == nullptr) return absent;
    if (!value->is_int64()) good_ = false;
    return value->is_int64() ? value->get_int64() : absent;
  }
  bool flag(const char* name) {
    const json::value* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_bool()) good_ = false;
    return value->is_bool() && value->get_bool();
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> found;
    const json::value* value = find(name);
    if (value == nullptr) return found;
    if (!value->is_array()) {
      good_ = false;
      return found;
    }
    for (const json::value& element : value->get_array()) {
      const json::string* text = element.if_string();
      if (text == nullptr) good_ = false;
      if (text != nullptr) found.emplace_back(text->data(), text->size());
    }
    return found;
  }
  std::vector<Nanoseconds> times(const char* name) {
    std::vector<Nanoseconds> found;
    const json::value* value = find(name);
    if (value == nullptr) return found;
    const json::array* array = value->if_array();
    good_ = good_ && array != nullptr;
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      good_ = good_ && (*array)[i].is_int64();
      if ((*array)[i].is_int64()) found.emplace_back((*array)[i].get_int64());
    }
    return found;
  }
  bool has(const char* name) const { return find(name) != nullptr; }
  bool present() const { return object_ != nullptr; }
  bool good() const { return good_; }

 private:
  const json::value* find(const char* name) const {
    if (object_ == nullptr) return nullptr;
    const json::value* value = object_->if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  const json::object* object_;
  bool good_ = true;
};

int small(std::int64_t number) {
  return number < 0 || number > std::numeric_limits<std::uint16_t>::max() ? 0 : static_cast<int>(number);
}

std::optional<ApiError> error_in(Fields& root) {
  if (!root.has("error")) return std::nullopt;
  Fields said = root.object("error");
  ApiError error;
  error.code = small(said.number("code", 0));
  error.err_code = small(said.number("err_code", 0));
  error.words = said.text("description").substr(0, kLongestWords);
  if (error.code == 0) error.code = 500;  // an error it is, whatever else
  return error;
}

ConsumerConfig read_config(Fields config, bool& good) {
  ConsumerConfig read;
  read.name = config.text("durable_name");
  if (read.name.empty()) read.name = config.text("name");
  read.description = config.text("description");
  read.filters = config.texts("filter_subjects");
  std::string filter = config.text("filter_subject");
  if (!filter.empty()) read.filters.push_back(std::move(filter));
  read.deliver_policy = config.text("deliver_policy");
  read.start_sequence = config.count("opt_start_seq");
  read.start_time = config.text("opt_start_time");
  read.ack_policy = config.text("ack_policy");
  read.replay_policy = config.text("replay_policy");
  read.ack_wait = Nanoseconds(config.number("ack_wait", 0));
  read.backoff = config.times("backoff");
  read.max_deliver = config.number("max_deliver", -1);
  read.max_ack_pending = config.number("max_ack_pending", 0);
  read.push = config.has("deliver_subject");
  read.headers_only = config.flag("headers_only");
  good = good && config.present() && config.good();
  return read;
}

json::array array_of(std::span<const std::string> texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

// As they lie in a stored message: a line that names the version, one of each header, an empty one.
std::optional<std::vector<Header>> read_header_lines(std::string_view lines) {
  constexpr std::string_view kEnd = "\r\n";
  std::vector<Header> headers;
  if (lines.empty()) return headers;
  if (!lines.starts_with("NATS/1.0")) return std::nullopt;
  for (std::size_t end = lines.find(kEnd); end != std::string_view::npos; end = lines.find(kEnd)) {
    lines.remove_prefix(end + kEnd.size());
    const std::string_view line = lines.substr(0, lines.find(kEnd));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view value = line.substr(colon + 1);
    const std::size_t begin = std::min(value.find_first_not_of(' '), value.size());
    headers.push_back({std::string(line.substr(0, colon)), std::string(value.substr(begin))});
  }
  return headers;
}

// What all answers that hold a message begin with.
bool read_place(Fields& message, StoredMessage& stored) {
  stored.subject = message.text("subject");
  stored.sequence = message.count("seq");
  const auto time = parse_time(message.text("time"));
  if (!message.present() || !message.good() || stored.sequence == 0 || !time) return false;
  stored.timestamp_ns = *time;
  return true;
}

}  // namespace

ApiReply<PubAck> parse_pub_ack(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  // The error first: an error carries a sequence too.
  if (auto error = error_in(root)) return *std::move(error);
  PubAck ack;
  ack.sequence = root.count("seq");
  ack.duplicate = root.flag("duplicate");
  const bool names_stream = !root.text("stream").empty();
  if (!root.good() || !names_stream) return ApiError{};
  if (ack.sequence > 0) return ack;
  return ack.duplicate ? ApiError{409, static_cast<int>(ApiCode::duplicate_in_progress), {}} : ApiError{};
}

ApiReply<StreamInfo> parse_stream_info(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  if (auto error = error_in(root)) return *std::move(error);
  Fields config = root.object("config");
  Fields state = root.object("state");
  StreamInfo info;
  info.created = root.text("created");
  info.subjects = config.texts("subjects");
  info.work_queue = config.text("retention") == "workqueue";
  info.only_subjects = !config.has("mirror") && !config.has("sources");
  info.messages = state.count("messages");
  info.first_sequence = state.count("first_seq");
  info.last_sequence = state.count("last_seq");
  const bool good = config.present() && state.present() && root.good() && config.good() && state.good();
  if (!good || info.created.empty()) return ApiError{};
  return info;
}

ApiReply<StreamKeeping> parse_stream_keeping(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  if (auto error = error_in(root)) return *std::move(error);
  Fields config = root.object("config");
  StreamKeeping keeping;
  keeping.replicas = config.count("num_replicas");
  keeping.duplicate_window = Nanoseconds(config.number("duplicate_window", 0));
  keeping.in_memory = config.text("storage") == "memory";
  if (!config.present() || !root.good() || !config.good()) return ApiError{};
  return keeping;
}

ApiReply<std::vector<std::string>> parse_stream_names(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  if (auto error = error_in(root)) return *std::move(error);
  std::vector<std::string> names = root.texts("streams");
  if (!root.present() || !root.good()) return ApiError{};
  return names;
}

ApiReply<ConsumerInfo> parse_consumer_info(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  if (auto error = error_in(root)) return *std::move(error);
  Fields delivered = root.object("delivered");
  Fields floor = root.object("ack_floor");
  ConsumerInfo info;
  info.created = root.text("created");
  info.delivered_sequence = delivered.count("stream_seq");
  info.floor_sequence = floor.count("stream_seq");
  info.pending = root.count("num_pending");
  info.unacknowledged = root.count("num_ack_pending");
  bool good = delivered.good() && floor.good();
  info.config = read_config(root.object("config"), good);
  if (!good || !root.good() || info.created.empty()) return ApiError{};
  return info;
}

ApiReply<StoredMessage> parse_stored_message(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  if (auto error = error_in(root)) return *std::move(error);
  Fields message = root.object("message");
  StoredMessage stored;
  if (!read_place(message, stored) || !root.good()) return ApiError{};
  return stored;
}

ApiReply<StoredContent> parse_stored_content(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  if (auto error = error_in(root)) return *std::move(error);
  Fields message = root.object("message");
  StoredContent stored;
  auto lines = from_base64(message.text("hdrs"));
  auto payload = from_base64(message.text("data"));
  if (!read_place(message, stored.place) || !root.good() || !lines || !payload) return ApiError{};
  auto headers = read_header_lines(as_text(*lines));
  if (!headers) return ApiError{};
  stored.headers = *std::move(headers);
  stored.payload = *std::move(payload);
  return stored;
}

std::optional<ApiError> parse_api_error(std::string_view text) {
  const Document document(text);
  Fields root(document.root());
  if (!root.present()) return ApiError{};
  return error_in(root);
}

std::string create_consumer_request(std::string_view stream, const ConsumerConfig& config) {
  json::object wanted{{"durable_name", config.name},          {"deliver_policy", config.deliver_policy},
                      {"ack_policy", config.ack_policy},      {"ack_wait", config.ack_wait.count()},
                      {"max_deliver", config.max_deliver},    {"max_ack_pending", config.max_ack_pending},
                      {"replay_policy", config.replay_policy}};
  if (!config.description.empty()) wanted["description"] = config.description;
  if (config.start_sequence > 0) wanted["opt_start_seq"] = config.start_sequence;
  if (!config.start_time.empty()) wanted["opt_start_time"] = config.start_time;
  if (config.headers_only) wanted["headers_only"] = true;
  if (!config.backoff.empty()) {
    json::array backoff;
    for (const Nanoseconds wait : config.backoff) backoff.emplace_back(wait.count());
    wanted["backoff"] = std::move(backoff);
  }
  if (config.filters.size() == 1) wanted["filter_subject"] = config.filters.front();
  if (config.filters.size() > 1) wanted["filter_subjects"] = array_of(config.filters);
  // Only if it is not there; a server before 2.10 does not know the action and does not mind.
  return json::serialize(
      json::object{{"stream_name", json::string(stream)}, {"config", std::move(wanted)}, {"action", "create"}});
}

std::string next_message_request(std::uint64_t at_or_above, std::string_view filter) {
  return json::serialize(json::object{{"seq", at_or_above}, {"next_by_subj", json::string(filter)}});
}

std::string last_message_request(std::string_view subject) {
  return json::serialize(json::object{{"last_by_subj", json::string(subject)}});
}

std::string stream_names_request(std::string_view subject) {
  return json::serialize(json::object{{"subject", json::string(subject)}});
}

std::string delete_message_request(std::uint64_t sequence) {
  return json::serialize(json::object{{"seq", sequence}});
}

std::string create_stream_request(const StreamRequest& request) {
  return json::serialize(json::object{{"name", request.name},
                                      {"subjects", array_of(request.subjects)},
                                      {"retention", request.retention},
                                      {"storage", request.file_storage ? "file" : "memory"},
                                      {"max_consumers", -1},
                                      {"max_msgs", request.max_messages},
                                      {"max_bytes", request.max_bytes},
                                      {"max_age", 0},
                                      {"max_msg_size", request.max_message_bytes},
                                      {"discard", request.discard_new ? "new" : "old"},
                                      {"num_replicas", request.replicas},
                                      {"duplicate_window", request.duplicate_window.count()}});
}

}  // namespace holdfast
