// What identities cost that must be looked up: the real program with ten million ids in its ledger, against the same
// program naming messages by their places.
#include <fmt/format.h>

#include <filesystem>

#include "spool/check.h"
#include "spool/ledger.h"
#include "tests/bench/figures.h"
#include "tests/bench/meter.h"
#include "tests/support/appliance.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"
#include "tests/support/simulated_loss.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kRemembered = 10'000'000;
constexpr std::uint64_t kAtOnce = 250'000;
constexpr std::uint64_t kMessages = 36'000;  // fit the journal's three quarters
constexpr std::size_t kSize = 1024;
constexpr int kRounds = 5;

RecordId random_id(Dice& dice) {
  RecordId id;
  for (std::size_t i = 0; i < id.bytes.size(); i += 8) {
    const std::uint64_t roll = dice.roll();
    std::copy_n(reinterpret_cast<const std::uint8_t*>(&roll), sizeof roll, id.bytes.begin() + i);
  }
  return id;
}

void remember_many(const std::string& spool) {
  const auto files = open_posix_file_system(spool);
  CHECK(files.ok());
  const auto database = Database::open(**files, "index.sqlite3");
  CHECK(database.ok());
  const auto ledger = Ledger::open(**database);
  CHECK(ledger.ok());
  Dice dice(7);
  for (std::uint64_t done = 0; done < kRemembered; done += kAtOnce) {
    std::vector<LedgerEntry> entries(kAtOnce);
    for (LedgerEntry& entry : entries) entry.id = random_id(dice);
    CHECK((*database)->begin(Durability::lazy).ok());
    CHECK((*ledger)->remember(entries, std::chrono::seconds(1)).ok());
    CHECK((*database)->commit().ok());
    (*ledger)->keep();
  }
  CHECK((*ledger)->ids() == kRemembered);
}

class Scene {
 public:
  explicit Scene(const std::string& directory)
      : model_(HOLDFAST_BINARY, setup("message_id", directory + "/model")), directory_(directory) {
    model_.start();
    CHECK(model_.terminate() == 0);
    remember_many(model_.spool());
  }

  double with_ids() {
    Appliance box(HOLDFAST_BINARY, setup("message_id", directory_ + "/ids"));
    fs::remove_all(box.spool());
    fs::create_directories(box.state());
    fs::copy(model_.spool(), box.spool(), fs::copy_options::recursive);
    fs::permissions(box.spool(), fs::perms::owner_all);
    fs::copy_file(model_.key_file(), box.key_file(), fs::copy_options::overwrite_existing);
    const double rate = intake(box);
    memory_.push_back(mebibytes_of(box.pid()));
    box.kill9();
    fs::remove_all(box.state());
    return rate;
  }

  double by_place() {
    Appliance box(HOLDFAST_BINARY, setup("stream_sequence", directory_ + "/places"));
    const double rate = intake(box);
    box.kill9();
    fs::remove_all(box.state());
    return rate;
  }

  double memory() const { return median(memory_); }

 private:
  ApplianceSetup setup(const std::string& identity, const std::string& state) {
    const std::string source = fmt::format("consumer = \"c{}\"\nidentity = \"{}\"", ++consumers_, identity);
    return {nats_source(edge_.url(), "EDGE", source) + nats_target("hub", "nats://127.0.0.1:1"),
            "max_bytes = \"100GiB\"\nlinger = \"10m\"", state};
  }

  // Ids that no ledger knows.
  double intake(Appliance& box) {
    JetStreamClient client(edge_.url());
    if (streams_++ > 0) client.delete_stream("EDGE");
    client.make_stream("EDGE", {"telemetry.>"});
    client.publish_many("telemetry.a", 1, kMessages, kSize, fmt::format("round-{}-", streams_));
    box.start();
    Meter meter(kMessages);
    watch(meter, [&] { return box.status()["accounting"]["taken"].count(); });
    return meter.rate();
  }

  NatsServer edge_;
  int consumers_ = 0, streams_ = 0;
  Appliance model_;
  const std::string directory_;
  std::vector<double> memory_;
};

}  // namespace

void measure_identities(const Scale& scale) {
  if (scale.quick) return;
  Scene scene(scale.directory + "/identities");
  const Pair pair = alternate(
      kRounds, [&] { return scene.with_ids(); }, [&] { return scene.by_place(); });
  report("intake_message_id", pair.ours, pair.limit, "records/s");
  report("rss_ledger_10m", scene.memory(), 64, "MiB");
  fs::remove_all(scale.directory + "/identities");
}

}  // namespace holdfast
