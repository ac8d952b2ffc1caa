#include "tests/identity/fault.h"

#include <signal.h>

#include <array>
#include <filesystem>

#include "tests/support/patience.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMany = 30;  // messages of a fault: several commits, and little time

// Every acknowledgement of the first pass is lost; the server hands everything out again.
Aftermath lose_acks(Stage& stage) {
  stage.relay.drop_acks(true);
  stage.tell_new_events(kMany);
  stage.box.start();
  stage.soon("every acknowledgement lost", [&] { return stage.relay.counts().acks_dropped >= kMany; });
  stage.relay.drop_acks(false);
  return {.repeats = kMany};
}

// Killed when its machine has the messages and it has committed none of them: it is stopped before they come.
Aftermath kill_before_commit(Stage& stage) {
  stage.box.start();
  stage.tell_new_events(1);
  stage.soon_at_rest();  // it has asked for more
  stage.keep_counts();
  stage.box.freeze();
  stage.tell_new_events(kMany - 1);
  stage.soon("everything delivered to it", [&] {
    return stage.relay.counts().delivered >= kMany &&
           JetStreamClient(stage.edge.url()).consumer(kEdge, kConsumer)->delivered_sequence == kMany;
  });
  stage.box.kill9();
  stage.relay.cut();
  stage.box.start();
  return {.may_send_again = true};
}

// Killed when it has committed everything and none of its acknowledgements has reached the server.
Aftermath kill_after_commit(Stage& stage) {
  stage.relay.hold_at_ack();
  stage.tell_new_events(kMany);
  stage.box.start();
  stage.soon("everything committed, and an acknowledgement on its way",
             [&] { return stage.relay.holding() && stage.taken() == kMany; });
  stage.kill9();
  stage.relay.cut();
  stage.box.start();
  return {.repeats = kMany, .may_send_again = true};
}

// The consumer is deleted while the program is away; the new one begins at the beginning.
Aftermath redeliver_all(Stage& stage) {
  stage.tell_new_events(kMany);
  stage.box.start();
  stage.soon_at_rest();
  stage.terminate();
  JetStreamClient(stage.edge.url()).delete_consumer(kEdge, kConsumer);
  stage.box.start();
  return {.repeats = kMany};
}

// Other messages get the same sequence numbers, under the program's eyes.
Aftermath recreate_stream(Stage& stage) {
  stage.tell_new_events(kMany);
  stage.box.start();
  stage.soon_at_rest();
  JetStreamClient(stage.edge.url()).delete_stream(kEdge);
  stage.make_edge_stream();
  stage.tell_new_events(kMany);
  return {};
}

// The messages of the edge server's stream as they were some time ago, its consumer as it is now: what a power cut
// leaves, for the server syncs its store every two minutes.
Aftermath roll_back_store(Stage& stage) {
  constexpr std::uint64_t kLost = kMany / 2;
  const std::string messages = stage.edge.store() + "/jetstream/$G/streams/EDGE/msgs";
  const std::string copy = stage.box.directory() + "/older";
  stage.tell_new_events(kMany);
  stage.box.start();
  stage.soon_at_rest();
  stage.edge.stop();
  fs::copy(messages, copy, fs::copy_options::recursive);
  stage.edge.start();
  stage.tell_new_events(kLost);
  stage.soon_at_rest();

  stage.box.freeze();  // so that the new ones are there before it looks
  stage.edge.stop();
  fs::remove_all(messages);
  fs::copy(copy, messages, fs::copy_options::recursive);
  stage.edge.start();
  stage.tell_new_events(kLost / 2);
  stage.soon("the consumer is ahead of its stream", [&] {
    JetStreamClient client(stage.edge.url());
    return client.consumer(kEdge, kConsumer)->delivered_sequence > client.stream(kEdge).last_sequence;
  });
  stage.box.thaw();
  return {.possible_repeats = kMany};
}

// One event told twice: some at once, some when the first has long left.
template <typename Change>
void tell_twice(Stage& stage, Change change) {
  const auto again = [&](Told told) {
    change(told);
    stage.tell(std::move(told));
  };
  for (std::uint64_t i = 0; i < kMany / 2; ++i) {
    const Told told = stage.new_event();
    stage.tell(told);
    again(told);
  }
  std::vector<Told> first;
  for (std::uint64_t i = 0; i < kMany / 2; ++i) {
    first.push_back(stage.new_event());
    stage.tell(first.back());
  }
  stage.box.start();
  stage.soon_at_rest();
  for (const Told& told : first) again(told);
}

Aftermath same_id_different_content(Stage& stage) {
  tell_twice(stage, [](Told& told) { told.words += ", in other words"; });
  return {};
}

Aftermath same_content_different_id(Stage& stage) {
  tell_twice(stage, [](Told& told) { told.id += "-again"; });
  return {};
}

constexpr std::array kFaults = {
    Fault{"lost_ack", lose_acks},
    Fault{"kill_before_commit", kill_before_commit},
    Fault{"kill_after_commit", kill_after_commit},
    Fault{"redelivery_of_all", redeliver_all},
    Fault{"stream_recreated", recreate_stream},
    Fault{"store_rolled_back", roll_back_store},
    Fault{"same_id_different_content", same_id_different_content},
    Fault{"same_content_different_id", same_content_different_id},
};

}  // namespace

std::span<const Fault> faults() {
  return kFaults;
}

}  // namespace holdfast
