#include "appliance/custody.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "spool/path.h"

namespace holdfast {
namespace {

// A directory of mode 0700, and its name on the medium. Whether one that is there may be used is the spool's to say.
Result<void> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return {};
    return Error{ErrorKind::invalid, "cannot make " + path + ": " + std::strerror(errno)};
  }
  const std::string parent = parent_path(path).empty() ? "/" : parent_path(path);
  const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) return Error{ErrorKind::io, "cannot sync " + parent + ": " + std::strerror(why)};
  return {};
}

Result<std::vector<TargetNumber>> number_targets(const Config& config, Spool& spool) {
  std::vector<TargetNumber> numbers;
  for (const TargetConfig& target : config.targets) {
    const auto number = spool.target_number(target.name);
    if (!number) return number.error();
    numbers.push_back(*number);
  }
  return numbers;
}

// The targets that a route names, or all of them.
std::vector<RouteTarget> ends_of(const Config& config, const std::vector<TargetNumber>& numbers,
                                 const RouteConfig* route) {
  std::vector<RouteTarget> ends;
  for (std::size_t place = 0; place < config.targets.size(); ++place) {
    const TargetConfig& target = config.targets[place];
    const bool named = route == nullptr ||
                       std::find(route->targets.begin(), route->targets.end(), target.name) != route->targets.end();
    if (named) ends.push_back({numbers[place], target.required});
  }
  return ends;
}

Result<Router> number_routes(const Config& config, const std::vector<TargetNumber>& targets, Spool& spool) {
  std::vector<RouteRule> rules;
  for (const RouteConfig& route : config.routes) {
    const auto number = spool.route_number(ends_of(config, targets, &route));
    if (!number) return number.error();
    rules.push_back({route.subjects, *number, route.priority, route.identity});
  }
  if (config.routes.empty()) {
    const auto number = spool.route_number(ends_of(config, targets, nullptr));
    if (!number) return number.error();
    rules.push_back({{">"}, *number, kNormalPriority});
  }
  return Router(std::move(rules));
}

}  // namespace

Result<Custody> open_custody(const Config& config, const SecretKey& key) {
  HOLDFAST_TRY(make_directory(config.appliance.state_dir));
  HOLDFAST_TRY(make_directory(spool_directory(config)));
  Custody custody;
  auto files = open_posix_file_system(spool_directory(config));
  if (!files) return files.error();
  custody.files = std::move(*files);
  SpoolOptions options = config.spool;
  options.helpers = helpers_of_this_machine();
  options.removers = kRemovers;
  for (const SourceConfig& source : config.sources) options.source_streams.push_back(source.stream);
  auto spool = Spool::open(*custody.files, system_clock(), options, key);
  if (!spool) return Error{spool.error().kind, spool_directory(config) + ": " + spool.error().text};
  custody.spool = std::move(*spool);

  auto targets = number_targets(config, *custody.spool);
  if (!targets) return targets.error();
  custody.targets = std::move(*targets);
  custody.spool->set_active_targets(custody.targets);
  auto router = number_routes(config, custody.targets, *custody.spool);
  if (!router) return router.error();
  custody.router = std::move(*router);
  return custody;
}

}  // namespace holdfast
