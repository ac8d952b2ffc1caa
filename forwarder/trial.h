// What the checks of a certification stand on: records made for them, deliveries that are waited for and never for
// ever, and what the upstream holds afterwards.
//
// Threads: one, but for what a Delivering does meanwhile on its own.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "forwarder/bounded_call.h"
#include "forwarder/certification.h"

namespace holdfast {

using TrialRecord = std::shared_ptr<const DueRecord>;
using TrialBatch = std::vector<TrialRecord>;

struct Judgement {
  Proof verdict = Proof::unproven;
  std::string reason;
};

// One deliver(), as it ended.
struct Attempt {
  bool returned = true;        // false: only when it was interrupted, or not even then
  bool usable = true;          // false: the target is still in that call, and left behind with it
  bool broke_promise = false;  // a record was reported twice, or all is said to be well and one was not reported
  Result<void> result;
  std::vector<std::optional<Outcome>> outcomes;  // by place

  bool accepted(std::size_t place) const;
  bool rejected(std::size_t place) const;
  std::size_t count_accepted() const;
};

// A deliver() on a thread of its own.
class Delivering {
 public:
  Delivering(std::shared_ptr<Target> target, TrialBatch batch);
  const TrialBatch& batch() const;
  // A stop interrupts it, which is then no fault of the target.
  Attempt finish(Moment deadline, const std::stop_token& stop);

 private:
  struct Work;
  std::shared_ptr<Work> work_;
  std::optional<BoundedCall> call_;
};

// Records delivered as the forwarder does it: again under the same key, until they are taken or refused.
struct Carried {
  std::vector<bool> accepted;
  std::size_t duplicates = 0;  // of them, by the target's own word
  bool rejected = false;       // one was
  bool hung = false;           // a delivery did not return
  bool broke_promise = false;
  std::string why;   // why not all were accepted, in our words
  bool all() const;  // accepted, and nothing else is to be said
};

class Trial {
 public:
  Trial(CertifiedTarget target, const CertificationOptions& options);

  const CertifiedTarget& about() const { return target_; }
  const CertificationOptions& options() const { return options_; }

  // --- Records
  TrialRecord make_record(std::string_view check, std::size_t filler = 0, std::string_view text = {});
  TrialBatch make_records(std::string_view check, std::size_t count);
  const TrialBatch& made() const { return made_; }

  // --- Deliveries
  std::shared_ptr<Target> make_target(const std::string& connect_to = {}) const { return target_.make(connect_to); }
  Moment give_up() const;  // when a delivery that begins now is late
  // One that was begun: what it confirmed is remembered.
  Attempt finish(Delivering& delivering, Moment deadline);
  Attempt deliver(const std::shared_ptr<Target>& target, const TrialBatch& batch);
  Carried carry(const std::shared_ptr<Target>& target, const TrialBatch& batch);

  // Everything that was called delivered so far, each once.
  TrialBatch confirmed() const { return {confirmed_.begin(), confirmed_.end()}; }

  // --- What is there
  bool sees() const { return readback_ != nullptr; }
  void go_blind(const std::string& why);  // what it holds cannot be asked, for the whole of this trial
  Result<std::vector<Held>> look(const TrialBatch& batch);
  // Of records that were confirmed: `passed` with that reason when each is there once, as sent.
  Judgement judge(const TrialBatch& batch, const std::string& passed);
  Result<void> remove(const TrialBatch& batch);
  Nanoseconds seen_late() const { return seen_late_; }  // the longest that a confirmed record could not be seen

  // --- Time
  bool over() const;
  void pause(Nanoseconds time) const;  // or until stopped

 private:
  // What the read-back answers; nothing once it was late, for then it may still be at it.
  template <typename Answer>
  Result<Answer> ask(std::function<Result<Answer>()> question);
  Result<std::vector<Held>> look_until_there(const TrialBatch& batch);

  CertifiedTarget target_;
  std::shared_ptr<Readback> readback_;  // shared with a question that hangs
  bool readback_hangs_ = false;
  const CertificationOptions options_;
  const Moment end_;
  TrialBatch made_;
  std::set<TrialRecord> confirmed_;
  Nanoseconds seen_late_{0};
};

// Of what a carry did not bring about: failed, or unproven where the time was over.
Judgement judge_untaken(const Trial& trial, const Carried& carried);

}  // namespace holdfast
