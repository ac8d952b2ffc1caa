// The manifest: whatever happens to one of its copies, or to the power while it is saved, the old facts or the new ones
// are there, whole.
#include "spool/manifest.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "tests/support/document.h"
#include "tests/support/mutation.h"
#include "tests/support/simulated_file_system.h"

namespace holdfast {
namespace {

constexpr const char* kNames[] = {"manifest.0", "manifest.1"};

// The one in spool/FORMAT.md.
Manifest document_manifest() {
  Manifest manifest;
  for (std::size_t i = 0; i < manifest.uuid.size(); ++i) manifest.uuid[i] = static_cast<std::uint8_t>(i);
  manifest.site = "truck-07";
  manifest.sequence_floor = 1ULL << 33;
  manifest.boot = 3;
  manifest.current_data_key = 2;
  manifest.data_key_bytes = 1 << 20;
  KeySlot slot;
  slot.recipient = RecipientKind::symmetric;
  slot.holds = WrappedKind::naming_key;
  for (std::size_t i = 0; i < slot.recipient_id.size(); ++i) slot.recipient_id[i] = static_cast<std::uint8_t>(0x10 + i);
  for (std::uint8_t i = 0; i < 72; ++i) slot.wrapped.push_back(static_cast<std::uint8_t>(0x20 + i));
  manifest.slots = {slot};
  manifest.targets = {"hub", "archive"};
  manifest.routes = {{{TargetNumber{1}, true}}, {{TargetNumber{1}, true}, {TargetNumber{2}, false}}};
  for (std::size_t i = 0; i < manifest.mac.bytes.size(); ++i)
    manifest.mac.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
  return manifest;
}

// Facts that tell which save they are of, in every field that may change; larger ones need more than one page.
Manifest facts(std::uint32_t life) {
  Manifest manifest = document_manifest();
  manifest.boot = life;
  manifest.sequence_floor = std::uint64_t{life} << 32;
  for (std::uint32_t n = 0; n < 100 * life; ++n) manifest.targets.push_back("target-" + std::to_string(n));
  manifest.routes.push_back({{TargetNumber{life}, true}});
  return manifest;
}

// Manifests are compared by their bytes: what is not in them is not promised.
bool same_facts(const Manifest& a, const Manifest& b) {
  return encode_manifest(a, 1) == encode_manifest(b, 1);
}

std::uint64_t save(SimulatedFileSystem& fs, const Manifest& manifest, std::uint64_t generation) {
  const auto saved = save_manifest(fs, manifest, generation);
  EXPECT_TRUE(saved.ok()) << saved.error().text;
  return generation;
}

LoadedManifest load(FileSystem& fs) {
  auto loaded = load_manifest(fs);
  EXPECT_TRUE(loaded.ok()) << loaded.error().text;
  return loaded.ok() ? *std::move(loaded) : LoadedManifest{};
}

// As every start does: a save follows, which writes both copies anew.
LoadedManifest start(SimulatedFileSystem& fs) {
  LoadedManifest loaded = load(fs);
  save(fs, loaded.manifest, loaded.generation);
  return loaded;
}

ErrorKind refusal(FileSystem& fs) {
  const auto loaded = load_manifest(fs);
  EXPECT_FALSE(loaded.ok());
  return loaded.ok() ? ErrorKind::exists : loaded.error().kind;
}

// Both copies are good, equal and on the medium, and no temporary name is left.
void expect_whole(const SimulatedFileSystem& fs) {
  EXPECT_EQ(fs.files(), (std::vector<std::string>{kNames[0], kNames[1]}));
  EXPECT_EQ(fs.medium_bytes(kNames[0]), fs.medium_bytes(kNames[1]));
  EXPECT_TRUE(decode_manifest(fs.medium_bytes(kNames[0])).ok());
}

// --- The bytes

TEST(ManifestBytes, AreLaidOutAsTheDocumentSays) {
  EXPECT_EQ(to_hex(encode_manifest(document_manifest(), 7)), document_block("spool/FORMAT.md", "manifest"));
}

TEST(ManifestBytes, ComeBackAsTheyWere) {
  const auto decoded = decode_manifest(encode_manifest(document_manifest(), 7));
  ASSERT_TRUE(decoded.ok()) << decoded.error().text;
  const Manifest& manifest = decoded->manifest;
  const Manifest expected = document_manifest();
  EXPECT_EQ(decoded->generation, 7U);
  EXPECT_FALSE(decoded->one_was_bad);
  EXPECT_EQ(manifest.uuid, expected.uuid);
  EXPECT_EQ(manifest.site, expected.site);
  EXPECT_EQ(manifest.sequence_floor, expected.sequence_floor);
  EXPECT_EQ(manifest.boot, expected.boot);
  EXPECT_EQ(manifest.current_data_key, expected.current_data_key);
  EXPECT_EQ(manifest.data_key_bytes, expected.data_key_bytes);
  ASSERT_EQ(manifest.slots.size(), 1U);
  EXPECT_EQ(manifest.slots[0].wrapped, expected.slots[0].wrapped);
  EXPECT_EQ(manifest.targets, expected.targets);
  EXPECT_EQ(manifest.routes, expected.routes);
  EXPECT_TRUE(same_mac(manifest.mac, expected.mac));
}

TEST(ManifestBytes, OfAnEmptyOne_ComeBack) {
  const auto decoded = decode_manifest(encode_manifest(Manifest{}, 1));
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(same_facts(decoded->manifest, Manifest{}));
}

TEST(ManifestBytes, WithAnyBitFlipped_AreCorrupt) {
  const Bytes good = encode_manifest(document_manifest(), 7);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[at] ^= static_cast<std::uint8_t>(1 << bit);
      const auto decoded = decode_manifest(bad);
      ASSERT_FALSE(decoded.ok()) << at;
      ASSERT_EQ(decoded.error().kind, ErrorKind::corrupt) << at;  // the version byte, too: rot is not a newer release
    }
  }
}

TEST(ManifestBytes, CutAnywhere_AreCorrupt) {
  const Bytes good = encode_manifest(document_manifest(), 7);
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto decoded = decode_manifest(ByteView(good).first(size));
    ASSERT_FALSE(decoded.ok()) << size;
    ASSERT_EQ(decoded.error().kind, ErrorKind::corrupt) << size;
  }
}

// The checksum is no secret: what lies behind it must hold by itself.
void rechecksum(Bytes& bytes) {
  if (bytes.size() < 32) return;
  const auto sum = sha256(ByteView(bytes).first(bytes.size() - 32));
  std::copy(sum.begin(), sum.end(), bytes.end() - 32);
}

TEST(ManifestBytes, OfANewerVersion_AreInvalidAndNotCorrupt) {
  Bytes bytes = encode_manifest(document_manifest(), 7);
  bytes[4] = 2;
  rechecksum(bytes);
  const auto decoded = decode_manifest(bytes);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().kind, ErrorKind::invalid);
}

TEST(ManifestBytes, ThatBreakARule_AreCorrupt_HoweverTrueTheirChecksum) {
  const std::string hex = to_hex(encode_manifest(document_manifest(), 7));
  const auto refused = [](Bytes bytes) {
    rechecksum(bytes);
    const auto decoded = decode_manifest(bytes);
    return !decoded.ok() && decoded.error().kind == ErrorKind::corrupt;
  };
  const Bytes good = encode_manifest(document_manifest(), 7);
  ASSERT_FALSE(refused(good));
  for (const std::size_t reserved : {5U, 6U, 7U}) {
    Bytes bytes = good;
    bytes[reserved] = 1;
    EXPECT_TRUE(refused(bytes)) << reserved;
  }
  EXPECT_TRUE(refused(encode_manifest(document_manifest(), 0)));
  EXPECT_TRUE(refused(encode_manifest(document_manifest(), std::numeric_limits<std::uint64_t>::max())));

  Bytes longer = good;
  longer.insert(longer.end() - 32, 0);
  EXPECT_TRUE(refused(longer));
  Bytes shorter = good;
  shorter.erase(shorter.end() - 33);
  EXPECT_TRUE(refused(shorter));

  // The last entry of the last route stands in front of the MAC: u32 target, u8 required.
  const std::size_t entry = good.size() - 32 - 16 - 5;
  for (const std::uint8_t target : {0, 3, 255}) {
    Bytes bytes = good;
    bytes[entry] = target;
    EXPECT_TRUE(refused(bytes)) << int{target};
  }
  Bytes required = good;
  required[entry + 4] = 2;
  EXPECT_TRUE(refused(required));
}

// Mutated behind a checksum that is made to agree: no crash, no huge reservation, and what is taken is exactly what
// would be written.
TEST(ManifestBytes, Mutated_AreRefusedOrCanonical) {
  Dice dice(0x6d616e69);
  const Bytes good = encode_manifest(document_manifest(), 7);
  std::size_t taken = 0;
  for (int round = 0; round < 100'000; ++round) {
    Bytes bytes = good;
    for (std::uint64_t n = 1 + dice.below(3); n > 0; --n) mutate(bytes, dice);
    rechecksum(bytes);
    const Bytes exact(bytes.begin(), bytes.end());
    const auto decoded = decode_manifest(exact);
    if (!decoded.ok()) continue;
    ++taken;
    ASSERT_EQ(encode_manifest(decoded->manifest, decoded->generation), exact) << "round " << round;
  }
  EXPECT_GT(taken, 1'000U);
}

TEST(ManifestDeathTest, ARouteToATargetThatIsNotInTheTable_IsABug) {
  Manifest manifest;
  manifest.routes = {{{TargetNumber{1}, true}}};
  EXPECT_DEATH(encode_manifest(manifest, 1), "must be true");
}

// --- The MAC

TEST(ManifestMac, TellsEveryAlteration) {
  ASSERT_TRUE(init_crypto());
  const Namer namer(SecretKey::random());
  Manifest manifest = facts(2);
  EXPECT_FALSE(manifest_is_signed(manifest, namer));
  sign_manifest(manifest, namer);
  EXPECT_TRUE(manifest_is_signed(manifest, namer));
  EXPECT_FALSE(manifest_is_signed(manifest, Namer(SecretKey::random())));

  const std::vector<std::function<void(Manifest&)>> alterations{
      [](Manifest& m) { m.uuid[0] ^= 1; },
      [](Manifest& m) { m.site += "x"; },
      [](Manifest& m) { --m.sequence_floor; },
      [](Manifest& m) { --m.boot; },
      [](Manifest& m) { ++m.current_data_key; },
      [](Manifest& m) { ++m.data_key_bytes; },
      [](Manifest& m) { m.slots[0].wrapped[0] ^= 1; },
      [](Manifest& m) { std::swap(m.targets[0], m.targets[1]); },
      [](Manifest& m) { m.routes[0][0].required = false; },
      [](Manifest& m) { m.routes[0][0].target = TargetNumber{2}; },
  };
  for (const auto& alter : alterations) {
    Manifest altered = manifest;
    alter(altered);
    EXPECT_FALSE(manifest_is_signed(altered, namer));
  }
}

TEST(ManifestMac, SurvivesTheDisk) {
  ASSERT_TRUE(init_crypto());
  const Namer namer(SecretKey::random());
  SimulatedFileSystem fs;
  Manifest manifest = facts(2);
  sign_manifest(manifest, namer);
  save(fs, manifest, 0);
  EXPECT_TRUE(manifest_is_signed(load(fs).manifest, namer));
}

// --- Loading and saving

TEST(LoadManifest, InANewDirectory_FindsNone) {
  SimulatedFileSystem fs;
  EXPECT_EQ(refusal(fs), ErrorKind::not_found);
}

TEST(SaveManifest_ThenPowerLoss, KeepsTheNewFacts) {
  SimulatedFileSystem fs;
  std::uint64_t generation = 0;
  for (std::uint32_t life = 1; life <= 5; ++life) {
    generation = save(fs, facts(life), generation);
    EXPECT_EQ(generation, life);
    fs.lose_power(Loss::drop_all);
    const LoadedManifest loaded = load(fs);
    EXPECT_TRUE(same_facts(loaded.manifest, facts(life)));
    EXPECT_EQ(loaded.generation, generation);
    EXPECT_FALSE(loaded.one_was_bad);
    expect_whole(fs);
  }
}

TEST(SaveManifest, ThatWouldBeTooLarge_IsRefused_AndTheOldFactsStay) {
  SimulatedFileSystem fs;
  std::uint64_t generation = save(fs, facts(1), 0);
  Manifest large = facts(2);
  large.targets.emplace_back(16U << 20, 'x');
  const auto saved = save_manifest(fs, large, generation);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().kind, ErrorKind::invalid);
  EXPECT_EQ(generation, 1U);
  EXPECT_TRUE(same_facts(load(fs).manifest, facts(1)));
}

TEST(LoadManifest, WithOneCopyDestroyed_TakesTheOther_AndRepairs) {
  const std::vector<std::function<void(SimulatedFileSystem&, const char*)>> destructions{
      [](auto& fs, const char* name) { fs.erase(name); },
      [](auto& fs, const char* name) { fs.cut_to(name, 0); },
      [](auto& fs, const char* name) { fs.plant(name, Bytes(4096)); },
      [](auto& fs, const char* name) { fs.plant(name, as_bytes("HFM1 no more")); },
      [](auto& fs, const char* name) { fs.plant(name, Bytes((16U << 20) + 1, 7)); },
      [](auto& fs, const char* name) { fs.overwrite(name, fs.bytes(name).size(), Bytes{0}); },
      // Two generations behind: saves that it should have seen never reached it.
      [](auto& fs, const char* name) { fs.plant(name, encode_manifest(facts(1), 1)); },
  };
  for (const char* name : kNames) {
    for (const auto& destroy : destructions) {
      SimulatedFileSystem fs;
      save(fs, facts(3), 3);
      destroy(fs, name);
      const LoadedManifest loaded = start(fs);
      EXPECT_TRUE(same_facts(loaded.manifest, facts(3)));
      EXPECT_EQ(loaded.generation, 4U);
      EXPECT_TRUE(loaded.one_was_bad);
      expect_whole(fs);
      EXPECT_FALSE(load(fs).one_was_bad);
    }
  }
}

TEST(LoadManifest, WithAnyByteOfEitherCopyFlipped_TakesTheOther) {
  SimulatedFileSystem fs;
  save(fs, document_manifest(), 0);
  const std::size_t size = fs.bytes(kNames[0]).size();
  for (const char* name : kNames) {
    for (std::size_t at = 0; at < size; ++at) {
      fs.flip(name, at, 0x80);
      const LoadedManifest loaded = start(fs);
      ASSERT_TRUE(loaded.one_was_bad) << name << " at " << at;
      ASSERT_TRUE(same_facts(loaded.manifest, document_manifest())) << name << " at " << at;
      ASSERT_EQ(fs.bytes(kNames[0]), fs.bytes(kNames[1]));
    }
  }
}

TEST(LoadManifest, WithEitherCopyCutAnywhere_TakesTheOther) {
  SimulatedFileSystem fs;
  save(fs, document_manifest(), 0);
  const std::size_t size = fs.bytes(kNames[0]).size();
  for (const char* name : kNames) {
    for (std::size_t to = 0; to < size; ++to) {
      fs.cut_to(name, to);
      const LoadedManifest loaded = start(fs);
      ASSERT_TRUE(loaded.one_was_bad) << name << " at " << to;
      ASSERT_TRUE(same_facts(loaded.manifest, document_manifest())) << name << " at " << to;
    }
  }
}

// Opened, measured or read: wherever it shows, it is that copy's trouble and not the end of this life.
TEST(LoadManifest, WithOneCopyOnABadBlock_TakesTheOther_AndRepairs) {
  for (const std::string name : kNames) {
    for (const std::string verb : {"open", "measure", "read"}) {
      SimulatedFileSystem fs;
      save(fs, facts(2), 0);
      fs.count_reads(true);
      fs.observe([&](std::uint64_t step, std::string_view did, std::string_view path) {
        if (did == verb && path == name) fs.fail_at(step, {FaultKind::io});
      });
      const LoadedManifest loaded = load(fs);
      EXPECT_EQ(fs.counts().struck, 1U) << verb << " " << name;
      EXPECT_TRUE(same_facts(loaded.manifest, facts(2)));
      EXPECT_TRUE(loaded.one_was_bad);
      fs.observe({});
      save(fs, loaded.manifest, loaded.generation);
      expect_whole(fs);
    }
  }
}

TEST(LoadManifest, WithBothCopiesBad_IsCorrupt_AndTouchesNothing) {
  SimulatedFileSystem fs;
  save(fs, facts(1), 0);
  fs.flip(kNames[0], 20);
  fs.flip(kNames[1], 30);
  const Bytes first = fs.bytes(kNames[0]);
  const Bytes second = fs.bytes(kNames[1]);
  const std::uint64_t steps = fs.steps();
  EXPECT_EQ(refusal(fs), ErrorKind::corrupt);
  EXPECT_EQ(fs.steps(), steps);
  EXPECT_EQ(fs.bytes(kNames[0]), first);
  EXPECT_EQ(fs.bytes(kNames[1]), second);
}

TEST(LoadManifest, WithOneCopyBadAndTheOtherGone_IsCorruptAndNotNew) {
  for (const int bad : {0, 1}) {
    SimulatedFileSystem fs;
    save(fs, facts(1), 0);
    fs.flip(kNames[bad], 20);
    fs.erase(kNames[1 - bad]);
    EXPECT_EQ(refusal(fs), ErrorKind::corrupt);
  }
}

TEST(LoadManifest, OfTwoSpools_IsCorrupt_AndTouchesNothing) {
  SimulatedFileSystem fs;
  save(fs, facts(1), 0);
  Manifest foreign = facts(1);
  foreign.uuid[3] ^= 1;
  const Bytes bytes = encode_manifest(foreign, 2);
  fs.plant(kNames[1], bytes);
  const std::uint64_t steps = fs.steps();
  EXPECT_EQ(refusal(fs), ErrorKind::corrupt);
  EXPECT_EQ(fs.steps(), steps);
  EXPECT_EQ(fs.bytes(kNames[1]), bytes);
}

TEST(LoadManifest, WithACopyOfANewerRelease_IsInvalid_AndTouchesNothing) {
  for (const char* name : kNames) {
    SimulatedFileSystem fs;
    save(fs, facts(1), 0);
    Bytes newer = encode_manifest(facts(2), 2);
    newer[4] = 2;
    rechecksum(newer);
    fs.plant(name, newer);
    const std::uint64_t steps = fs.steps();
    EXPECT_EQ(refusal(fs), ErrorKind::invalid);
    EXPECT_EQ(fs.steps(), steps);
    EXPECT_EQ(fs.bytes(name), newer);
  }
}

// Not even opened: a pipe would make us wait for ever.
TEST(LoadManifest, WithANameThatIsNoFile_IsInvalid_AndTouchesNothing) {
  for (const std::string name : kNames) {
    SimulatedFileSystem fs;
    save(fs, facts(1), 0);
    fs.erase(name);
    fs.plant_other(name);
    const std::uint64_t steps = fs.steps();
    EXPECT_EQ(refusal(fs), ErrorKind::invalid);
    EXPECT_EQ(fs.steps(), steps);
    EXPECT_TRUE(fs.there(name));
    fs.count_reads(true);
    fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
      EXPECT_FALSE(verb == "open" && path == name);
    });
    EXPECT_EQ(refusal(fs), ErrorKind::invalid);
  }
}

TEST(LoadManifest, OfOneGenerationWithDifferentFacts_TakesWhatNamesMore_AndRepairs) {
  for (const int more : {0, 1}) {
    SimulatedFileSystem fs;
    fs.plant(kNames[more], encode_manifest(facts(3), 5));
    fs.plant(kNames[1 - more], encode_manifest(facts(2), 5));
    const LoadedManifest loaded = start(fs);
    EXPECT_TRUE(same_facts(loaded.manifest, facts(3)));
    EXPECT_TRUE(loaded.one_was_bad);
    expect_whole(fs);
  }
}

TEST(LoadManifest, RemovesTheTemporaryName_AndNeverReadsIt) {
  SimulatedFileSystem fs;
  save(fs, facts(1), 0);
  fs.plant("manifest.tmp", encode_manifest(facts(9), 9));
  EXPECT_TRUE(same_facts(load(fs).manifest, facts(1)));
  EXPECT_FALSE(fs.there("manifest.tmp"));
}

// --- Broken at every step

constexpr Loss kLosses[] = {Loss::drop_all,   Loss::keep_all, Loss::keep_names, Loss::keep_names_and_sizes,
                            Loss::keep_bytes, Loss::random};

// Old facts or new ones, whole; and it can be gone on with.
void expect_old_or_new(SimulatedFileSystem& fs, std::uint32_t old_life) {
  const auto loaded = load_manifest(fs);
  if (!loaded.ok()) {
    EXPECT_EQ(loaded.error().kind, ErrorKind::not_found) << loaded.error().text;
    EXPECT_EQ(old_life, 0U);
    return;
  }
  const bool is_old = old_life > 0 && same_facts(loaded->manifest, facts(old_life));
  EXPECT_TRUE(is_old || same_facts(loaded->manifest, facts(old_life + 1)));
  EXPECT_FALSE(loaded->one_was_bad) << "a cut inside a save is nothing to report";
  save(fs, facts(7), loaded->generation);
  fs.lose_power(Loss::drop_all);
  EXPECT_TRUE(same_facts(load(fs).manifest, facts(7)));
  expect_whole(fs);
}

void cut_power_at_every_step_of_a_save(std::uint32_t old_life) {
  SimulatedFileSystem before;
  if (old_life > 0) save(before, facts(old_life), 0);
  bool struck = true;
  for (std::uint64_t step = 1; struck; ++step) {
    const auto disk = before.copy();
    disk->fail_at(disk->steps() + step, {FaultKind::power_cut});
    std::uint64_t generation = old_life;
    const auto saved = save_manifest(*disk, facts(old_life + 1), generation);
    struck = disk->power_is_off();
    ASSERT_NE(saved.ok(), struck);
    if (!struck) break;
    EXPECT_EQ(generation, old_life) << "a save that failed must not count";
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const auto after = disk->copy();
      SCOPED_TRACE("step " + std::to_string(step) + ", seed " + std::to_string(seed) + "\n" + disk->trace());
      if (seed < std::size(kLosses)) {
        after->lose_power(kLosses[seed]);
      } else {
        after->lose_power(seed);
      }
      expect_old_or_new(*after, old_life);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(SaveManifest, CutAtAnyStep_LeavesTheOldFactsOrTheNew) {
  cut_power_at_every_step_of_a_save(1);
}
TEST(SaveManifest, CutAtAnyStepOfTheFirst_LeavesNothingOrTheNew) {
  cut_power_at_every_step_of_a_save(0);
}

// A life that is cut while it repairs, in every way, and the next one too.
TEST(LoadManifest, CutAtAnyStepOfARepair_StillHasTheFacts) {
  for (const char* name : kNames) {
    SimulatedFileSystem before;
    save(before, facts(2), 0);
    before.flip(name, 40);
    bool struck = true;
    for (std::uint64_t step = 1; struck; ++step) {
      const auto disk = before.copy();
      disk->fail_at(disk->steps() + step, {FaultKind::power_cut});
      const auto loaded = load_manifest(*disk);
      std::uint64_t generation = loaded.ok() ? loaded->generation : 0;
      const bool repaired = loaded.ok() && save_manifest(*disk, loaded->manifest, generation).ok();
      struck = disk->power_is_off();
      ASSERT_NE(repaired, struck) << "step " << step << "\n" << disk->trace();
      for (std::uint64_t seed = 0; struck && seed < 40; ++seed) {
        const auto after = disk->copy();
        after->lose_power(seed);
        ASSERT_TRUE(same_facts(start(*after).manifest, facts(2))) << name << ", step " << step << ", seed " << seed;
        expect_whole(*after);
      }
    }
  }
}

// Every call fails in turn, once and for good, without and with a power cut after it. A failed sync is the end of the
// life: it must come out as `io`, and nothing may be synced after it.
TEST(SaveManifest, FailingAtAnyCall_SaysSo_AndLeavesTheOldFactsOrTheNew) {
  for (const FaultKind kind : {FaultKind::io, FaultKind::full, FaultKind::unavailable, FaultKind::short_write}) {
    for (const bool persistent : {false, true}) {
      SimulatedFileSystem before;
      save(before, facts(1), 0);
      before.count_reads(true);
      for (std::uint64_t step = 1;; ++step) {
        const auto disk = before.copy();
        disk->fail_at(disk->steps() + step, {kind, persistent});
        std::uint64_t generation = 1;
        const auto saved = save_manifest(*disk, facts(2), generation);
        if (disk->counts().struck == 0) break;
        SCOPED_TRACE("kind " + std::to_string(int(kind)) + ", step " + std::to_string(step) + "\n" + disk->trace());
        EXPECT_EQ(generation, saved.ok() ? 2U : 1U);
        EXPECT_EQ(disk->counts().syncs_after_failure, 0U);
        disk->clear_faults();
        const auto killed = disk->copy();
        killed->restart_without_power_loss();
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          const auto after = disk->copy();
          after->lose_power(seed);
          if (saved.ok()) {
            EXPECT_TRUE(same_facts(load(*after).manifest, facts(2)));
          } else {
            expect_old_or_new(*after, 1);
          }
        }
        expect_old_or_new(*killed, 1);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// A save fails half way for want of room; the caller goes on and saves other facts. They must not share a generation
// with the half that is there.
TEST(SaveManifest, AfterOneThatFailedHalfWay_IsTheOneThatCounts) {
  for (std::uint64_t step = 1; step <= 12; ++step) {
    SimulatedFileSystem before;
    std::uint64_t generation = save(before, facts(1), 0);
    before.fail_at(before.steps() + step, {FaultKind::full});
    if (save_manifest(before, facts(2), generation).ok()) continue;
    before.clear_faults();
    std::uint64_t highest = 0;
    for (const char* name : kNames) highest = std::max(highest, decode_manifest(before.bytes(name))->generation);
    generation = save(before, facts(3), generation);
    EXPECT_GT(generation, highest);
    before.lose_power(Loss::drop_all);
    const LoadedManifest loaded = load(before);
    EXPECT_TRUE(same_facts(loaded.manifest, facts(3)));
    EXPECT_EQ(loaded.generation, generation);
    EXPECT_FALSE(loaded.one_was_bad);
  }
}

TEST(SaveManifest, OverADamagedCopy_ReplacesThatOneFirst) {
  for (const char* name : kNames) {
    SimulatedFileSystem fs;
    const std::uint64_t generation = save(fs, facts(1), 0);
    fs.flip(name, 12);
    std::vector<std::string> replaced;
    fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
      if (verb == "rename") replaced.emplace_back(path);
    });
    save(fs, facts(2), generation);
    ASSERT_EQ(replaced.size(), 2U);
    EXPECT_NE(replaced[0].find(name), std::string::npos) << replaced[0];
  }
}

}  // namespace
}  // namespace holdfast
