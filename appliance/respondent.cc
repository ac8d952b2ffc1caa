#include "appliance/respondent.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "appliance/commands.h"
#include "appliance/key_file.h"

namespace holdfast {
namespace {

Result<void> become(const struct stat& owner) {
  if (::geteuid() != 0 || owner.st_uid == 0) return {};
  const gid_t group = owner.st_gid;
  if (::setgroups(1, &group) == 0 && ::setegid(group) == 0 && ::seteuid(owner.st_uid) == 0) return {};
  return Error{ErrorKind::invalid, std::string("cannot become the owner of the spool: ") + std::strerror(errno)};
}

Result<void> no_orders(const std::string&, TargetOrder) {
  return Error{ErrorKind::unavailable,
               "no appliance runs; only a running one can be told to hold, resume or try a target"};
}

}  // namespace

Result<std::unique_ptr<Respondent>> Respondent::find(const Config& config, const std::string& key_file) {
  std::unique_ptr<Respondent> respondent(new Respondent(config, key_file));
  auto client = ControlClient::connect(config.control.socket);
  if (!client.ok() && client.error().kind != ErrorKind::not_found) return client.error();
  if (client.ok()) respondent->client_ = std::move(*client);
  return respondent;
}

Respondent::~Respondent() {
  if (custody_) (void)custody_->spool->close(system_clock().monotonic() + std::chrono::seconds(20));
}

Result<Json> Respondent::ask(const std::string& command, const Json& arguments) {
  if (client_) return client_->ask(command, arguments);
  if (command.starts_with("target ")) return no_orders("", {}).error();
  if (!custody_) HOLDFAST_TRY(open_spool());
  return run_command({*custody_->spool, custody_->router, [this] { return idle_status(); }, no_orders}, command,
                     arguments);
}

Result<void> Respondent::open_spool() {
  const std::string directory = spool_directory(config_);
  struct stat owner {};
  if (::lstat(directory.c_str(), &owner) != 0) {
    const ErrorKind kind = errno == ENOENT ? ErrorKind::not_found : ErrorKind::invalid;
    return Error{kind, "cannot look at the spool, " + directory + ": " + std::strerror(errno)};
  }
  const auto key = read_key(key_file_.empty() ? config_.key : KeyPlace{key_file_, ""}, owner.st_uid);
  if (!key) return key.error();
  HOLDFAST_TRY(become(owner));
  auto custody = open_custody(config_, *key);
  if (!custody) return custody.error();
  custody_ = std::move(*custody);
  return {};
}

ApplianceStatus Respondent::idle_status() const {
  ApplianceStatus status;
  status.version = HOLDFAST_VERSION;
  status.site = custody_->spool->site();
  status.configured_site = config_.appliance.site;
  status.wall = system_clock().wall();
  status.monotonic = system_clock().monotonic();
  status.max_bytes = config_.spool.limits.max_bytes;
  status.max_records = config_.spool.limits.max_records;
  status.spool = custody_->spool->status();
  return status;
}

}  // namespace holdfast
