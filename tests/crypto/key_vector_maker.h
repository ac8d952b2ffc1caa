// The vectors of keys, digests and whole record files; see vector_maker.h, of which this is the other half.
#pragma once

#include "tests/crypto/vector_maker.h"

namespace vector_maker {

inline Blob key_id(const Blob& key) {
  return part(derive(key, "holdfast/1 key id"), 0, 8);
}

inline Blob key_file(const Blob& key) {
  return blob("holdfast-key-1:" + vectors::hex(key) + "\n");
}

inline Blob public_key_of(const Blob& private_key) {
  Blob key(32);
  crypto_scalarmult_base(key.data(), private_key.data());
  return key;
}

inline Blob public_key_id(const Blob& public_key) {
  return part(hash({}, 32, join({blob("holdfast/1 recipient"), public_key})), 0, 8);
}

// A slot as FORMAT.md has it; `inner_facts` and `wrap_key` differ from what they should be only in bad ones.
struct Slot {
  std::uint8_t recipient_kind = 1, holds = 2;
  std::uint32_t number = 7;
  Blob recipient_id = key_id(kRecipient);
  Blob key = kDataKey;
  Blob nonce = fixed("slot nonce", 24);
  Blob wrap_key = derive(kRecipient, "holdfast/1 wrap");
  Blob inner_facts;

  Blob facts() const { return join({{recipient_kind, holds}, little_endian(number, 4), recipient_id}); }

  Blob build() const {
    const Blob bound = inner_facts.empty() ? facts() : inner_facts;
    const Blob wrapped =
        recipient_kind == 2 ? boxed(join({bound, key})) : join({nonce, aead_seal(wrap_key, nonce, bound, key)});
    return join({facts(), little_endian(wrapped.size(), 2), wrapped});
  }

  // crypto_box_seal, but with a one-time key that is the same every time.
  static Blob boxed(const Blob& plain) {
    const Blob one_time = fixed("one-time private key", 32);
    const Blob to = public_key_of(kPrivateKey);
    const Blob from = public_key_of(one_time);
    const Blob box_nonce = hash({}, 24, join({from, to}));
    Blob box(plain.size() + crypto_box_MACBYTES);
    if (crypto_box_easy(box.data(), plain.data(), plain.size(), box_nonce.data(), to.data(), one_time.data()) != 0)
      return {};
    return join({from, box});
  }
};

inline Slot naming_slot() {
  Slot slot;
  slot.holds = 1;
  slot.number = 0;
  slot.key = kNamingKey;
  slot.nonce = fixed("naming slot nonce", 24);
  return slot;
}

inline Slot x25519_slot() {
  Slot slot;
  slot.recipient_kind = 2;
  slot.recipient_id = public_key_id(public_key_of(kPrivateKey));
  return slot;
}

inline Vector slot_vector(const std::string& what, const std::string& reject, const Blob& bytes, bool x25519) {
  Vector vector(what);
  if (!reject.empty()) vector.word("reject", reject);
  vector.bytes("slot", bytes);
  return x25519 ? vector.bytes("private_key", kPrivateKey) : vector.bytes("recipient", kRecipient);
}

inline std::vector<Vector> bad_slots() {
  std::vector<Vector> all;
  const auto add = [&](const char* what, const char* reject, Slot slot, const std::function<void(Slot&)>& spoil,
                       bool x25519 = false) {
    spoil(slot);
    all.push_back(slot_vector(what, reject, slot.build(), x25519));
  };
  const auto add_flip = [&](const char* what, const char* reject, const Slot& slot, std::size_t at, std::uint8_t bits,
                            bool x25519 = false) {
    Blob bytes = slot.build();
    bytes[at] ^= bits;
    all.push_back(slot_vector(what, reject, bytes, x25519));
  };
  const Slot good;
  const Slot box = x25519_slot();
  all.push_back(slot_vector("nothing", "short_slot", {}, false));
  all.push_back(slot_vector("no length", "short_slot", part(good.build(), 0, 15), false));
  all.push_back(slot_vector("the last byte is missing", "short_slot", part(good.build(), 0, 87), false));
  all.push_back(slot_vector("a box without its last byte", "short_slot", part(box.build(), 0, 109), true));
  add("recipient kind 0", "unknown_recipient", good, [](Slot& s) { s.recipient_kind = 0; });
  add("recipient kind 3", "unknown_recipient", good, [](Slot& s) { s.recipient_kind = 3; });
  add_flip("recipient kind 3, as long as a box", "unknown_recipient", box, 0, 1, true);
  add("holds 0", "unknown_holds", good, [](Slot& s) { s.holds = 0; });
  add("holds 3", "unknown_holds", good, [](Slot& s) { s.holds = 3; });
  add("a data key with number 0", "bad_key_number", good, [](Slot& s) { s.number = 0; });
  add("a naming key with a number", "bad_key_number", naming_slot(), [](Slot& s) { s.number = 1; });
  add_flip("a length of 73", "bad_wrapped_length", good, 14, 1);
  add_flip("a length over what is there", "bad_wrapped_length", good, 15, 0x80);
  add_flip("a box that says it is symmetric", "bad_wrapped_length", box, 0, 3, true);
  add("for another recipient", "other_recipient", good, [](Slot& s) { s.recipient_id = key_id(kOtherKey); });
  add(
      "for another public key", "other_recipient", box,
      [](Slot& s) { s.recipient_id = public_key_id(public_key_of(kOtherKey)); }, true);
  all.push_back(slot_vector("a box, and a symmetric key at hand", "other_recipient", box.build(), false));
  all.push_back(slot_vector("a symmetric slot, and a private key at hand", "other_recipient", good.build(), true));
  add_flip("another number than it was wrapped with", "bad_wrap", good, 2, 1);
  add_flip("one bit of the nonce", "bad_wrap", good, 16, 1);
  add_flip("one bit of the wrapped key", "bad_wrap", good, 40, 1);
  add_flip("one bit of the tag", "bad_wrap", good, 87, 0x80);
  add("wrapped with the recipient itself", "bad_wrap", good, [](Slot& s) { s.wrap_key = kRecipient; });
  add("a naming key bound as a data key", "bad_wrap", naming_slot(), [](Slot& s) {
    s.inner_facts = join({{1, 2}, little_endian(0, 4), s.recipient_id});
  });
  add_flip("a box with another number outside than inside", "bad_wrap", box, 2, 1, true);
  add_flip("one bit of the one-time public key", "bad_wrap", box, 16, 1, true);
  add_flip("one bit of the box", "bad_wrap", box, 109, 1, true);
  return all;
}

inline std::vector<Vector> slots() {
  std::vector<Vector> all;
  all.push_back(slot_vector("the naming key for a symmetric recipient", "", naming_slot().build(), false));
  all.back().bytes("key", kNamingKey);
  all.push_back(slot_vector("data key 7 for a symmetric recipient", "", Slot{}.build(), false));
  all.back().bytes("key", kDataKey);
  all.push_back(slot_vector("data key 7 for an X25519 recipient", "", x25519_slot().build(), true));
  all.back().bytes("key", kDataKey);
  for (const Vector& vector : bad_slots()) all.push_back(vector);
  return all;
}

inline std::vector<Vector> key_files() {
  std::vector<Vector> all;
  const std::string digits = vectors::hex(kRecipient);
  const auto add_good = [&](const char* what, const std::string& text) {
    all.push_back(Vector(what).bytes("text", blob(text)).bytes("key", kRecipient).bytes("key_id", key_id(kRecipient)));
  };
  const auto add_bad = [&](const char* what, const std::string& text) {
    all.push_back(Vector(what).word("reject", "bad_key_file").bytes("text", blob(text)));
  };
  std::string capitals = digits;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::string prefix = "holdfast-key-1:";
  add_good("with its newline", prefix + digits + "\n");
  add_good("without", prefix + digits);
  add_bad("nothing", "");
  add_bad("a newline", "\n");
  add_bad("the prefix alone", prefix + "\n");
  add_bad("the digits alone", digits + "\n");
  add_bad("another version", "holdfast-key-2:" + digits + "\n");
  add_bad("a prefix in capitals", "HOLDFAST-KEY-1:" + digits + "\n");
  add_bad("capital digits", prefix + capitals + "\n");
  add_bad("63 digits", prefix + digits.substr(1) + "\n");
  add_bad("62 digits", prefix + digits.substr(2) + "\n");
  add_bad("65 digits", prefix + digits + "0\n");
  add_bad("66 digits", prefix + digits + "00\n");
  add_bad("a letter that is no digit", prefix + "g" + digits.substr(1) + "\n");
  add_bad("a NUL for the last digit", prefix + digits.substr(1) + std::string(1, '\0') + "\n");
  add_bad("a space in front", " " + prefix + digits + "\n");
  add_bad("a space behind", prefix + digits + " \n");
  add_bad("a space after the colon", prefix + " " + digits + "\n");
  add_bad("a carriage return", prefix + digits + "\r\n");
  add_bad("two newlines", prefix + digits + "\n\n");
  add_bad("two keys", prefix + digits + "\n" + prefix + digits + "\n");
  return all;
}

inline Blob content_digest(const Blob& id, const Blob& subject, const Blob& payload) {
  return siphash(derive(kNamingKey, "holdfast/1 content mask"),
                 poly1305_of_hchacha(derive(kNamingKey, "holdfast/1 content"), part(id, 0, 16),
                                     join({little_endian(subject.size(), 4), subject, payload})));
}

inline std::vector<Vector> digests() {
  std::vector<Vector> all;
  const auto start = [](const char* what, const char* digest) {
    return Vector(what).bytes("naming_key", kNamingKey).word("digest", digest);
  };
  const Blob id_key = derive(kNamingKey, "holdfast/1 record id");
  for (const char* key : {"seq:truck-07:TELEMETRY:42:1700000000123456789", "msg:order-4711", ""}) {
    all.push_back(start("a record id", "record_id"));
    all.back().bytes("key_string", blob(key)).bytes("value", hash(id_key, 32, blob(key)));
  }
  const Blob id = hash(id_key, 32, blob("msg:order-4711"));
  const auto add_content = [&](const char* what, const Blob& subject, const Blob& payload) {
    all.push_back(start(what, "content"));
    all.back().bytes("record_id", id).bytes("subject", subject).bytes("payload", payload);
    all.back().bytes("value", content_digest(id, subject, payload));
  };
  add_content("a content digest", blob("telemetry.gps"), blob("{\"lat\":1}"));
  add_content("the same bytes, parted elsewhere", blob("telemetry.gps{"), blob("\"lat\":1}"));
  add_content("no content", {}, {});
  all.push_back(start("a stream tag", "stream_tag"));
  all.back().bytes("stream", blob("truck-07:TELEMETRY"));
  all.back().bytes("value",
                   part(hash(derive(kNamingKey, "holdfast/1 stream tag"), 32, blob("truck-07:TELEMETRY")), 0, 8));
  const Blob text = fixed("under a MAC", 64);
  for (const char* name : {"frame header", "batch header"}) {
    all.push_back(start("a MAC of a header", name));
    all.back()
        .bytes("bytes", text)
        .bytes("value", siphash(derive(kNamingKey, std::string("holdfast/1 ") + name), text));
  }
  for (const char* name : {"done body", "manifest"}) {
    all.push_back(start("a MAC", name));
    all.back()
        .bytes("bytes", text)
        .bytes("value", hash(derive(kNamingKey, std::string("holdfast/1 ") + name), 16, text));
  }
  return all;
}

inline std::vector<Vector> crcs() {
  std::vector<Vector> all;
  const auto add = [&](const char* what, const Blob& bytes) {
    all.push_back(Vector(what).bytes("bytes", bytes).bytes("crc32c", little_endian(crc(bytes), 4)));
  };
  Blob rising, falling;
  for (std::uint8_t i = 0; i < 32; ++i) rising.push_back(i), falling.push_back(static_cast<std::uint8_t>(31 - i));
  add("nothing", {});
  add("32 zeros (RFC 3720)", Blob(32));
  add("32 ones (RFC 3720)", Blob(32, 0xff));
  add("32 rising (RFC 3720)", rising);
  add("32 falling (RFC 3720)", falling);
  add("the nine digits", blob("123456789"));
  return all;
}

inline std::vector<Vector> record_files() {
  const Blob key_string = blob("seq:truck-07:TELEMETRY:42:1700000000123456789");
  const Blob subject = blob("telemetry.gps"), payload = blob("{\"lat\":59.91,\"lon\":10.75}");
  Frame frame;
  frame.id = hash(derive(kNamingKey, "holdfast/1 record id"), 32, key_string);
  frame.content = content_digest(frame.id, subject, payload);
  frame.nonce = fixed("record file nonce", 24);
  frame.plain = join({blob("any bytes; in a spool a record body with "), payload});
  Vector vector("a record file, its keys in slots, the slots opened with a key file");
  vector.bytes("key_file", key_file(kRecipient)).bytes("naming_slot", naming_slot().build());
  vector.bytes("data_slot", Slot{}.build()).bytes("record_file", frame.build());
  vector.bytes("key_string", key_string).bytes("subject", subject).bytes("payload", payload);
  return {vector.bytes("body", frame.plain)};
}

}  // namespace vector_maker
