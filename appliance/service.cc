#include "appliance/service.h"

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "appliance/commands.h"
#include "appliance/control_server.h"
#include "appliance/endpoints.h"
#include "appliance/exit_code.h"
#include "appliance/quantity.h"
#include "appliance/source_loop.h"
#include "appliance/systemd.h"
#include "appliance/target_loop.h"
#include "appliance/watch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr Fixed kVersion{HOLDFAST_VERSION};
constexpr Nanoseconds kTick = 1s;
constexpr Nanoseconds kUpkeepBound = 10min;     // a sync on a worn-out card can take minutes and still succeed
constexpr Nanoseconds kUpkeepRest = 1min;       // at most
constexpr Nanoseconds kIntakeIdle = 10s;        // when leaving for a hung target disturbs nobody
constexpr Nanoseconds kLeaveForTarget = 15min;  // not more often

// The stop, in seconds from its beginning; TimeoutStopSec of the unit is 30 s.
constexpr Nanoseconds kFinishFlights = 6s;  // what is in flight may be settled until then
constexpr Nanoseconds kEndLoops = 9s;
constexpr Nanoseconds kEndUpkeep = 12s;
constexpr Nanoseconds kEndFlush = 18s;
constexpr Nanoseconds kEndStop = 20s;

class Service {
 public:
  Service(const Config& config, Custody& custody, Log& log)
      : config_(config), spool_(*custody.spool), router_(custody.router), numbers_(custody.targets), log_(log) {}

  int run() {
    open_control();
    start_loops();
    loop_.on_signal([this](int signal) { heard(signal); });
    loop_.every(kTick, [this] { tick(); });
    notify_ready();
    log_.info("ready", {{"site", ConfigName{config_.appliance.site}},
                        {"version", kVersion},
                        {"life", spool_.status().boot},
                        {"in_custody", spool_.status().in_custody},
                        {"start", Progress::now() - began_}});
    loop_.run();
    return stop();
  }

 private:
  // Starting.
  void open_control();
  void start_loops();
  void start_upkeep();
  void start_watching();

  // While it runs.
  void heard(int signal);
  void tick();
  void watch();
  void tell_notices(const SpoolStatus& spool);
  void tell_finds(const std::vector<SourceView>& sources);
  void tell_verdicts(const std::vector<SourceView>& sources);
  ApplianceStatus view() const;
  CallAnswer answer(const CommandCall& call, const Peer& peer);
  void note_command(const CommandCall& call, const Peer& peer, const Result<Json>& result);
  Result<void> order(const std::string& target, TargetOrder order);

  // Leaving.
  int stop();
  bool end_loops(Nanoseconds began);
  void end_of_life(const Error& error);
  [[noreturn]] void leave(Fixed why, LogFields fields);

  const Config& config_;
  Spool& spool_;
  const Router& router_;
  const std::vector<TargetNumber>& numbers_;
  Log& log_;
  const Nanoseconds began_ = Progress::now();
  std::atomic<bool> stopping_ = false;

  ControlLoop loop_;
  std::unique_ptr<ControlServer> control_;
  std::vector<std::unique_ptr<SourceLoop>> sources_;
  std::vector<std::unique_ptr<TargetLoop>> targets_;
  Progress upkeep_progress_;
  std::unique_ptr<Worker> upkeep_;
  std::unique_ptr<Worker> watcher_;
  Watch watch_;
  std::size_t notices_told_ = 0;
  std::vector<VerdictTallies> verdicts_told_;  // by source
  std::vector<std::uint64_t> finds_told_;      // by source
};

// Without it the appliance does its work, so it is no reason not to start.
void Service::open_control() {
  const auto listening = listen_at(config_.control.socket);
  if (!listening) return log_.error("there will be no control socket", {{"error", listening.error()}});
  control_ = std::make_unique<ControlServer>(
      loop_, *listening, [this](const CommandCall& call, const Peer& peer) { return answer(call, peer); });
}

void Service::start_loops() {
  const EndOfLife end = [this](const Error& error) { end_of_life(error); };
  for (std::size_t place = 0; place < config_.targets.size(); ++place) {
    const TargetConfig& target = config_.targets[place];
    ForwarderOptions options{numbers_[place], target.name, {}};
    options.window.records = target.window;
    options.window.bytes = target.window_bytes;
    options.window.drain = target.order;
    targets_.push_back(
        std::make_unique<TargetLoop>(make_target(target, config_.appliance.site), spool_, std::move(options), end));
  }
  spool_.on_due([this] {
    for (const auto& target : targets_) target->wake();
  });
  for (const SourceConfig& source : config_.sources)
    sources_.push_back(std::make_unique<SourceLoop>(
        make_source(source, spool_), make_dead_letters(source, config_.appliance.site), spool_, router_,
        IntakeRules{spool_.site(), source.identity, source.batch, source.on_conflict, source.on_duplicate,
                    config_.spool.limits.max_record_bytes},
        end));
  start_upkeep();
  start_watching();
}

void Service::start_upkeep() {
  upkeep_ = std::make_unique<Worker>("upkeep", [this]() -> std::optional<Nanoseconds> {
    upkeep_progress_.begin(kUpkeepBound);
    const auto rest = spool_.maintain();
    upkeep_progress_.end();
    if (rest) return std::min(*rest, kUpkeepRest);
    if (rest.error().kind != ErrorKind::io) return kTick;
    end_of_life(rest.error());
    return std::nullopt;
  });
}

void Service::start_watching() {
  watcher_ = std::make_unique<Worker>("watch", [this]() -> std::optional<Nanoseconds> {
    watch();
    return kTick;
  });
}

void Service::heard(int signal) {
  if (signal == SIGHUP) return log_.info("the configuration is read at the start only; restart to apply a change");
  log_.info("told to stop", {{"signal", signal}});
  loop_.stop();
}

// Every loop must get on. For a source, or the upkeep, that hangs the process leaves; a target that hangs is left
// alone, until leaving disturbs nobody.
void Service::tick() {
  const Nanoseconds now = Progress::now();
  if (upkeep_progress_.overdue(now)) leave("the spool's upkeep hangs", {});
  bool idle = true;
  for (std::size_t place = 0; place < sources_.size(); ++place) {
    if (sources_[place]->overdue(now)) leave("a source hangs", {{"source", ConfigName{config_.sources[place].name}}});
    idle = idle && sources_[place]->idle_for(kIntakeIdle, now);
  }
  for (const auto& target : targets_) {
    if (idle && now - began_ >= kLeaveForTarget && target->hung(now))
      leave("a target hangs, and nothing is coming in", {{"target", ConfigName{target->name()}}});
  }
  notify_watchdog();
}

void Service::watch() {
  const Nanoseconds now = Progress::now();
  for (const auto& source : sources_) source->look(now);
  for (const auto& target : targets_) target->look(now);
  const ApplianceStatus status = view();
  tell_notices(status.spool);
  tell_finds(status.sources);
  tell_verdicts(status.sources);
  const std::vector<Attention> looks = attentions(status);
  const Watch::Changes changes = watch_.look(now, looks);
  for (const Attention& one : changes.began)
    log_.warning("needs attention", {{"code", OwnWords{one.code}}, {"what", OwnWords{one.text}}});
  for (const Attention& one : changes.ended)
    log_.info("is well again", {{"code", OwnWords{one.code}}, {"about", ConfigName{one.about}}});
  const std::string waiting = count_text(status.spool.in_custody) + " records in custody";
  notify_status(looks.empty() ? waiting : waiting + "; " + looks.front().text);
}

void Service::tell_notices(const SpoolStatus& spool) {
  for (; notices_told_ < spool.notices.size(); ++notices_told_)
    log_.warning("the spool noticed", {{"what", OwnWords{spool.notices[notices_told_]}}});
}

void Service::tell_finds(const std::vector<SourceView>& sources) {
  finds_told_.resize(sources.size());
  for (std::size_t place = 0; place < sources.size(); ++place) {
    const SourceStatus& source = sources[place].status;
    if (std::exchange(finds_told_[place], source.finds) < source.finds)
      log_.warning("the stream is not as it was",
                   {{"source", ConfigName{source.name}}, {"found", OwnWords{source.last_find}}});
  }
}

// Of what was not simply taken: how many since the last look, and which was the last (never its key: I7).
void Service::tell_verdicts(const std::vector<SourceView>& sources) {
  verdicts_told_.resize(sources.size());
  for (std::size_t place = 0; place < sources.size(); ++place) {
    const ConfigName source{sources[place].status.name};
    for (std::size_t strategy = 0; strategy < kStrategies; ++strategy) {
      const VerdictTally& now = sources[place].verdicts[strategy];
      VerdictTally& told = verdicts_told_[place][strategy];
      const OwnWords identity{strategy_text(static_cast<Strategy>(strategy))};
      const auto tell = [&](Fixed what, std::uint64_t before, std::uint64_t after, const RecordId& last) {
        if (after > before)
          log_.info(what, {{"source", source}, {"identity", identity}, {"messages", after - before}, {"last", last}});
      };
      tell("duplicates recognised", told.counts.duplicates(), now.counts.duplicates(), now.last_duplicate);
      tell("conflicts kept", told.counts.conflicts, now.counts.conflicts, now.last_conflict);
      tell("messages refused", told.counts.refused, now.counts.refused, now.last_refused);
      told = now;
    }
  }
}

ApplianceStatus Service::view() const {
  ApplianceStatus status;
  status.running = true;
  status.version = HOLDFAST_VERSION;
  status.site = spool_.site();
  status.configured_site = config_.appliance.site;
  status.wall = system_clock().wall();
  status.monotonic = system_clock().monotonic();
  status.uptime = Progress::now() - began_;
  status.max_bytes = config_.spool.limits.max_bytes;
  status.max_records = config_.spool.limits.max_records;
  status.spool = spool_.status();
  for (const auto& source : sources_) status.sources.push_back(source->view());
  for (const auto& target : targets_) status.targets.push_back(target->view());
  return status;
}

CallAnswer Service::answer(const CommandCall& call, const Peer& peer) {
  const auto right = right_of(call.command);
  if (!right) return {Error{ErrorKind::not_found, "there is no such command"}};
  if (!may(*right, peer.uid, ::geteuid())) {
    log_.warning("refused a command", {{"command", OwnWords{call.command}}, {"uid", peer.uid}});
    return {Error{ErrorKind::invalid, "only root and the service's own user may do that"}, 403};
  }
  const Premises premises{spool_, router_, [this] { return view(); },
                          [this](const std::string& name, TargetOrder what) { return order(name, what); }};
  CallAnswer answer{run_command(premises, call.command, call.arguments)};
  if (*right == Right::change) note_command(call, peer, answer.result);
  if (!answer.result.ok() && answer.result.error().kind == ErrorKind::io) end_of_life(answer.result.error());
  return answer;
}

void Service::note_command(const CommandCall& call, const Peer& peer, const Result<Json>& result) {
  const std::uint64_t records = result.ok() ? (*result)["changed"].count() : 0;
  log_.info("an operator's command", {{"command", OwnWords{call.command}},
                                      {"about", OwnWords{result.ok() ? about(call.arguments) : ""}},
                                      {"uid", peer.uid},
                                      {"done", result.ok()},
                                      {"dry_run", call.arguments["dry_run"].flag()},
                                      {"records", records},
                                      {"reason", OwnWords{call.arguments["reason"].text()}}});
}

Result<void> Service::order(const std::string& name, TargetOrder what) {
  for (const auto& target : targets_) {
    if (target->name() != name) continue;
    const bool held = target->view().status.state == ForwarderState::held_by_operator;
    if (what == TargetOrder::kick && held)
      return Error{ErrorKind::unavailable, "target " + name + " is held by an operator; `target resume` lets it go on"};
    target->order(what);
    return {};
  }
  return Error{ErrorKind::not_found, "no target of the configuration is called that"};
}

// Nothing that is in flight is cut short before its time, and nothing that hangs keeps the process.
int Service::stop() {
  const Nanoseconds began = Progress::now();
  stopping_ = true;
  notify_stopping();
  notify_extend_timeout(kEndStop);
  std::thread([] {
    std::this_thread::sleep_for(kEndStop);
    ::_exit(0);
  }).detach();

  bool ended = end_loops(began);
  if (control_) {
    ended = control_->stop(began + kEndLoops) && ended;
    ::unlink(config_.control.socket.c_str());
  }
  watcher_->stop();
  upkeep_->stop();
  ended = watcher_->ended_by(began + kEndUpkeep) && ended;
  const bool quiet = upkeep_->ended_by(began + kEndUpkeep);
  int code = 0;
  if (quiet) {
    const Nanoseconds left = began + kEndFlush - Progress::now();
    const auto closed = spool_.close(system_clock().monotonic() + std::max(left, Nanoseconds(1s)));
    if (!closed) log_.error("the spool could not be closed", {{"error", closed.error()}});
    code = closed.ok() ? 0 : kExitTemporary;
  }
  log_.info("stopped", {{"took", Progress::now() - began}, {"everything_ended", ended && quiet}});
  if (!ended || !quiet) ::_exit(code);
  spool_.on_due({});
  return code;
}

bool Service::end_loops(Nanoseconds began) {
  for (const auto& source : sources_) source->stop();
  for (const auto& target : targets_) target->stop();
  bool ended = true;
  for (const auto& source : sources_) ended = source->ended_by(began + kEndLoops) && ended;
  for (const auto& target : targets_) {
    if (!target->ended_by(began + kFinishFlights)) target->interrupt();
  }
  for (const auto& target : targets_) ended = target->ended_by(began + kEndLoops) && ended;
  return ended;
}

void Service::end_of_life(const Error& error) {
  if (!stopping_) leave("the spool's life is over", {{"error", error}});
}

// From any thread, past everything that may hang: what was acknowledged is on the disk.
void Service::leave(Fixed why, LogFields fields) {
  static std::atomic<bool> left = false;
  if (!left.exchange(true)) {
    log_.error(why, fields);
    notify_status(std::string("leaving: ") + why.text);
    ::_exit(kExitTemporary);
  }
  for (;;) ::pause();
}

}  // namespace

int run_service(const Config& config, Custody custody, Log& log) {
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  // glibc sweeps its fast bins at every allocation of 1 KiB and more, and those are what a payload is (mallopt(3)).
  ::mallopt(M_MXFAST, 0);
  Service service(config, custody, log);
  return service.run();
}

}  // namespace holdfast
