// Who puts at the same time shares a commit, its sync and its fate: one of them leads, for all who came until then.
// Threads: any; nothing else is locked while it locks.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "spool/commit_request.h"

namespace holdfast {

class GroupCommit {
 public:
  // Returns when `mine` is done. `commit` fills in verdicts or error of each in a group; one group at a time.
  void join(CommitRequest& mine, const std::function<void(std::span<CommitRequest* const>)>& commit);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<CommitRequest*> waiting_;
  bool leading_ = false;
};

}  // namespace holdfast
