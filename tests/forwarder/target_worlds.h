// The targets that the contract is asked of, each with the upstream behind it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "forwarder/target.h"

namespace holdfast {

// An upstream, and the way to it.
class TargetWorld {
 public:
  virtual ~TargetWorld() = default;
  // A target as a new process would have it; the upstream stays.
  virtual std::unique_ptr<Target> target() = 0;
  // What the upstream holds: payloads by wire key, once for each copy.
  virtual std::multimap<std::string, std::string> upstream() = 0;
  // Whether the target can tell other content under a key that it has.
  virtual bool tells_conflicts() const { return true; }
  // The upstream cannot be used until it is repaired.
  virtual void break_upstream() = 0;
  virtual void repair_upstream() = 0;
  // The next delivery hangs until it is interrupted, where the upstream can be made to do so.
  virtual bool hang(Target&) { return false; }
};

struct TargetCase {
  std::string name;
  std::function<std::unique_ptr<TargetWorld>()> make;
  std::function<std::string()> why_not = {};  // empty: it can be made on this machine
};
std::vector<TargetCase> all_targets();

}  // namespace holdfast
