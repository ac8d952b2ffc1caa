#include "appliance/demo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "appliance/child_process.h"
#include "appliance/control_client.h"
#include "appliance/demo_stream.h"
#include "appliance/json.h"
#include "crypto/secret.h"

namespace holdfast {
namespace {

constexpr std::size_t kMessageBytes = 1024;
constexpr Nanoseconds kStageLimit = std::chrono::minutes(3);  // for any one stage: beyond it the demo has failed
constexpr Nanoseconds kAskLimit = std::chrono::seconds(30);
constexpr const char* kEdgeStream = "TELEMETRY";
constexpr const char* kSubject = "telemetry.>";

// A claim of the final table.
struct Claim {
  std::string text;
  bool holds = false;
};

std::string random_marker() {
  const SecretKey random = SecretKey::random();
  return "marker-" + to_hex(random.bytes().first(12));
}

// Where files survive long enough and syncs are real: not /tmp, which may be memory.
std::string make_directory() {
  std::string path = "/var/tmp/holdfast-demo.XXXXXX";
  return ::mkdtemp(path.data()) == nullptr ? std::string() : path;
}

std::string nats_server_program() {
  for (const char* path : {"/usr/bin/nats-server", "/usr/sbin/nats-server", "/usr/local/bin/nats-server"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "nats-server";
}

class Demo {
 public:
  Demo(const DemoOptions& options, std::string directory) : options_(options), directory_(std::move(directory)) {}

  Result<void> play();
  const std::vector<Claim>& claims() const { return claims_; }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }
  Json figures() const;
  void finish_line();

 private:
  Result<void> set_the_stage();
  Result<void> connected();
  Result<void> cut_off();
  Result<void> back_again();
  Result<void> prove();

  Result<void> start_server(ChildProcess& server, const std::string& name, int port);
  Result<void> start_appliance();
  Result<void> run_command(const std::vector<std::string>& arguments, const std::string& output_file);
  Result<void> wait_for(const std::string& what, const std::function<bool()>& condition);
  std::uint64_t taken();
  std::uint64_t on_the_hub();
  std::uint64_t record_files() const;
  std::uint64_t files_with_marker() const;
  void say(const std::string& text);
  void progress(const std::string& text);

  const DemoOptions options_;
  const std::string directory_;
  const std::string marker_ = random_marker();
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool line_open_ = false;
  int edge_port_ = 0, hub_port_ = 0;
  ChildProcess edge_server_, hub_server_, appliance_;
  std::unique_ptr<DemoStream> edge_, hub_;
  std::uint64_t first_part_ = 0;
  std::uint64_t backlog_files_ = 0;
  std::uint64_t missing_ = 0, twice_ = 0, foreign_ = 0;
  std::vector<Claim> claims_;
};

void Demo::say(const std::string& text) {
  finish_line();
  std::fprintf(stderr, "%6.1f s  %s\n", seconds(), text.c_str());
}

void Demo::progress(const std::string& text) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K%6.1f s  %s", seconds(), text.c_str());
  std::fflush(stderr);
  line_open_ = true;
}

void Demo::finish_line() {
  if (line_open_) std::fputs("\r\033[K", stderr);
  line_open_ = false;
}

Result<void> Demo::wait_for(const std::string& what, const std::function<bool()>& condition) {
  if (wait_until(condition, kStageLimit)) return {};
  return Error{ErrorKind::unavailable, "waited in vain: " + what};
}

Result<void> Demo::start_server(ChildProcess& server, const std::string& name, int port) {
  const std::string configuration = directory_ + "/" + name + ".conf";
  std::ofstream(configuration) << fmt::format("host: 127.0.0.1\nport: {}\njetstream {{ store_dir: \"{}/{}\" }}\n", port,
                                              directory_, name);
  return server.start({nats_server_program(), "-c", configuration}, directory_ + "/" + name + ".log");
}

// Runs this very program, as a user would.
Result<void> Demo::run_command(const std::vector<std::string>& arguments, const std::string& output_file) {
  ChildProcess command;
  std::vector<std::string> argv{"/proc/self/exe"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  HOLDFAST_TRY(command.start(argv, output_file));
  return wait_for(arguments[0], [&] { return !command.running(); });
}

Result<void> Demo::start_appliance() {
  const std::string log = directory_ + "/holdfast.log";
  HOLDFAST_TRY(appliance_.start({"/proc/self/exe", "run", "--config", directory_ + "/holdfast.toml"}, log));
  const auto ready = [&] {
    return !appliance_.running() || ControlClient::connect(directory_ + "/run/control.sock").ok();
  };
  HOLDFAST_TRY(wait_for("the appliance's control socket", ready));
  if (!appliance_.running()) return Error{ErrorKind::unavailable, "the appliance left at its start; see " + log};
  return {};
}

std::uint64_t Demo::taken() {
  auto client = ControlClient::connect(directory_ + "/run/control.sock");
  if (!client) return 0;
  const auto status = (*client)->ask("status", Json(Json::Fields{}), kAskLimit);
  return status ? (*status)["accounting"]["taken"].count() : 0;
}

std::uint64_t Demo::on_the_hub() {
  const auto messages = hub_->messages();
  return messages ? *messages : 0;
}

std::uint64_t Demo::record_files() const {
  std::uint64_t files = 0;
  std::error_code gone;
  for (auto at = std::filesystem::recursive_directory_iterator(directory_ + "/state/spool/records", gone);
       at != std::filesystem::recursive_directory_iterator(); at.increment(gone)) {
    if (gone) break;
    files += at->path().extension() == ".rec" ? 1u : 0u;
  }
  return files;
}

std::uint64_t Demo::files_with_marker() const {
  std::uint64_t found = 0;
  std::error_code gone;
  for (auto at = std::filesystem::recursive_directory_iterator(directory_ + "/state", gone);
       at != std::filesystem::recursive_directory_iterator(); at.increment(gone)) {
    if (gone) break;
    if (!at->is_regular_file(gone)) continue;
    std::ifstream file(at->path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    found += content.find(marker_) != content.npos ? 1u : 0u;
  }
  return found;
}

Result<void> Demo::set_the_stage() {
  say(fmt::format("two nats-servers on loopback, an edge and a hub, in {}", directory_));
  edge_port_ = free_loopback_port();
  hub_port_ = free_loopback_port();
  HOLDFAST_TRY(start_server(edge_server_, "edge", edge_port_));
  HOLDFAST_TRY(start_server(hub_server_, "hub", hub_port_));
  auto edge = DemoStream::open(fmt::format("nats://127.0.0.1:{}", edge_port_), kEdgeStream, kSubject);
  if (!edge) return edge.error();
  edge_ = *std::move(edge);
  auto hub = DemoStream::open(fmt::format("nats://127.0.0.1:{}", hub_port_), "ARCHIVE", kSubject);
  if (!hub) return hub.error();
  hub_ = *std::move(hub);

  std::filesystem::create_directories(directory_ + "/state");
  std::filesystem::create_directories(directory_ + "/run");
  HOLDFAST_TRY(run_command({"keygen", directory_ + "/spool.key"}, directory_ + "/keygen.log"));
  // The demo kills processes, not power, so any file system will do. A short ack_wait: what a kill leaves
  // unacknowledged comes again soon.
  std::ofstream(directory_ + "/holdfast.toml") << fmt::format(
      "[appliance]\nsite = \"demo\"\nstate_dir = \"{0}/state\"\n\n"
      "[spool]\nkey_file = \"{0}/spool.key\"\nmin_free_bytes = \"1MiB\"\nmin_free_inodes = \"0%\"\nallow_unsafe_fs = "
      "true\n\n"
      "[[source]]\nname = \"edge\"\ntype = \"nats\"\nurl = \"nats://127.0.0.1:{1}\"\nstream = \"{3}\"\nconsumer = "
      "\"holdfast\"\nack_wait = \"2s\"\n\n"
      "[[target]]\nname = \"hub\"\ntype = \"nats\"\nurl = \"nats://127.0.0.1:{2}\"\n\n"
      "[control]\nsocket = \"{0}/run/control.sock\"\n",
      directory_, edge_port_, hub_port_, kEdgeStream);
  return start_appliance();
}

Result<void> Demo::connected() {
  first_part_ = options_.messages * 2 / 5;
  say(fmt::format("the uplink is there: {} messages of {} bytes are published at the edge", first_part_,
                  kMessageBytes));
  HOLDFAST_TRY(edge_->publish(1, first_part_, kMessageBytes, marker_,
                              [&](std::uint64_t n) { progress(fmt::format("{} published", n)); }));
  HOLDFAST_TRY(wait_for("delivery while connected", [&] {
    progress(fmt::format("{} of {} on the hub", on_the_hub(), first_part_));
    return on_the_hub() >= first_part_;
  }));
  say(fmt::format("all {} are on the hub; {} record files were needed", first_part_, record_files()));
  return {};
}

Result<void> Demo::cut_off() {
  hub_.reset();
  hub_server_.stop();
  const std::uint64_t rest = options_.messages - first_part_;
  say(fmt::format("the uplink is cut (the hub is stopped); {} more are published", rest));
  std::atomic<std::uint64_t> published{0};
  Result<void> publishing;
  std::thread publisher([&] {
    publishing = edge_->publish(first_part_ + 1, rest, kMessageBytes, marker_, [&](std::uint64_t n) { published = n; });
  });
  const auto in_the_middle = wait_for("half of the intake", [&] {
    progress(fmt::format("{} published, {} taken into custody", published.load(), taken()));
    return taken() >= first_part_ + rest / 3;
  });
  appliance_.kill();
  say(fmt::format("kill -9 in the middle of the intake, {} published so far", published.load()));
  const auto restarted = start_appliance();
  publisher.join();
  HOLDFAST_TRY(in_the_middle);
  HOLDFAST_TRY(restarted);
  HOLDFAST_TRY(publishing);
  HOLDFAST_TRY(wait_for("the whole backlog in files", [&] {
    progress(fmt::format("{} taken into custody, {} record files", taken(), record_files()));
    return taken() >= options_.messages && record_files() >= rest;
  }));
  backlog_files_ = record_files();
  say(fmt::format("the backlog lies in {} encrypted files", backlog_files_));
  claims_.push_back({"the marker is in no file while the backlog waits", files_with_marker() == 0});
  return {};
}

Result<void> Demo::back_again() {
  HOLDFAST_TRY(start_server(hub_server_, "hub", hub_port_));
  auto hub = DemoStream::open(fmt::format("nats://127.0.0.1:{}", hub_port_), "ARCHIVE", kSubject);
  if (!hub) return hub.error();
  hub_ = *std::move(hub);
  say("the uplink is back: the backlog drains");
  const std::uint64_t middle = first_part_ + (options_.messages - first_part_) / 3;
  HOLDFAST_TRY(wait_for("the drain", [&] {
    progress(fmt::format("{} of {} on the hub", on_the_hub(), options_.messages));
    return on_the_hub() >= middle;
  }));
  appliance_.kill();
  say(fmt::format("kill -9 in the middle of the drain, {} on the hub", on_the_hub()));
  HOLDFAST_TRY(start_appliance());
  HOLDFAST_TRY(wait_for("the rest of the drain", [&] {
    progress(fmt::format("{} of {} on the hub", on_the_hub(), options_.messages));
    return on_the_hub() >= options_.messages && record_files() == 0;
  }));
  say("drained");
  return {};
}

Result<void> Demo::prove() {
  const auto counts = hub_->count_by_content(options_.messages);
  if (!counts) return counts.error();
  foreign_ = (*counts)[0];
  for (std::uint64_t number = 1; number <= options_.messages; ++number) {
    missing_ += (*counts)[number] == 0 ? 1u : 0u;
    twice_ += (*counts)[number] > 1 ? 1u : 0u;
  }
  claims_.push_back({fmt::format("all {} published messages are on the hub ({} missing)", options_.messages, missing_),
                     missing_ == 0});
  claims_.push_back(
      {fmt::format("none is there twice, counted by content ({} are)", twice_), twice_ == 0 && foreign_ == 0});

  auto client = ControlClient::connect(directory_ + "/run/control.sock");
  if (!client) return client.error();
  const auto audit = (*client)->ask("audit", Json(Json::Fields{}), kAskLimit);
  if (!audit) return audit.error();
  const bool balanced = (*audit)["balanced"].flag() && (*audit)["lost"].count() == 0;
  claims_.push_back({fmt::format("the audit balances: taken {} = delivered {} + in custody {} + quarantined {}",
                                 (*audit)["taken"].count(), (*audit)["delivered"].count(),
                                 (*audit)["in_custody"].count(), (*audit)["quarantined"].count()),
                     balanced});
  claims_.push_back({"the marker is in no file of the state directory", files_with_marker() == 0});
  claims_.push_back({fmt::format("a backlog of {} records lay in files", backlog_files_), backlog_files_ > 0});
  const int left = appliance_.stop();
  claims_.push_back({fmt::format("the appliance stops cleanly when told (exit {})", left), left == 0});
  return {};
}

Result<void> Demo::play() {
  HOLDFAST_TRY(set_the_stage());
  HOLDFAST_TRY(connected());
  HOLDFAST_TRY(cut_off());
  HOLDFAST_TRY(back_again());
  return prove();
}

Json Demo::figures() const {
  Json json;
  json.set("messages", options_.messages);
  json.set("seconds", seconds());
  json.set("missing", missing_);
  json.set("twice", twice_);
  json.set("backlog_files", backlog_files_);
  bool all = true;
  Json claims{Json::List{}};
  for (const Claim& claim : claims_) {
    Json one;
    one.set("claim", claim.text);
    one.set("holds", claim.holds);
    claims.add(std::move(one));
    all = all && claim.holds;
  }
  json.set("claims", std::move(claims));
  json.set("ok", all);
  return json;
}

}  // namespace

int run_demo(const DemoOptions& options) {
  if (options.messages < 100) {
    std::fprintf(stderr, "holdfast demo: --messages: at least 100, so that there is a middle to be killed in\n");
    return 2;
  }
  const std::string directory = make_directory();
  if (!init_crypto() || directory.empty()) {
    std::fprintf(stderr, "holdfast demo: no directory can be made in /var/tmp\n");
    return 1;
  }
  bool good = false;
  {
    Demo demo(options, directory);
    const auto played = demo.play();
    demo.finish_line();
    good = played.ok();
    if (!played) std::fprintf(stderr, "holdfast demo: %s\n", played.error().text.c_str());
    std::FILE* table = options.json ? stderr : stdout;
    std::fprintf(table, "\n");
    for (const Claim& claim : demo.claims()) {
      std::fprintf(table, "  %s  %s\n", claim.holds ? "yes" : "NO ", claim.text.c_str());
      good = good && claim.holds;
    }
    std::fprintf(table, "\n  %s in %.1f s\n", good ? "Everything held" : "Not everything held", demo.seconds());
    Json figures = demo.figures();
    figures.set("ok", good);
    if (options.json) std::printf("%s\n", json_text(figures).c_str());
  }
  if (options.keep || !good) {
    std::fprintf(stderr, "  Left behind: %s\n", directory.c_str());
  } else {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  return good ? 0 : 1;
}

}  // namespace holdfast
