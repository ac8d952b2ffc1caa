#include "spool/done_list.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::uint8_t kDelivered = 1;
constexpr std::size_t kGroupBytes = 1 + 4 + 4;

}  // namespace

void write_done_list(std::vector<TargetSettlement>& settlements, Bytes& out) {
  std::ranges::stable_sort(settlements, {}, &TargetSettlement::target);
  ByteWriter writer(out);
  for (std::size_t at = 0; at < settlements.size();) {
    const TargetNumber target = settlements[at].target;
    std::size_t end = at;
    while (end < settlements.size() && settlements[end].target == target) ++end;
    writer.u8(kDelivered);
    writer.u32(static_cast<std::uint32_t>(target));
    writer.u32(static_cast<std::uint32_t>(end - at));
    for (; at < end; ++at) writer.u64(settlements[at].sequence);
  }
}

std::size_t largest_done_list(std::size_t settlements) {
  return settlements * (kGroupBytes + sizeof(Sequence));
}

bool read_done_list(ByteView body, std::vector<TargetSettlement>& settlements) {
  ByteReader in(body);
  std::vector<TargetSettlement> read;
  while (in.good() && in.remaining() > 0) {
    const std::uint8_t what = in.u8();
    const auto target = static_cast<TargetNumber>(in.u32());
    const std::uint32_t count = in.u32();
    if (what != kDelivered || count > in.remaining() / sizeof(Sequence)) return false;
    for (std::uint32_t i = 0; i < count; ++i) read.push_back({target, in.u64()});
  }
  if (!in.done()) return false;
  settlements.insert(settlements.end(), read.begin(), read.end());
  return true;
}

}  // namespace holdfast
