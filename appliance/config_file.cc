#include "appliance/config_file.h"

#define TOML_EXCEPTIONS 0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// The parser asserts what a damaged file can make false, and with NDEBUG would take it for true. Neither is an answer
// to an operator: the condition is let pass, and the parser's own error follows.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "appliance/config_rules.h"
#include "appliance/quantity.h"

namespace holdfast {
namespace {

// Sources, targets, routes, subjects of one: more is a mistake, or needs another design.
constexpr std::size_t kMaxListed = 64;

int line_of(const toml::source_region& region) {
  return static_cast<int>(region.begin.line);
}

const char* type_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

// One table of the file, read key by key. A key that was never asked for is unknown; finish() says so.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string name, int line, Findings& findings)
      : table_(table), name_(std::move(name)), line_(line), findings_(findings) {}

  int line() const { return line_; }

  // Complains about a key at its own line, or at its table's.
  void complain(std::string_view key, const std::string& text) { findings_.error(line_of_key(key), path(key), text); }

  const toml::node* find(std::string_view key) {
    known_.insert(std::string(key));
    return table_.get(key);
  }

  void text(std::string_view key, std::string& into, TextRule rule) {
    const toml::node* node = find_typed<std::string>(key, "a string");
    if (node == nullptr) return;
    into = **node->as_string();
    if (const char* wanted = rule(into)) complain(key, wanted);
  }

  void required_text(std::string_view key, std::string& into, TextRule rule) {
    if (find(key) == nullptr) return complain(key, "is missing; it has no default");
    text(key, into, rule);
  }

  void texts(std::string_view key, std::vector<std::string>& into, TextRule rule, const char* empty) {
    const toml::node* node = find_typed<toml::array>(key, "an array of strings");
    if (node == nullptr) return;
    const toml::array& array = *node->as_array();
    if (array.empty()) complain(key, empty);
    if (array.size() > kMaxListed) return complain(key, "names more than 64");
    for (const toml::node& entry : array) {
      if (!entry.is_string()) {
        complain(key, std::string("has ") + type_text(entry) + " in it; must be an array of strings");
        continue;
      }
      into.push_back(**entry.as_string());
      if (const char* wanted = rule(into.back())) complain(key, '"' + into.back() + "\" " + wanted);
    }
  }

  void flag(std::string_view key, bool& into) {
    if (const toml::node* node = find_typed<bool>(key, "true or false")) into = **node->as_boolean();
  }

  template <typename Count>
  void count(std::string_view key, Count& into, std::uint64_t least, std::uint64_t most) {
    const toml::node* node = find_typed<std::int64_t>(key, "an integer");
    if (node == nullptr) return;
    const std::int64_t value = **node->as_integer();
    if (value < 0 || static_cast<std::uint64_t>(value) < least || static_cast<std::uint64_t>(value) > most)
      return complain(key, "must be from " + count_text(least) + " to " + count_text(most));
    into = static_cast<Count>(value);
  }

  template <typename Size>
  void bytes(std::string_view key, Size& into, std::uint64_t least, std::uint64_t most) {
    const auto value = quantity(key, "a size like \"64MiB\" (B, KiB, MiB, GiB, TiB)", parse_bytes);
    if (!value) return;
    if (*value < least || *value > most)
      return complain(key, "must be from " + bytes_text(least) + " to " + bytes_text(most));
    into = static_cast<Size>(*value);
  }

  void duration(std::string_view key, Nanoseconds& into, Nanoseconds least, Nanoseconds most) {
    const auto value = quantity(key, "a duration like \"500ms\" (ms, s, m, h, d)", parse_duration);
    if (!value) return;
    if (*value < least || *value > most)
      return complain(key, "must be from " + duration_text(least) + " to " + duration_text(most));
    into = *value;
  }

  void percent(std::string_view key, double& into) {
    const auto value = quantity(key, "a share like \"1%\"", parse_percent);
    if (value) into = *value;
  }

  template <typename Choice>
  void choice(std::string_view key, Choice& into, std::initializer_list<std::pair<std::string_view, Choice>> choices) {
    const toml::node* node = find_typed<std::string>(key, "a string");
    if (node == nullptr) return;
    const std::string& word = **node->as_string();
    std::string names;
    for (const auto& [name, value] : choices) {
      if (name == word) {
        into = value;
        return;
      }
      names += (names.empty() ? "\"" : ", \"") + std::string(name) + '"';
    }
    complain(key, '"' + word + "\" is not known; must be one of " + names);
  }

  void field_path(std::string_view key, FieldPath& into) {
    if (find(key) == nullptr) return complain(key, "is missing; must name a field, like \"order.id\"");
    const toml::node* node = find_typed<std::string>(key, "a string");
    if (node == nullptr) return;
    auto path = parse_field_path(**node->as_string());
    if (!path) return complain(key, path.error().text);
    into = std::move(*path);
  }

  // A table inside this one, which is there.
  template <typename Read>
  void inner(std::string_view key, Read read) {
    TableReader in(*find(key)->as_table(), path(key), line_of_key(key), findings_);
    read(in);
    in.finish();
  }

  // Complains about every key that nobody asked for.
  void finish() {
    for (const auto& [key, node] : table_) {
      if (known_.contains(std::string(key.str()))) continue;
      std::string names;
      for (const std::string& known : known_) names += (names.empty() ? "" : ", ") + known;
      complain(key.str(),
               "is not a key of " + (name_.empty() ? "this file" : '[' + name_ + ']') + "; known are " + names);
    }
  }

 private:
  std::string path(std::string_view key) const {
    return name_.empty() ? std::string(key) : name_ + '.' + std::string(key);
  }

  int line_of_key(std::string_view key) const {
    const auto found = table_.find(key);
    return found == table_.end() ? line_ : line_of(found->first.source());
  }

  template <typename T>
  const toml::node* find_typed(std::string_view key, const char* wanted) {
    const toml::node* node = find(key);
    if (node == nullptr || node->is<T>()) return node;
    complain(key, std::string("is ") + type_text(*node) + "; must be " + wanted);
    return nullptr;
  }

  template <typename Parse>
  auto quantity(std::string_view key, const char* wanted, Parse parse) -> decltype(parse(std::string_view())) {
    const toml::node* node = find_typed<std::string>(key, wanted);
    if (node == nullptr) return std::nullopt;
    const std::string& written = **node->as_string();
    auto value = parse(written);
    if (!value) complain(key, '"' + written + "\" is not " + wanted);
    return value;
  }

  const toml::table& table_;
  std::string name_;
  int line_;
  Findings& findings_;
  std::set<std::string> known_;
};

using namespace std::chrono_literals;

constexpr std::uint64_t kKiB = 1ull << 10;
constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::uint64_t kTiB = 1ull << 40;
constexpr Nanoseconds kYear = std::chrono::hours(24 * 365);

void read_appliance(TableReader& in, Config& config) {
  ApplianceConfig& appliance = config.appliance;
  in.required_text("site", appliance.site, site_rule);
  in.text("state_dir", appliance.state_dir, path_rule);
  in.choice<LogLevel>("log_level", appliance.log_level,
                      {{"debug", LogLevel::debug},
                       {"info", LogLevel::info},
                       {"warning", LogLevel::warning},
                       {"error", LogLevel::error}});
  in.choice<LogFormat>("log_format", appliance.log_format,
                       {{"auto", LogFormat::automatic}, {"text", LogFormat::text}, {"json", LogFormat::json}});
  config.spool.site = appliance.site;
}

void read_spool(TableReader& in, Config& config) {
  SpoolOptions& spool = config.spool;
  config.spool_line = in.line();
  in.text("key_file", config.key.file, path_rule);
  in.text("credential", config.key.credential, credential_rule);
  if (in.find("key_file") == nullptr && in.find("credential") == nullptr)
    in.complain("key_file",
                "is missing; name the file that `holdfast keygen` made, or a systemd credential with credential");
  if (in.find("key_file") != nullptr && in.find("credential") != nullptr)
    in.complain("credential", "cannot be used together with key_file; keep one of them");

  in.bytes("max_bytes", spool.limits.max_bytes, 32 * kMiB, 1024 * kTiB);
  in.count("max_records", spool.limits.max_records, 1, 1'000'000'000);
  in.bytes("max_record_bytes", spool.limits.max_record_bytes, kKiB, 128 * kMiB);
  in.bytes("min_free_bytes", spool.limits.min_free_bytes, 0, 1024 * kTiB);
  in.percent("min_free_inodes", spool.limits.min_free_inodes_percent);
  in.bytes("quarantine_max_bytes", spool.limits.quarantine_max_bytes, kMiB, 1024 * kTiB);
  in.duration("linger", spool.linger, 0ns, 1h);
  in.bytes("journal_bytes", spool.journal_bytes, 4 * kMiB, 4 * kGiB);
  if (spool.journal_bytes % (16 * kKiB) != 0)
    in.complain("journal_bytes", "must be a multiple of 16KiB: four segments of whole 4 KiB blocks");
  in.choice<SyncMode>("sync", spool.sync, {{"auto", SyncMode::automatic}, {"files", SyncMode::files}});
  in.flag("allow_unsafe_fs", spool.allow_unsafe_fs);
  in.duration("ledger_window", spool.ledger_window, 1s, 10 * kYear);
  in.count("ledger_max", spool.ledger_max, 1000, 1'000'000'000);
}

void read_address(TableReader& in, NatsAddress& address) {
  in.required_text("url", address.url, nats_url_rule);
  in.text("creds_file", address.creds_file, path_rule);
  in.text("nkey_file", address.nkey_file, path_rule);
  in.text("tls_ca", address.tls_ca, path_rule);
  in.text("tls_cert", address.tls_cert, path_rule);
  in.text("tls_key", address.tls_key, path_rule);
}

// Of a source, or of a route in its place; nothing where none is written.
std::optional<IdentityRule> read_identity(TableReader& in) {
  IdentityRule identity;
  const toml::node* node = in.find("identity");
  if (node != nullptr && node->is_table()) {
    identity.strategy = Strategy::payload_field;
    in.inner("identity", [&](TableReader& table) { table.field_path("payload_field", identity.field); });
  } else if (node != nullptr && node->value<std::string_view>() == "payload_field") {
    in.complain("identity", "names no field; must be like { payload_field = \"order.id\" }");
  } else {
    in.choice<Strategy>("identity", identity.strategy,
                        {{"stream_sequence", Strategy::stream_sequence},
                         {"message_id", Strategy::message_id},
                         {"payload_hash", Strategy::payload_hash}});
  }
  in.choice<MessageIdScope>(
      "message_id_scope", identity.scope,
      {{"global", MessageIdScope::global}, {"site", MessageIdScope::site}, {"stream", MessageIdScope::stream}});
  if (in.find("message_id_scope") != nullptr && identity.strategy != Strategy::message_id)
    in.complain("message_id_scope", "says nothing with this identity; it belongs to identity = \"message_id\"");
  if (node == nullptr) return std::nullopt;
  return identity;
}

SourceConfig read_source(TableReader& in) {
  SourceConfig source;
  source.line = in.line();
  in.required_text("name", source.name, name_rule);
  enum class Type { nats } type{};
  if (in.find("type") == nullptr) in.complain("type", "is missing; must be \"nats\"");
  in.choice<Type>("type", type, {{"nats", Type::nats}});
  read_address(in, source.address);
  in.required_text("stream", source.stream, nats_name_rule);
  in.text("consumer", source.consumer, nats_name_rule);
  in.texts("subjects", source.subjects, pattern_rule, "is empty; name at least one, or leave the key out");
  source.identity = read_identity(in).value_or(IdentityRule());
  in.count("batch", source.batch, 1, 4096);
  in.duration("ack_wait", source.ack_wait, 1s, 1h);
  if (in.find("dead_letter") != nullptr)
    in.complain("dead_letter", "is not in this version; leave it out, what is refused goes to quarantine");
  return source;
}

TargetConfig read_target(TableReader& in) {
  TargetConfig target;
  target.line = in.line();
  in.required_text("name", target.name, name_rule);
  if (in.find("type") == nullptr) in.complain("type", "is missing; must be \"nats\" or \"file\"");
  in.choice<TargetType>("type", target.type, {{"nats", TargetType::nats}, {"file", TargetType::file}});
  in.flag("required", target.required);
  in.count("window", target.window, 1, 65536);
  in.bytes("window_bytes", target.window_bytes, 64 * kKiB, kGiB);
  in.choice<Drain>("order", target.order, {{"fifo", Drain::fifo}, {"priority", Drain::priority}});
  if (target.type == TargetType::file) {
    in.required_text("directory", target.directory, path_rule);
    in.choice<FileFormat>("format", target.format, {{"json", FileFormat::json}, {"raw", FileFormat::raw}});
  } else {
    read_address(in, target.address);
  }
  return target;
}

RouteConfig read_route(TableReader& in) {
  RouteConfig route;
  route.line = in.line();
  if (in.find("subjects") == nullptr)
    in.complain("subjects", "is missing; name what this route takes, \">\" for everything");
  in.texts("subjects", route.subjects, pattern_rule, "is empty; name at least one");
  if (in.find("targets") == nullptr) in.complain("targets", "is missing; name where this route leads");
  in.texts("targets", route.targets, name_rule, "is empty; name at least one");
  std::string word = "normal";
  in.text("priority", word, [](std::string_view value) -> const char* {
    if (priority_from_text(value)) return nullptr;
    return "must be one of flash, immediate, urgent, high, normal, none, low, deferred";
  });
  route.priority = priority_from_text(word).value_or(kNormalPriority);
  route.identity = read_identity(in);
  return route;
}

class FileReader {
 public:
  FileReader(const toml::table& root, LoadedConfig& loaded) : top_(root, "", 1, findings_), loaded_(loaded) {}

  void read() {
    Config& config = loaded_.config;
    section("appliance", true, [&](TableReader& in) { read_appliance(in, config); });
    section("spool", true, [&](TableReader& in) { read_spool(in, config); });
    section("control", false, [&](TableReader& in) { in.text("socket", config.control.socket, socket_rule); });
    each("source", [&](TableReader& in) { config.sources.push_back(read_source(in)); });
    each("target", [&](TableReader& in) { config.targets.push_back(read_target(in)); });
    each("route", [&](TableReader& in) { config.routes.push_back(read_route(in)); });
    top_.finish();
    check_rules(config, findings_);
    loaded_.errors = findings_.errors();
    loaded_.warnings = findings_.warnings();
    loaded_.errors_left_out = findings_.left_out();
  }

 private:
  using ReadTable = std::function<void(TableReader&)>;

  // `[name]`. A required one that is missing is read as an empty one, so that each missing key is named.
  void section(const char* name, bool required, const ReadTable& read) {
    static const toml::table kEmpty;
    const toml::node* node = top_.find(name);
    if (node == nullptr && !required) return;
    if (node != nullptr && !node->is_table())
      return top_.complain(name, std::string("is ") + type_text(*node) + "; must be a table, [" + name + "]");
    const toml::table& table = node == nullptr ? kEmpty : *node->as_table();
    TableReader in(table, name, node == nullptr ? 1 : line_of(node->source()), findings_);
    read(in);
    in.finish();
  }

  // `[[name]]`, any number of them.
  void each(const char* name, const ReadTable& read) {
    const toml::node* node = top_.find(name);
    if (node == nullptr) return;
    const std::string wanted = std::string("must be written as [[") + name + "]]";
    if (!node->is_array()) return top_.complain(name, std::string("is ") + type_text(*node) + "; " + wanted);
    if (node->as_array()->size() > kMaxListed) return top_.complain(name, "has more than 64 entries");
    for (const toml::node& entry : *node->as_array()) {
      if (!entry.is_table()) return top_.complain(name, std::string("has ") + type_text(entry) + " in it; " + wanted);
      TableReader in(*entry.as_table(), name, line_of(entry.source()), findings_);
      read(in);
      in.finish();
    }
  }

  Findings findings_;
  TableReader top_;
  LoadedConfig& loaded_;
};

LoadedConfig failed(int line, std::string text) {
  LoadedConfig loaded;
  loaded.errors.push_back({line, "", std::move(text)});
  return loaded;
}

// All of the file, or why not.
Result<std::string> read_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Error{ErrorKind::invalid, std::string("cannot be read: ") + std::strerror(errno)};
  struct stat facts {};
  std::string text;
  std::string wrong;
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    wrong = "is not a regular file";
  } else {
    text.resize(kMaxConfigBytes + 1);
    std::size_t filled = 0;
    ssize_t got = 0;
    while (filled < text.size() && (got = ::read(fd, text.data() + filled, text.size() - filled)) > 0)
      filled += static_cast<std::size_t>(got);
    text.resize(filled);
    if (got < 0) wrong = std::string("cannot be read: ") + std::strerror(errno);
  }
  ::close(fd);
  if (!wrong.empty()) return Error{ErrorKind::invalid, wrong};
  return text;
}

// What the parser reads outside strings and comments of one line must be ASCII: no TOML has anything else there, and
// what it does with some of the others is undefined (its is_non_ascii_horizontal_whitespace), also after a backslash
// that ends a line of a string of several lines.
class AsciiRule {
 public:
  explicit AsciiRule(std::string_view text) : text_(text) {}

  // The line of the first character that breaks it.
  std::optional<int> broken_at() const {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    std::size_t at = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    while (at < text_.size()) {
      const bool string = begins_string(at);
      const bool of_several_lines = string && text_.substr(at).starts_with(std::string(3, text_[at]));
      const std::size_t next = of_several_lines   ? end_of_lines(at)
                               : string           ? end_of_string(at)
                               : text_[at] == '#' ? std::min(text_.find('\n', at), text_.size())
                                                  : at + 1;
      const bool must_be_ascii = of_several_lines || next == at + 1;
      for (; at < next; ++at) {
        if (must_be_ascii && static_cast<unsigned char>(text_[at]) >= 0x80)
          return 1 + static_cast<int>(std::ranges::count(text_.substr(0, at), '\n'));
      }
    }
    return std::nullopt;
  }

 private:
  // A quote elsewhere is part of what stands before it, a mistake that the parser names.
  bool begins_string(std::size_t at) const {
    constexpr std::string_view kBefore = " \t\r\n=[{,.";
    if (text_[at] != '"' && text_[at] != '\'') return false;
    return at == 0 || kBefore.find(text_[at - 1]) != std::string_view::npos;
  }

  // Its line does where it has no end (TOML 1.0.0, "String").
  std::size_t end_of_string(std::size_t at) const {
    const char quote = text_[at];
    for (++at; at < text_.size() && text_[at] != quote && text_[at] != '\n'; ++at) {
      if (quote == '"' && text_[at] == '\\' && !text_.substr(at + 1).starts_with('\n')) ++at;
    }
    return std::min(at + 1, text_.size());
  }

  std::size_t end_of_lines(std::size_t at) const {
    const std::string quotes(3, text_[at]);
    for (at += 3; at < text_.size() && !text_.substr(at).starts_with(quotes); ++at) {
      if (quotes[0] == '"' && text_[at] == '\\') ++at;
    }
    return std::min(at + 3, text_.size());
  }

  const std::string_view text_;
};

}  // namespace

LoadedConfig parse_config(std::string_view text) {
  if (text.size() > kMaxConfigBytes) return failed(1, "is larger than 1 MiB; that is no configuration");
  if (const auto line = AsciiRule(text).broken_at())
    return failed(*line, "has a character beyond ASCII outside a string or comment of one line");
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return failed(line_of(parsed.error().source()), std::string(parsed.error().description()));
  LoadedConfig loaded;
  FileReader(parsed.table(), loaded).read();
  return loaded;
}

LoadedConfig load_config(const std::string& path) {
  const Result<std::string> text = read_text(path);
  if (!text) return failed(1, text.error().text);
  return parse_config(*text);
}

}  // namespace holdfast
