#include "spool/keyring.h"

#include <gtest/gtest.h>

#include "crypto/frame.h"

namespace holdfast {
namespace {

// A rotation whose manifest could not be saved: the next one makes another key of the same number, and that is the one
// to seal with.
TEST(Keyring, RotationThatWasNotSaved_LeavesNoKeyBehind) {
  ASSERT_TRUE(init_crypto());
  const SecretKey recipient = SecretKey::random();
  Manifest saved;
  Keyring ring = Keyring::make(saved, recipient);
  Manifest not_saved = saved;
  ring.add_data_key(not_saved, recipient);
  Manifest next = saved;
  ring.add_data_key(next, recipient);
  ring.use_current(next);

  FrameHeader header;
  header.data_key_id = next.current_data_key;
  Bytes frame;
  seal_frame(header, as_bytes("a body"), ring.current(), ring.namer(), frame);
  const auto later = Keyring::open(next, recipient);
  ASSERT_TRUE(later.ok()) << later.error().text;
  const auto read = read_header(frame, later->namer());
  ASSERT_TRUE(read);
  const SecretKey* key = later->data_key(read->data_key_id);
  ASSERT_NE(key, nullptr);
  EXPECT_TRUE(open_frame(*read, frame, *key, later->namer()));
}

}  // namespace
}  // namespace holdfast
