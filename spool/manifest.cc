#include "spool/manifest.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "crypto/digest.h"
#include "spool/check.h"

namespace holdfast {
namespace {

constexpr std::array<std::string_view, 2> kNames{"manifest.0", "manifest.1"};
constexpr std::string_view kTemporaryName = "manifest.tmp";
constexpr std::string_view kMagic = "HFM1";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kMacSize = 16;
constexpr std::size_t kChecksumSize = 32;
// Magic, version, zeros: the same in every version, as is the checksum at the end.
constexpr std::size_t kHeadSize = 4 + 1 + 3;
// Tables are append-only, so a manifest only grows; this holds some hundred thousand routes.
constexpr std::size_t kMaxSize = 16u << 20;

// Never given, so that generation + 1 always exists.
constexpr std::uint64_t kNoMoreGenerations = std::numeric_limits<std::uint64_t>::max();

Error refuse(const char* why) {
  return {ErrorKind::corrupt, why};
}

std::uint32_t count_of(std::size_t size) {
  CHECK(size <= std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(size);
}

bool route_fits(const std::vector<RouteTarget>& route, std::size_t targets) {
  return std::all_of(route.begin(), route.end(), [targets](const RouteTarget& entry) {
    const auto number = static_cast<std::uint32_t>(entry.target);
    return number >= 1 && number <= targets;
  });
}

// A list whose length was lied about must not make us reserve more than the bytes left could hold.
bool bad_count(const ByteReader& in, std::uint32_t count, std::size_t smallest_entry) {
  return !in.good() || count > in.remaining() / smallest_entry;
}

Result<void> read_slots(ByteReader& in, std::vector<KeySlot>& slots) {
  const std::uint32_t count = in.u32();
  if (bad_count(in, count, 1)) return refuse("more key slots than bytes");
  for (std::uint32_t i = 0; i < count; ++i) {
    auto slot = read_slot(in);
    if (!slot) return refuse("a key slot that this version does not know");
    slots.push_back(std::move(*slot));
  }
  return {};
}

Result<void> read_targets(ByteReader& in, std::vector<std::string>& targets) {
  const std::uint32_t count = in.u32();
  if (bad_count(in, count, 4)) return refuse("more targets than bytes");
  for (std::uint32_t i = 0; i < count; ++i) targets.emplace_back(as_text(in.prefixed()));
  return {};
}

Result<void> read_route(ByteReader& in, std::size_t targets, std::vector<RouteTarget>& route) {
  const std::uint32_t count = in.u32();
  if (bad_count(in, count, 5)) return refuse("more targets of a route than bytes");
  for (std::uint32_t i = 0; i < count; ++i) {
    const TargetNumber target{in.u32()};
    const std::uint8_t required = in.u8();
    if (required > 1) return refuse("a flag that is neither 0 nor 1");
    route.push_back({target, required == 1});
  }
  if (!route_fits(route, targets)) return refuse("a route to a target that is not in the table");
  return {};
}

Result<void> read_routes(ByteReader& in, std::size_t targets, std::vector<std::vector<RouteTarget>>& routes) {
  const std::uint32_t count = in.u32();
  if (bad_count(in, count, 4)) return refuse("more routes than bytes");
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<RouteTarget> route;
    HOLDFAST_TRY(read_route(in, targets, route));
    routes.push_back(std::move(route));
  }
  return {};
}

// The head and the checksum: whether these are bytes of ours at all. Asked before the version, so that rot in the
// version byte is rot and not a newer program.
Result<ByteView> checked_body(ByteView bytes) {
  if (bytes.size() < kHeadSize + kChecksumSize) return refuse("too short");
  if (bytes.size() > kMaxSize) return refuse("too long");
  if (as_text(bytes.first(kMagic.size())) != kMagic) return refuse("not a manifest");
  const ByteView facts = bytes.first(bytes.size() - kChecksumSize);
  const auto sum = sha256(facts);
  if (!std::equal(sum.begin(), sum.end(), bytes.end() - kChecksumSize)) return refuse("the checksum does not agree");
  const std::uint8_t version = bytes[kMagic.size()];
  if (version != kVersion) {
    return Error{ErrorKind::invalid, "format version " + std::to_string(version) + ", this program knows " +
                                         std::to_string(kVersion) + ": it was written by another release"};
  }
  for (std::size_t i = kMagic.size() + 1; i < kHeadSize; ++i) {
    if (bytes[i] != 0) return refuse("a reserved byte that is not zero");
  }
  return facts.subspan(kHeadSize);
}

// One of the two files, as it was found.
struct Copy {
  std::string name;
  bool there = false;
  Bytes bytes;
  std::optional<LoadedManifest> good;
  std::string why_not;

  std::uint64_t generation() const { return good ? good->generation : 0; }
};

bool means_bad_copy(ErrorKind kind) {
  return kind == ErrorKind::corrupt || kind == ErrorKind::io;
}

// A copy that is damaged, on a bad block, or too large is a bad copy: that is what the other is for. A name that is no
// file of ours, a newer version, or no descriptors left is an error: nothing is to be repaired (R6).
Result<Copy> read_copy(FileSystem& fs, std::string_view name) {
  Copy copy;
  copy.name = name;
  const auto info = fs.inspect(copy.name);
  if (!info.ok() && info.error().kind == ErrorKind::not_found) return copy;
  if (!info.ok()) return within("inspecting " + copy.name, info.error());
  if (info->type != NameType::file) return Error{ErrorKind::invalid, copy.name + " is not a file"};
  copy.there = true;
  if (info->size > kMaxSize) {
    copy.why_not = "too long";
    return copy;
  }
  auto bytes = read_file(fs, copy.name, kMaxSize);
  if (!bytes.ok() && !means_bad_copy(bytes.error().kind)) return within("reading " + copy.name, bytes.error());
  if (!bytes.ok()) {
    copy.why_not = bytes.error().text;
    return copy;
  }
  copy.bytes = *std::move(bytes);
  auto loaded = decode_manifest(copy.bytes);
  if (!loaded.ok() && !means_bad_copy(loaded.error().kind)) return within(copy.name, loaded.error());
  if (!loaded.ok()) {
    copy.why_not = loaded.error().text;
    return copy;
  }
  copy.good = *std::move(loaded);
  return copy;
}

using Copies = std::array<Copy, 2>;

Result<Copies> read_copies(FileSystem& fs) {
  Copies copies;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    auto copy = read_copy(fs, kNames[i]);
    if (!copy.ok()) return copy.error();
    copies[i] = *std::move(copy);
  }
  return copies;
}

Result<void> remove_temporary(FileSystem& fs) {
  const auto removed = fs.remove(std::string(kTemporaryName));
  if (removed.ok() || removed.error().kind == ErrorKind::not_found) return {};
  return within("removing " + std::string(kTemporaryName), removed.error());
}

Result<void> write_temporary(FileSystem& fs, ByteView bytes) {
  HOLDFAST_TRY(remove_temporary(fs));
  auto file = fs.open(std::string(kTemporaryName), OpenMode::create_new);
  if (!file.ok()) return file.error();
  HOLDFAST_TRY((*file)->write_at(0, bytes));
  return (*file)->sync();
}

// The bytes are on the medium before the name points at them, and the name before anything is believed (R1).
Result<void> replace_copy(FileSystem& fs, const std::string& name, ByteView bytes) {
  if (auto written = write_temporary(fs, bytes); !written.ok()) return within("writing " + name, written.error());
  if (auto renamed = fs.rename(std::string(kTemporaryName), name, Rename::replace); !renamed.ok()) {
    return within("replacing " + name, renamed.error());
  }
  if (auto synced = fs.sync_directory(""); !synced.ok()) return within("replacing " + name, synced.error());
  return {};
}

// Which of two good copies counts. Equal generations with different facts come from no sequence of ours; then the one
// that names more, because what a manifest names may be in use and what it does not name is lost.
bool first_counts(const LoadedManifest& first, const LoadedManifest& second) {
  const auto rank = [](const LoadedManifest& copy) {
    const Manifest& facts = copy.manifest;
    return std::tuple(copy.generation, facts.sequence_floor, facts.boot, facts.slots.size(), facts.targets.size(),
                      facts.routes.size());
  };
  return rank(first) >= rank(second);
}

// Appends everything that a manifest says, in the order of the document.
void write_facts(const Manifest& manifest, Bytes& bytes) {
  ByteWriter out(bytes);
  out.raw(manifest.uuid);
  out.prefixed(as_bytes(manifest.site));
  out.u64(manifest.sequence_floor);
  out.u32(manifest.boot);
  out.u32(manifest.current_data_key);
  out.u64(manifest.data_key_bytes);
  out.u32(count_of(manifest.slots.size()));
  for (const KeySlot& slot : manifest.slots) write_slot(slot, bytes);
  out.u32(count_of(manifest.targets.size()));
  for (const std::string& target : manifest.targets) out.prefixed(as_bytes(target));
  out.u32(count_of(manifest.routes.size()));
  for (const auto& route : manifest.routes) {
    CHECK(route_fits(route, manifest.targets.size()));
    out.u32(count_of(route.size()));
    for (const RouteTarget& entry : route) {
      out.u32(static_cast<std::uint32_t>(entry.target));
      out.u8(entry.required ? 1 : 0);
    }
  }
}

Mac mac_of(const Manifest& manifest, const Namer& namer) {
  Bytes facts;
  write_facts(manifest, facts);
  return namer.manifest_mac(facts);
}

}  // namespace

void sign_manifest(Manifest& manifest, const Namer& namer) {
  manifest.mac = mac_of(manifest, namer);
}

bool manifest_is_signed(const Manifest& manifest, const Namer& namer) {
  return same_mac(manifest.mac, mac_of(manifest, namer));
}

Bytes encode_manifest(const Manifest& manifest, std::uint64_t generation) {
  Bytes bytes;
  ByteWriter out(bytes);
  out.raw(as_bytes(kMagic));
  out.u8(kVersion);
  out.zeros(kHeadSize - kMagic.size() - 1);
  out.u64(generation);
  write_facts(manifest, bytes);
  out.raw(manifest.mac.bytes);
  out.raw(sha256(bytes));
  return bytes;
}

Result<LoadedManifest> decode_manifest(ByteView bytes) {
  const auto body = checked_body(bytes);
  if (!body.ok()) return body.error();
  ByteReader in(*body);
  LoadedManifest loaded;
  Manifest& manifest = loaded.manifest;
  loaded.generation = in.u64();
  const ByteView uuid = in.raw(manifest.uuid.size());
  std::copy(uuid.begin(), uuid.end(), manifest.uuid.begin());
  manifest.site = as_text(in.prefixed());
  manifest.sequence_floor = in.u64();
  manifest.boot = in.u32();
  manifest.current_data_key = in.u32();
  manifest.data_key_bytes = in.u64();
  HOLDFAST_TRY(read_slots(in, manifest.slots));
  HOLDFAST_TRY(read_targets(in, manifest.targets));
  HOLDFAST_TRY(read_routes(in, manifest.targets.size(), manifest.routes));
  const ByteView mac = in.raw(kMacSize);
  std::copy(mac.begin(), mac.end(), manifest.mac.bytes.begin());
  if (!in.done()) return refuse("too few or too many bytes");
  if (loaded.generation == 0 || loaded.generation == kNoMoreGenerations)
    return refuse("a generation that no save gives");
  return loaded;
}

Result<LoadedManifest> load_manifest(FileSystem& fs) {
  auto copies = read_copies(fs);
  if (!copies.ok()) return copies.error();
  auto& [first, second] = *copies;
  if (!first.there && !second.there) return Error{ErrorKind::not_found, "there is no manifest"};
  if (!first.good && !second.good) {
    const auto say = [](const Copy& copy) { return copy.name + ": " + (copy.there ? copy.why_not : "not there"); };
    return Error{ErrorKind::corrupt, "no manifest can be read (" + say(first) + "; " + say(second) + ")"};
  }
  if (first.good && second.good && first.good->manifest.uuid != second.good->manifest.uuid) {
    return Error{ErrorKind::corrupt, "manifest.0 and manifest.1 belong to two different spools"};
  }
  const bool take_first = !second.good || (first.good && first_counts(*first.good, *second.good));
  Copy& counts = take_first ? first : second;
  Copy& other = take_first ? second : first;
  LoadedManifest loaded = *std::move(counts.good);
  HOLDFAST_TRY(remove_temporary(fs));  // (R50)
  if (other.bytes == counts.bytes) return loaded;
  // One generation behind is what a cut inside save_manifest() leaves; anything else is damage, and reported.
  const bool damaged = other.there && !other.good;
  loaded.one_was_bad = damaged || other.generation() + 1 != loaded.generation;
  return loaded;
}

Result<void> save_manifest(FileSystem& fs, const Manifest& manifest, std::uint64_t& generation) {
  // Looked at, not remembered: an earlier save may have failed between the two.
  auto copies = read_copies(fs);
  if (!copies.ok()) return copies.error();
  auto& [first, second] = *copies;
  const std::uint64_t next = std::max({generation, first.generation(), second.generation()}) + 1;
  const Bytes bytes = encode_manifest(manifest, next);
  if (bytes.size() > kMaxSize) return Error{ErrorKind::invalid, "the manifest would be larger than 16 MiB"};
  // The older first: the other stays whole until this one is (R1).
  const bool first_is_older = first.generation() <= second.generation();
  HOLDFAST_TRY(replace_copy(fs, (first_is_older ? first : second).name, bytes));
  HOLDFAST_TRY(replace_copy(fs, (first_is_older ? second : first).name, bytes));
  generation = next;
  return {};
}

}  // namespace holdfast
