// What targets have said of records, or we have found, and the disk does not know yet. A cut takes it, which costs a
// duplicate delivery and nothing else. Bounded, but for settlements: there settle() waits for housekeeping.
// Threads: the spool holds its state lock.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "spool/clock.h"
#include "spool/done_list.h"
#include "spool/journal_custody.h"

namespace holdfast {

// A record that is to be set aside.
struct Rejection {
  Sequence sequence = 0;
  RecordId id;
  TargetNumber target{};  // 0: found by the spool itself
  Reason reason = Reason::none;
  std::string words;
  bool begun = false;  // its file in quarantine may be there
};

class Unwritten {
 public:
  explicit Unwritten(JournalCustody& custody) : custody_(custody) {}

  std::size_t settlements() const { return done_.size() + filed_.size(); }

  // Of a record in the journal: they go into a `done` frame.
  void add_done(const TargetSettlement& settlement, Nanoseconds now);
  std::size_t done() const { return done_.size(); }
  bool done_is_due(Nanoseconds now) const;
  std::vector<TargetSettlement> take_done() { return std::exchange(done_, {}); }

  // Of a record in a file: the index decides; until it has, the record is not due for this target.
  void add_filed(const TargetSettlement& settlement);
  bool is_filed(const TargetSettlement& settlement) const;
  std::vector<TargetSettlement> take_filed(std::size_t limit);
  void put_back_filed(const std::vector<TargetSettlement>& settlements);
  void filed_is_written(const std::vector<TargetSettlement>& settlements);

  // Settled or rejected, and not due, whatever the index says.
  bool hides(Sequence sequence, TargetNumber target) const { return hidden_.contains({sequence, target}); }
  void show(Sequence sequence);

  // False: there are too many. On a disk that is full for long they only grow: those above the bound are asked for, or
  // found, again.
  bool reject(Rejection rejection);
  // The same, and it is not due for that target meanwhile.
  void reject(Rejection rejection, TargetNumber hidden_from);
  bool is_rejected(Sequence sequence) const;
  std::optional<Rejection> take_rejection();
  void put_back(Rejection rejection) { rejections_.push_front(std::move(rejection)); }
  // It has waited for another's word, and need not any more.
  void add_waited(const Rejection& rejection) { rejections_.push_back(rejection); }

  // Rejected, while another required target still waits. Where too many wait for another target's word, the target is
  // asked again once some of them have left.
  void remember(const Rejection& rejection);
  const Rejection* remembered(Sequence sequence, TargetNumber target) const;
  void forget(Sequence sequence);
  void ask_for_forgotten();

 private:
  using Word = std::pair<Sequence, TargetNumber>;

  JournalCustody& custody_;
  std::vector<TargetSettlement> done_;
  Nanoseconds done_since_{0};
  std::deque<TargetSettlement> filed_;
  std::set<Word> hidden_;
  std::deque<Rejection> rejections_;
  std::map<Word, Rejection> remembered_;
  bool forgotten_ = false;  // there were more than may be remembered
};

}  // namespace holdfast
