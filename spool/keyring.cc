#include "spool/keyring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace holdfast {

Keyring Keyring::make(Manifest& manifest, const SecretKey& recipient) {
  Keyring ring;
  ring.naming_ = std::make_unique<SecretKey>(SecretKey::random());
  ring.namer_ = std::make_unique<Namer>(*ring.naming_);
  manifest.slots.push_back(wrap_for_key(*ring.naming_, WrappedKind::naming_key, 0, recipient));
  ring.add_data_key(manifest, recipient);
  ring.use_current(manifest);
  return ring;
}

Result<Keyring> Keyring::open(const Manifest& manifest, const SecretKey& recipient) {
  Keyring ring;
  std::set<std::string> wanted;
  for (const KeySlot& slot : manifest.slots) {
    auto key = unwrap_with_key(slot, recipient);
    if (!key) {
      wanted.insert(to_hex(slot.recipient_id));
    } else if (slot.holds == WrappedKind::naming_key) {
      ring.naming_ = std::make_unique<SecretKey>(std::move(*key));
    } else {
      ring.data_keys_.emplace(slot.key_id, std::move(*key));
    }
  }
  if (!ring.naming_) {
    return Error{ErrorKind::invalid, fmt::format("the key given has id {}; this spool is sealed for key id {}",
                                                 recipient.id(), fmt::join(wanted, " or "))};
  }
  if (!ring.data_keys_.contains(manifest.current_data_key)) {
    return Error{ErrorKind::corrupt,
                 fmt::format("the manifest has no usable slot for data key {}", manifest.current_data_key)};
  }
  ring.namer_ = std::make_unique<Namer>(*ring.naming_);
  ring.use_current(manifest);
  return ring;
}

void Keyring::add_data_key(Manifest& manifest, const SecretKey& recipient) {
  std::uint32_t number = 1;
  for (const KeySlot& slot : manifest.slots) number = std::max(number, slot.key_id + 1);
  SecretKey key = SecretKey::random();
  manifest.slots.push_back(wrap_for_key(key, WrappedKind::data_key, number, recipient));
  manifest.current_data_key = number;
  manifest.data_key_bytes = 0;
  const std::lock_guard lock(*mutex_);
  // A key of the same number that is there was never used: its manifest could not be saved.
  data_keys_.insert_or_assign(number, std::move(key));
}

const SecretKey* Keyring::data_key(std::uint32_t number) const {
  const std::lock_guard lock(*mutex_);
  const auto found = data_keys_.find(number);
  return found == data_keys_.end() ? nullptr : &found->second;
}

}  // namespace holdfast
