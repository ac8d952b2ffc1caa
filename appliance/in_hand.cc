#include "appliance/in_hand.h"

namespace holdfast {

void InHand::add(std::uint64_t sequence, std::string reply, Moment now) {
  messages_[sequence] = {std::move(reply), now};
}

std::vector<std::string> InHand::due(Nanoseconds age, Moment now) {
  std::vector<std::string> replies;
  for (auto& [sequence, message] : messages_) {
    if (now - message.told_at < age) continue;
    replies.push_back(message.reply);
    message.told_at = now;
  }
  return replies;
}

}  // namespace holdfast
