// Makes the vectors of crypto/vectors/ from crypto/FORMAT.md alone: libsodium's primitives, fixed keys and nonces, and
// nothing of crypto/. The nonces are fixed because these are vectors; a writer draws them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/crypto/primitives.h"
#include "tests/crypto/vectors.h"

namespace vector_maker {

using primitives::aead_seal;
using primitives::crc;
using primitives::derive;
using primitives::hash;
using primitives::join;
using primitives::little_endian;
using primitives::part;
using primitives::poly1305_of_hchacha;
using primitives::siphash;
using vectors::blob;
using vectors::Blob;
using vectors::Vector;

// `size` bytes that look like nothing and are the same every time.
inline Blob fixed(const std::string& name, std::size_t size) {
  Blob bytes = hash({}, size < 16 ? 16 : size, blob("holdfast test vector " + name));
  bytes.resize(size);
  return bytes;
}

inline const Blob kNamingKey = fixed("naming key", 32);
inline const Blob kDataKey = fixed("data key", 32);
inline const Blob kOtherKey = fixed("other key", 32);
inline const Blob kRecipient = fixed("recipient", 32);
inline const Blob kPrivateKey = fixed("private key", 32);

// A frame as FORMAT.md's table has it. build() fills in what depends on the rest, and `after` may then spoil bytes
// before the CRC and the MAC are made, so that a spoilt frame gets past them.
struct Frame {
  Blob magic = blob("HFR1");
  std::uint8_t version = 1, kind = 1;
  std::uint16_t flags = 1;
  std::uint32_t data_key_id = 7;
  std::uint64_t sequence = 0x0000000500000003;
  std::int64_t wall = 1'700'000'000'123'456'789;
  std::uint64_t mono = 86'400'000'000'000;
  std::uint32_t boot = 12, route = 2;
  std::uint8_t priority = 5;
  Blob reserved = Blob(3);
  Blob id = hash(derive(kNamingKey, "holdfast/1 record id"), 32, blob("msg:order-4711"));
  Blob content = fixed("content digest", 16);
  Blob nonce = fixed("frame nonce", 24);
  Blob plain = blob("what is sealed");
  Blob data_key = kDataKey;
  std::size_t associated_size = 124;
  std::function<void(Blob& header, Blob& body)> after;
  std::uint32_t crc_flip = 0;
  Blob mac_key = derive(kNamingKey, "holdfast/1 frame header");

  bool is_sealed() const { return kind != 2; }

  Blob build() const {
    Blob body = is_sealed() ? Blob(plain.size() + 16) : plain;
    Blob header = join({magic,
                        {version, kind},
                        little_endian(flags, 2),
                        little_endian(body.size(), 4),
                        little_endian(data_key_id, 4),
                        little_endian(sequence, 8),
                        little_endian(static_cast<std::uint64_t>(wall), 8),
                        little_endian(mono, 8),
                        little_endian(boot, 4),
                        little_endian(route, 4),
                        {priority},
                        reserved,
                        id,
                        content,
                        nonce});
    if (is_sealed()) body = aead_seal(data_key, nonce, part(header, 0, associated_size), plain);
    if (after) after(header, body);
    header = join({header, little_endian(crc(body) ^ crc_flip, 4)});
    return join({header, siphash(mac_key, header), body});
  }
};

inline Frame done_frame(const Blob& body) {
  Frame frame;
  frame.kind = 2;
  frame.data_key_id = 0;
  frame.nonce = Blob(24);
  frame.plain = body;
  frame.content = hash(derive(kNamingKey, "holdfast/1 done body"), 16, body);
  return frame;
}

inline Blob done_group(std::uint8_t reason, std::uint32_t target, const std::vector<std::uint64_t>& sequences) {
  Blob group = join({{reason}, little_endian(target, 4), little_endian(sequences.size(), 4)});
  for (std::uint64_t sequence : sequences) group = join({group, little_endian(sequence, 8)});
  return group;
}

inline Vector good_frame(const std::string& what, const Frame& frame) {
  Vector vector(what);
  vector.bytes("naming_key", kNamingKey).bytes("data_key", kDataKey);
  vector.bytes("kind", {frame.kind}).bytes("flags", little_endian(frame.flags, 2));
  vector.bytes("data_key_id", little_endian(frame.data_key_id, 4));
  vector.bytes("sequence", little_endian(frame.sequence, 8));
  vector.bytes("accepted_wall", little_endian(static_cast<std::uint64_t>(frame.wall), 8));
  vector.bytes("accepted_mono", little_endian(frame.mono, 8));
  vector.bytes("boot", little_endian(frame.boot, 4)).bytes("route", little_endian(frame.route, 4));
  vector.bytes("priority", {frame.priority}).bytes("record_id", frame.id);
  vector.bytes("content", frame.content).bytes("nonce", frame.nonce);
  return vector.bytes("frame", frame.build()).bytes("body", frame.plain);
}

inline Vector bad_bytes(const std::string& what, const std::string& reject, const Blob& bytes) {
  Vector vector(what);
  vector.word("reject", reject).bytes("naming_key", kNamingKey).bytes("data_key", kDataKey);
  return vector.bytes("frame", bytes);
}

inline Vector bad_frame(const std::string& what, const std::string& reject, Frame frame,
                        const std::function<void(Frame&)>& spoil) {
  spoil(frame);
  return bad_bytes(what, reject, frame.build());
}

inline std::vector<Vector> good_frames() {
  std::vector<Vector> all;
  all.push_back(good_frame("a put", Frame{}));
  Frame frame;
  frame.plain = {};
  all.push_back(good_frame("a put whose body is empty: the tag alone", frame));
  frame = Frame{};
  frame.flags = 0;
  frame.data_key_id = 0xffffffff;
  frame.sequence = 0xffffffffffffffff;
  frame.wall = -1;
  frame.mono = 0xfffffffffffffffe;
  frame.boot = 0xfffffffd;
  frame.route = 0xfffffffc;
  frame.priority = 9;
  all.push_back(good_frame("a put with every number at its end, accepted before 1970 by an untrusted clock", frame));
  frame = Frame{};
  frame.priority = 0;
  frame.plain = fixed("long body", 64);
  for (int i = 0; i < 4; ++i) frame.plain = join({frame.plain, frame.plain});
  all.push_back(good_frame("a put of 1024 bytes, first in order", frame));
  all.push_back(
      good_frame("a done: two sequences delivered to target 1, one record expired",
                 done_frame(join({done_group(1, 1, {0x500000001, 0x500000002}), done_group(3, 0, {0x500000004})}))));
  all.push_back(good_frame("a done without groups", done_frame({})));
  frame = Frame{};
  frame.kind = 3;
  frame.plain = blob("a note");
  all.push_back(good_frame("a note", frame));
  return all;
}

inline void add_frames_of_bad_layout(std::vector<Vector>& all) {
  const Frame put;
  const Frame done = done_frame(done_group(1, 1, {3}));
  Frame note;
  note.kind = 3;
  const auto add = [&](const char* what, const char* reject, const Frame& frame,
                       const std::function<void(Frame&)>& spoil) {
    all.push_back(bad_frame(what, reject, frame, spoil));
  };
  // Sizes are spoilt after sealing, so that the MAC is right all the same.
  const auto size = [](std::uint32_t value) {
    return [value](Frame& f) {
      f.after = [value](Blob& header, Blob&) {
        for (std::size_t i = 0; i < 4; ++i) header[8 + i] = little_endian(value, 4)[i];
      };
    };
  };
  all.push_back(bad_bytes("nothing", "short_header", {}));
  all.push_back(bad_bytes("a header short of its last byte", "short_header", part(put.build(), 0, 143)));
  add("another magic", "bad_magic", put, [](Frame& f) { f.magic = blob("HFR2"); });
  add("zeros", "bad_magic", put, [](Frame& f) { f.magic = Blob(4); });
  add("version 0", "unknown_version", put, [](Frame& f) { f.version = 0; });
  add("version 2", "unknown_version", put, [](Frame& f) { f.version = 2; });
  add("kind 0", "unknown_kind", put, [](Frame& f) { f.kind = 0; });
  add("kind 4", "unknown_kind", put, [](Frame& f) { f.kind = 4; });
  add("flag bit 1", "unknown_flags", put, [](Frame& f) { f.flags = 3; });
  add("flag bit 2", "unknown_flags", put, [](Frame& f) { f.flags = 5; });
  add("flag bit 15", "unknown_flags", put, [](Frame& f) { f.flags = 0x8001; });
  add("the first reserved byte", "reserved_not_zero", put, [](Frame& f) { f.reserved[0] = 1; });
  add("the last reserved byte", "reserved_not_zero", put, [](Frame& f) { f.reserved[2] = 0x80; });
  add("a done with a nonce", "reserved_not_zero", done, [](Frame& f) { f.nonce[23] = 1; });
  add("priority 10", "bad_priority", put, [](Frame& f) { f.priority = 10; });
  add("priority 255", "bad_priority", put, [](Frame& f) { f.priority = 255; });
  add("a put without room for the tag", "bad_size", put, size(15));
  add("a put of size 0", "bad_size", put, size(0));
  add("a note without room for the tag", "bad_size", note, size(15));
  add("a put over 256 MiB", "bad_size", put, size(0x10000001));
  add("a done over 256 MiB", "bad_size", done, size(0x10000001));
  add("a put as large as u32 can say", "bad_size", put, size(0xffffffff));
}

inline void add_frames_of_bad_seal(std::vector<Vector>& all) {
  const Frame put;
  const Frame done = done_frame(done_group(1, 1, {3}));
  const auto add = [&](const char* what, const char* reject, const Frame& frame,
                       const std::function<void(Frame&)>& spoil) {
    all.push_back(bad_frame(what, reject, frame, spoil));
  };
  const auto in_header = [](std::size_t at) {
    return [at](Frame& f) { f.after = [at](Blob& header, Blob&) { header[at] ^= 1; }; };
  };
  Blob flipped = put.build();
  flipped[143] ^= 1;
  all.push_back(bad_bytes("one bit of the MAC", "bad_header_mac", flipped));
  flipped = put.build();
  flipped[16] ^= 1;
  all.push_back(bad_bytes("one bit of the sequence", "bad_header_mac", flipped));
  add("the MAC of another spool", "bad_header_mac", put,
      [](Frame& f) { f.mac_key = derive(kOtherKey, "holdfast/1 frame header"); });
  add("the MAC of another purpose", "bad_header_mac", put,
      [](Frame& f) { f.mac_key = derive(kNamingKey, "holdfast/1 batch header"); });
  add("a put sealed with data key 0", "wrong_data_key", put, [](Frame& f) { f.data_key_id = 0; });
  add("a done with a data key", "wrong_data_key", done, [](Frame& f) { f.data_key_id = 7; });

  all.push_back(bad_bytes("a header alone", "short_body", part(put.build(), 0, 144)));
  all.push_back(bad_bytes("a put short of its last byte", "short_body", part(put.build(), 0, put.build().size() - 1)));
  all.push_back(bad_bytes("a put and one byte", "trailing_bytes", join({put.build(), {0}})));
  flipped = put.build();
  flipped.back() ^= 0x80;
  all.push_back(bad_bytes("one bit of the sealed body", "bad_crc", flipped));
  flipped = done.build();
  flipped[144] ^= 1;
  all.push_back(bad_bytes("one bit of a done's body", "bad_crc", flipped));
  add("a CRC that is not the body's", "bad_crc", put, [](Frame& f) { f.crc_flip = 0x80000000; });
  add("a done whose body is not what its MAC says", "bad_body_mac", done, [](Frame& f) { f.plain[9] ^= 1; });
  add("a done with a content digest where its MAC belongs", "bad_body_mac", done,
      [](Frame& f) { f.content = fixed("content digest", 16); });

  add("sealed with another data key", "bad_seal", put, [](Frame& f) { f.data_key = kOtherKey; });
  add("sealed with the naming key", "bad_seal", put, [](Frame& f) { f.data_key = kNamingKey; });
  add("the first byte of the body, CRC and MAC made good", "bad_seal", put,
      [](Frame& f) { f.after = [](Blob&, Blob& body) { body.front() ^= 1; }; });
  add("the last byte of the tag, CRC and MAC made good", "bad_seal", put,
      [](Frame& f) { f.after = [](Blob&, Blob& body) { body.back() ^= 1; }; });
  add("another sequence, MAC made good", "bad_seal", put, in_header(16));
  add("another record id, MAC made good", "bad_seal", put, in_header(52));
  add("another content digest, MAC made good", "bad_seal", put, in_header(99));
  add("another nonce, MAC made good", "bad_seal", put, in_header(123));
  add("a note that was sealed as a put", "bad_seal", put,
      [](Frame& f) { f.after = [](Blob& header, Blob&) { header[5] = 3; }; });
  add("associated data that ends before the nonce", "bad_seal", put, [](Frame& f) { f.associated_size = 100; });
  add("no associated data", "bad_seal", put, [](Frame& f) { f.associated_size = 0; });
}

inline std::vector<Vector> frames() {
  std::vector<Vector> all = good_frames();
  add_frames_of_bad_layout(all);
  add_frames_of_bad_seal(all);
  return all;
}

}  // namespace vector_maker
