// The spool of this configuration, opened: the directory, the key, the lock, the targets and routes by number. What the
// service and a command that finds none running have in common.
#pragma once

#include <memory>
#include <vector>

#include "appliance/config.h"
#include "appliance/router.h"
#include "crypto/secret.h"
#include "spool/spool.h"

namespace holdfast {

struct Custody {
  std::unique_ptr<FileSystem> files;
  std::unique_ptr<Spool> spool;
  std::vector<TargetNumber> targets;  // as config.targets
  Router router{{}};
};

// Makes the directories when they are missing (0700). `unavailable`: another process holds the spool. Others as
// Spool::open.
Result<Custody> open_custody(const Config& config, const SecretKey& key);

}  // namespace holdfast
