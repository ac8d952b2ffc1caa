#include "appliance/watch.h"

namespace holdfast {

Watch::Changes Watch::look(Nanoseconds now, const std::vector<Attention>& attentions) {
  Changes changes;
  for (auto& [name, known] : known_) known.still = false;
  for (const Attention& one : attentions) {
    const auto [place, fresh] = known_.try_emplace({one.code, one.about});
    Known& known = place->second;
    if (fresh) known.since = now;
    known.attention = one;
    known.still = true;
    if (known.told || now - known.since < kWorthALine) continue;
    known.told = true;
    changes.began.push_back(one);
  }
  for (auto place = known_.begin(); place != known_.end();) {
    if (place->second.still) {
      ++place;
      continue;
    }
    if (place->second.told) changes.ended.push_back(place->second.attention);
    place = known_.erase(place);
  }
  return changes;
}

}  // namespace holdfast
