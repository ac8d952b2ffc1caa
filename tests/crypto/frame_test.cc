// Frames: what was sealed comes back whole, and anything else is refused: any bit, any length, any other key.
#include "crypto/frame.h"

#include <gtest/gtest.h>

#include <set>

namespace holdfast {
namespace {

const bool kReady = init_crypto();

// One spool's keys, and every way to make a frame with them.
struct FrameTest : ::testing::Test {
  SecretKey naming_key = SecretKey::random();
  SecretKey data_key = SecretKey::random();
  Namer namer{naming_key};

  static FrameHeader header(FrameKind kind = FrameKind::put) {
    FrameHeader h;
    h.kind = kind;
    h.clock_trusted = true;
    h.data_key_id = kind == FrameKind::done ? 0 : 3;
    h.sequence = 0x1122334455667788;
    h.accepted_wall_ns = -5;
    h.accepted_mono_ns = 77;
    h.boot = 8;
    h.route = 9;
    h.priority = 6;
    h.id.bytes.fill(0xab);
    h.content.bytes.fill(0xcd);
    return h;
  }
  Bytes sealed(ByteView body, FrameKind kind = FrameKind::put) const {
    FrameHeader h = header(kind);
    Bytes out;
    seal_frame(h, body, data_key, namer, out);
    return out;
  }
  Bytes done(ByteView body) const {
    FrameHeader h = header(FrameKind::done);
    Bytes out;
    write_done_frame(h, body, namer, out);
    return out;
  }
  // "" when the frame is taken whole, as a record file is.
  std::string verdict(ByteView frame, const SecretKey& key, const Namer& with) const {
    const Parsed<FrameHeader> h = read_header(frame, with);
    if (!h) return reject_text(h.reject());
    const Parsed<ByteView> body = read_body_alone(*h, frame, with);
    if (!body) return reject_text(body.reject());
    if (h->data_key_id == 0) return "";
    const Parsed<Bytes> opened = open_frame(*h, frame, key, with);
    return opened ? "" : reject_text(opened.reject());
  }
  std::string verdict(ByteView frame) const { return verdict(frame, data_key, namer); }
};

TEST_F(FrameTest, Sealed_OpensToTheSameBytes_AtEverySize) {
  ASSERT_TRUE(kReady);
  for (std::size_t size : {0, 1, 15, 16, 17, 63, 64, 65, 127, 1000, 1024, 4096, 65537, 1 << 20}) {
    Bytes body(size);
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<std::uint8_t>(i * 7);
    for (FrameKind kind : {FrameKind::put, FrameKind::note}) {
      const Bytes frame = sealed(body, kind);
      ASSERT_EQ(frame.size(), kFrameHeaderSize + size + kFrameTagSize);
      const Parsed<FrameHeader> h = read_header(frame, namer);
      ASSERT_TRUE(h);
      EXPECT_EQ(h->kind, kind);
      const Parsed<Bytes> opened = open_frame(*h, frame, data_key, namer);
      ASSERT_TRUE(opened);
      EXPECT_TRUE(*opened == body) << size;
    }
  }
}

TEST_F(FrameTest, Header_ReadsBackAsTheWriterLeftIt) {
  FrameHeader written = header();
  Bytes out;
  seal_frame(written, as_bytes("body"), data_key, namer, out);
  const Parsed<FrameHeader> read = read_header(out, namer);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->clock_trusted);
  EXPECT_EQ(read->body_size, 4 + kFrameTagSize);
  EXPECT_EQ(read->body_size, written.body_size);
  EXPECT_EQ(read->data_key_id, 3u);
  EXPECT_EQ(read->sequence, written.sequence);
  EXPECT_EQ(read->accepted_wall_ns, -5);
  EXPECT_EQ(read->accepted_mono_ns, 77u);
  EXPECT_EQ(read->boot, 8u);
  EXPECT_EQ(read->route, 9u);
  EXPECT_EQ(read->priority, 6);
  EXPECT_EQ(read->id, written.id);
  EXPECT_EQ(read->content, written.content);
  EXPECT_EQ(read->nonce, written.nonce);
  EXPECT_EQ(read->body_crc, written.body_crc);
  EXPECT_EQ(read->body_crc, crc32c(ByteView(out).subspan(kFrameHeaderSize)));
}

TEST_F(FrameTest, Frames_FollowOneAnotherInOneBuffer) {
  Bytes out = {1, 2, 3};
  std::vector<std::size_t> starts;
  for (int i = 0; i < 20; ++i) {
    FrameHeader h = header();
    h.sequence = static_cast<std::uint64_t>(i);
    starts.push_back(out.size());
    seal_frame(h, Bytes(static_cast<std::size_t>(i), 5), data_key, namer, out);
  }
  EXPECT_EQ(Bytes(out.begin(), out.begin() + 3), (Bytes{1, 2, 3}));
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const ByteView from = ByteView(out).subspan(starts[i]);
    const Parsed<FrameHeader> h = read_header(from, namer);
    ASSERT_TRUE(h);
    EXPECT_EQ(h->sequence, i);
    const Parsed<Bytes> opened = open_frame(*h, from, data_key, namer);
    ASSERT_TRUE(opened);
    EXPECT_EQ(*opened, Bytes(i, 5));
  }
}

TEST_F(FrameTest, Done_GivesItsBodyBack) {
  for (std::size_t size : {0, 1, 17, 5000}) {
    const Bytes body(size, 9);
    const Bytes frame = done(body);
    const Parsed<FrameHeader> h = read_header(frame, namer);
    ASSERT_TRUE(h);
    EXPECT_EQ(h->kind, FrameKind::done);
    EXPECT_EQ(h->data_key_id, 0u);
    EXPECT_EQ(h->content.bytes, namer.body_mac(body).bytes);
    const Parsed<ByteView> read = read_body(*h, frame, namer);
    ASSERT_TRUE(read);
    EXPECT_TRUE(std::equal(read->begin(), read->end(), body.begin(), body.end()));
    EXPECT_EQ(open_frame(*h, frame, data_key, namer).reject(), Reject::wrong_data_key);
  }
}

TEST_F(FrameTest, FlipOfAnyBit_IsRefused) {
  for (const Bytes& good : {sealed(as_bytes("a body of some length")), sealed({}), sealed({}, FrameKind::note),
                            done(Bytes(17, 3)), done({})}) {
    ASSERT_EQ(verdict(good), "");
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
      EXPECT_NE(verdict(bad), "") << bit;
    }
  }
}

TEST_F(FrameTest, TruncatedAnywhere_IsRefused_AndLongerOnlyAlone) {
  for (const Bytes& good : {sealed(as_bytes("a body")), done(Bytes(17, 3))}) {
    for (std::size_t size = 0; size < good.size(); ++size) {
      const std::string expected = size < kFrameHeaderSize ? "short_header" : "short_body";
      EXPECT_EQ(verdict(ByteView(good).first(size)), expected) << size;
    }
    Bytes longer = good;
    longer.push_back(0);
    EXPECT_EQ(verdict(longer), "trailing_bytes");
    EXPECT_TRUE(read_body(*read_header(longer, namer), longer, namer)) << "in a journal a frame is followed by others";
  }
}

TEST_F(FrameTest, ShorterThanAHeaderAtTheBody_IsRefused) {
  const Bytes frame = sealed(as_bytes("a body"));
  const Parsed<FrameHeader> h = read_header(frame, namer);
  ASSERT_TRUE(h);
  const ByteView cut = ByteView(frame).first(100);
  EXPECT_EQ(read_body(*h, cut, namer).reject(), Reject::short_header);
  EXPECT_EQ(open_frame(*h, cut, data_key, namer).reject(), Reject::short_header);
}

TEST_F(FrameTest, HeaderMadeByHand_WithoutRoomForATag_IsRefused) {
  const Bytes frame = done(Bytes(15));
  FrameHeader h = *read_header(frame, namer);
  h.kind = FrameKind::put;
  h.data_key_id = 3;
  EXPECT_EQ(open_frame(h, frame, data_key, namer).reject(), Reject::bad_size);
}

TEST_F(FrameTest, AnotherKey_OpensNothing) {
  const Bytes frame = sealed(as_bytes("a body"));
  EXPECT_EQ(verdict(frame, SecretKey::random(), namer), "bad_seal");
  EXPECT_EQ(verdict(frame, naming_key, namer), "bad_seal");
  EXPECT_EQ(verdict(frame, data_key, Namer(SecretKey::random())), "bad_header_mac");
  EXPECT_EQ(verdict(done({}), data_key, Namer(SecretKey::random())), "bad_header_mac");
}

TEST_F(FrameTest, BodyOfOneUnderTheHeaderOfAnother_IsRefused) {
  const Bytes a = sealed(as_bytes("body of a")), b = sealed(as_bytes("body of b"));
  Bytes mixed(a.begin(), a.begin() + kFrameHeaderSize);
  mixed.insert(mixed.end(), b.begin() + kFrameHeaderSize, b.end());
  EXPECT_EQ(verdict(mixed), "bad_crc");
  // And past the CRC, whose owner need not hold the key: the AEAD has the last word.
  FrameHeader h = *read_header(a, namer);
  h.body_crc = crc32c(ByteView(b).subspan(kFrameHeaderSize));
  EXPECT_EQ(open_frame(h, mixed, data_key, namer).reject(), Reject::bad_seal);
}

TEST_F(FrameTest, SameBodySealedTwice_LooksDifferent) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const Bytes frame = sealed(as_bytes("the same body"));
    seen.insert(to_hex(ByteView(frame).subspan(kFrameHeaderSize)));
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST_F(FrameTest, NothingOfTheBodyIsInTheFrame) {
  const std::string secret = "telemetry.gps 59.91 10.75";
  EXPECT_EQ(as_text(sealed(as_bytes(secret))).find(secret.substr(0, 6)), std::string_view::npos);
}

TEST(Reject, EveryOneHasAName) {
  std::set<std::string> names;
  for (int reject = 0; reject <= static_cast<int>(Reject::bad_seal); ++reject)
    names.insert(reject_text(static_cast<Reject>(reject)));
  EXPECT_EQ(names.size(), 15u);
  EXPECT_FALSE(names.contains("unknown_reject"));
}

using FrameDeathTest = FrameTest;

TEST_F(FrameDeathTest, HeadersThatCannotBe_AreBugs) {
  Bytes out;
  FrameHeader h = header(FrameKind::done);
  EXPECT_DEATH(seal_frame(h, {}, data_key, namer, out), "only a put or a note");
  h = header();
  h.data_key_id = 0;
  EXPECT_DEATH(seal_frame(h, {}, data_key, namer, out), "names its data key");
  h = header();
  h.priority = 10;
  EXPECT_DEATH(seal_frame(h, {}, data_key, namer, out), "priority");
  h = header(FrameKind::note);
  EXPECT_DEATH(write_done_frame(h, {}, namer, out), "not the header of a done");
  h = header();
  const ByteView huge(out.data(), std::size_t{kMaxFrameBody} - kFrameTagSize + 1);  // refused before it is looked at
  EXPECT_DEATH(seal_frame(h, huge, data_key, namer, out), "over the limit");
}

// A header by hand, so that the limit can be tested without a body of that size.
TEST_F(FrameTest, BodySize_UpToTheLimitAndNoFurther) {
  Bytes frame = sealed({});
  for (std::uint32_t size : {kMaxFrameBody, kMaxFrameBody + 1}) {
    store_le(frame.data() + 8, size);
    const Mac mac = namer.header_mac(ByteView(frame).first(128));
    std::copy(mac.bytes.begin(), mac.bytes.end(), frame.begin() + 128);
    EXPECT_EQ(verdict(frame), size == kMaxFrameBody ? "short_body" : "bad_size");
  }
}

}  // namespace
}  // namespace holdfast
