// Any bytes as a frame, a batch header, a list of settlements. The keyed MACs would end almost every attempt at the
// door, so they are made right first: what lies behind them must hold too, against who has the key, and against our own
// mistakes.
#include <algorithm>

#include "crypto/frame.h"
#include "spool/batch.h"
#include "spool/check.h"
#include "spool/done_list.h"
#include "tests/fuzz/fuzz_case.h"

namespace holdfast {
namespace {

constexpr std::size_t kCrcAt = 124, kMacAt = 128, kContentAt = 84, kKindAt = 5;  // crypto/FORMAT.md, "Frame"

void make_authentic(Bytes& bytes, const Namer& namer) {
  const ByteView body = ByteView(bytes).subspan(kFrameHeaderSize);
  store_le(bytes.data() + kCrcAt, crc32c(body));
  if (bytes[kKindAt] == static_cast<std::uint8_t>(FrameKind::done)) {
    const Mac mac = namer.body_mac(body);
    std::copy(mac.bytes.begin(), mac.bytes.end(), bytes.begin() + kContentAt);
  }
  const Mac mac = namer.header_mac(ByteView(bytes).first(kMacAt));
  std::copy(mac.bytes.begin(), mac.bytes.end(), bytes.begin() + kMacAt);
}

void read_frame(ByteView bytes, const Namer& namer, const SecretKey& key) {
  const auto header = read_header(bytes, namer);
  if (!header) return;
  CHECK(header->body_size <= kMaxFrameBody);
  const auto body = read_body(*header, bytes, namer);
  if (body) CHECK(body->size() == header->body_size && kFrameHeaderSize + body->size() <= bytes.size());
  const auto alone = read_body_alone(*header, bytes, namer);
  if (alone) CHECK(body && kFrameHeaderSize + alone->size() == bytes.size());
  const auto opened = open_frame(*header, bytes, key, namer);
  if (opened) CHECK(opened->size() + kFrameTagSize == header->body_size);
  if (body && header->kind == FrameKind::done) {
    std::vector<TargetSettlement> settlements;
    if (read_done_list(*body, settlements)) CHECK(largest_done_list(settlements.size()) >= body->size());
  }
}

// What is sealed under a header opens as it was, and with any one byte changed not at all.
void seal_and_open(const FrameHeader& from, ByteView body, const Namer& namer, const SecretKey& key) {
  if (from.kind == FrameKind::done) return;
  FrameHeader header = from;
  Bytes frame;
  seal_frame(header, body, key, namer, frame);
  const auto opened = open_frame(header, frame, key, namer);
  CHECK(opened && std::equal(opened->begin(), opened->end(), body.begin(), body.end()));
  const std::size_t at = from.sequence % frame.size();
  frame[at] = static_cast<std::uint8_t>(frame[at] ^ (1 + from.boot % 255));
  const auto altered = read_header(frame, namer);
  CHECK(!altered || !open_frame(*altered, frame, key, namer));
}

void read_batch(ByteView bytes, const Namer& namer) {
  if (bytes.size() < kBatchHeaderSize) return;
  const auto header = read_batch_header(bytes, namer);
  if (!header) return;
  CHECK(header->extent() % kBlock == 0 && header->extent() > 0);
}

}  // namespace
}  // namespace holdfast

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  static const bool ready = init_crypto();
  CHECK(ready);
  static constexpr std::array<std::uint8_t, SecretKey::kSize> kBytes = {1, 2, 3};
  static const SecretKey key = SecretKey::copy_of(kBytes);
  static const Namer namer(key);
  Bytes bytes(data, data + size);
  read_frame(bytes, namer, key);
  read_batch(bytes, namer);
  if (bytes.size() < kFrameHeaderSize) return 0;
  make_authentic(bytes, namer);
  read_frame(bytes, namer, key);
  if (const auto header = read_header(bytes, namer))
    seal_and_open(*header, ByteView(bytes).subspan(kFrameHeaderSize), namer, key);
  return 0;
}
