// The manifest: the few facts without which nothing in a spool can be read. Two files, each complete, with a generation
// and a checksum (spool/FORMAT.md, "Manifest").
//
// save() survives a power cut at any point: the older copy is replaced and synced before the newer is touched, so one
// good copy with the newest or the previous facts is always there. Nothing that a manifest names (a data key, a route,
// a sequence) may be used before the save() that names it has returned.
//
// Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "crypto/digest.h"
#include "crypto/key_slot.h"
#include "spool/file_system.h"

namespace holdfast {

enum class TargetNumber : std::uint32_t {};
enum class RouteNumber : std::uint32_t {};

struct RouteTarget {
  TargetNumber target{};
  bool required = true;
  bool operator==(const RouteTarget&) const = default;
};

struct Manifest {
  std::array<std::uint8_t, 16> uuid{};
  std::string site;                    // the site in keys: fixed at first start
  std::uint64_t sequence_floor = 0;    // no sequence at or above it was ever given
  std::uint32_t boot = 0;              // lives so far
  std::uint32_t current_data_key = 0;  // 0: none yet
  std::uint64_t data_key_bytes = 0;    // sealed with it when last saved, rounded up
  std::vector<KeySlot> slots;
  std::vector<std::string> targets;              // number n is entry n - 1; append-only
  std::vector<std::vector<RouteTarget>> routes;  // likewise; of targets that are in the table
  Mac mac;                                       // over all of the above, see sign_manifest
};

struct LoadedManifest {
  Manifest manifest;
  std::uint64_t generation = 0;
  bool one_was_bad = false;  // the other copy was missing, damaged or too old; not set after a mere cut in save
};

// The newest good copy counts. Neither is written: whoever comes with the wrong key must change nothing. That what was
// read is on the medium, and twice, is known only after the next save: every start makes one before it uses anything.
// `not_found` when there is neither file: the spool is new (the caller makes sure of that before he saves one).
// `corrupt` when neither can be read, or they belong to two spools. A newer format version, or a name that is no file,
// is `invalid`. A refusal touches nothing.
Result<LoadedManifest> load_manifest(FileSystem& fs);

// Both copies, with a generation above every one there is; returned in `generation`. After an error either the old
// facts or these will be loaded, whole. A failed sync is `io` and ends this life; `invalid`: larger than 16 MiB.
Result<void> save_manifest(FileSystem& fs, const Manifest& manifest, std::uint64_t& generation);

// The checksum finds rot; the MAC, under the naming key that the slots hold, who altered the tables: else who has the
// disk and not the key could send a route's records to another target. Sign before each save; ask once the naming key
// is unwrapped.
void sign_manifest(Manifest& manifest, const Namer& namer);
bool manifest_is_signed(const Manifest& manifest, const Namer& namer);

// The bytes of one copy, checksum included; and back.
Bytes encode_manifest(const Manifest& manifest, std::uint64_t generation);
Result<LoadedManifest> decode_manifest(ByteView bytes);

}  // namespace holdfast
