// Cuts the power of a box again and again, and counts what each start finds.
//
//   powercut_rig --kernel FILE --initrd FILE --disk FILE --fs NAME [--cuts N] [--states N] [--seed S]
//
// A cut: the guest is killed while it works, or while it starts. What it had flushed, and what the host had taken, is
// there; what was only in the guest's memory is not. A state: of a life whose writes were logged, the disk as a loss of
// power could have left it at some moment: all that was flushed, and of the rest some, in any order, some torn. Both go
// on from what earlier lives left. `--disk` is a made file system with place behind it (outside.h).
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "crypto/text.h"
#include "tests/powercut/outside.h"
#include "tests/powercut/write_log.h"
#include "tests/support/patience.h"
#include "tests/support/program.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kBootLimit = seconds(60);    // to the first word of ours: an emulated machine may hang before it
constexpr int kBoots = 5;                          // so often in a row
constexpr Nanoseconds kStartLimit = seconds(120);  // a box that has said its first word and no other is a finding
constexpr Nanoseconds kWorkLimit = seconds(30);    // for a first acknowledgement, which a full box does not give
constexpr Nanoseconds kLookLimit = seconds(300);
constexpr std::size_t kStatesOfALife = 12;
constexpr std::uint64_t kLogBytes = 2ull << 30;  // sparse

struct Orders {
  std::string kernel, initrd, disk, fs = "ext4";
  std::uint64_t cuts = 10, states = 0, seed = 1;
};

// What one life said on the serial line.
struct Said {
  explicit Said(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      while (line.ends_with('\r')) line.pop_back();
      if (line.starts_with("ACK ")) acked = std::max(acked, parse_decimal<std::uint64_t>(line.substr(4)).value_or(0));
      if (line.starts_with("WRONG ")) wrong.push_back(line.substr(6));
      if (line.starts_with("GOOD ")) good.push_back(line.substr(5));
      if (line.find("Kernel panic") != line.npos) wrong.push_back(line);
      begun = begun || line.starts_with("OPENING ");
      ended = ended || line == "END";
    }
  }
  std::uint64_t acked = 0;
  std::vector<std::string> wrong, good;
  bool begun = false;  // our program has
  bool ended = false;
};

class Rig {
 public:
  explicit Rig(Orders orders)
      : orders_(std::move(orders)),
        dice_(static_cast<std::uint32_t>(orders_.seed)),
        directory_(fs::path(orders_.disk).parent_path()) {}

  int run() {
    for (std::uint64_t cut = 1; cut <= orders_.cuts && good(); ++cut) cut_once(cut);
    if (orders_.cuts > 0 && good()) look_at({orders_.disk});
    while (states_ < orders_.states && good()) lose_writes();
    fmt::print(
        "powercut: {} on {}: {} cuts ({} while it started), {} states after lost writes, {} lives looked at, "
        "{} messages acknowledged, {} wrong\n",
        good() ? "clean" : "WRONG", orders_.fs, cuts_, cuts_in_start_, states_, looked_, std::max(acked_, most_acked_),
        wrong_);
    return good() ? 0 : 1;
  }

 private:
  bool good() const { return wrong_ == 0; }
  std::string serial() const { return directory_ + "/serial.log"; }
  std::string log() const { return directory_ + "/writes.log"; }
  bool one_in(std::uint32_t of) { return dice_() % of == 0; }

  std::vector<std::string> machine(const std::string& does) {
    return {"qemu-system-x86_64",
            "-accel",
            "tcg,thread=multi",
            "-smp",
            "2",
            "-cpu",
            "max",
            "-m",
            "384",
            "-nodefaults",
            "-display",
            "none",
            "-serial",
            "stdio",
            "-no-reboot",
            "-kernel",
            orders_.kernel,
            "-initrd",
            orders_.initrd,
            "-append",
            fmt::format("console=ttyS0 quiet panic=-1 cryptomgr.notests holdfast.do={} holdfast.fs={} holdfast.seed={} "
                        "holdfast.acked={}",
                        does, orders_.fs, dice_(), acked_)};
  }
  static void add_disk(std::vector<std::string>& argv, const std::string& disk) {
    argv.insert(argv.end(), {"-drive", "file=" + disk + ",format=raw,if=virtio,cache=writeback"});
  }
  // Logged before it is written, with every flush in its place.
  void add_logged_disk(std::vector<std::string>& argv, const std::string& disk) {
    argv.insert(argv.end(), {"-blockdev", "driver=file,node-name=disk,filename=" + disk, "-blockdev",
                             "driver=file,node-name=log,filename=" + log(), "-blockdev",
                             "driver=blklogwrites,node-name=logged,file=disk,log=log,log-sector-size=512,"
                             "log-super-update-interval=1",
                             "-device", "virtio-blk-pci,drive=logged"});
  }

  void note(const Said& said, const std::string& where) {
    acked_ = std::max(acked_, said.acked);
    looked_ += said.good.size();
    for (const std::string& text : said.wrong) {
      ++wrong_;
      fmt::print("powercut: WRONG {}: {}\n", where, text);
    }
    std::fflush(stdout);
  }
  void wrong(const std::string& where, const std::string& text) {
    ++wrong_;
    fmt::print("powercut: WRONG {}: {}; the last it said:\n{}\n", where, text, last_lines());
  }
  std::string last_lines() const {
    const std::string text = file_text(serial());
    return text.substr(text.size() > 2000 ? text.size() - 2000 : 0);
  }

  // Until our program has begun in it.
  bool boot(Program& qemu, const std::vector<std::string>& argv) {
    for (int attempt = 0; attempt < kBoots; ++attempt) {
      qemu.kill();
      fs::remove(serial());
      qemu.start(argv, {serial(), serial()});
      eventually([&] { return !qemu.running() || said().begun; }, kBootLimit);
      if (said().begun) return true;
    }
    return false;
  }
  Said said() const { return Said(file_text(serial())); }

  // A life that works until its power goes, at a moment that the dice say.
  Said live_and_die(const std::vector<std::string>& argv, const std::string& where) {
    Program qemu;
    if (!boot(qemu, argv)) wrong(where, "the guest does not boot");
    const bool in_start = one_in(6);
    if (!in_start) {
      eventually([&] { return !qemu.running() || !said().good.empty() || !said().wrong.empty(); }, kStartLimit);
      if (said().good.empty() && said().wrong.empty()) wrong(where, "the guest did not come to work");
      // On a busy machine the guest is slow: a life in which nothing was acknowledged proves little.
      eventually([&] { return !qemu.running() || said().acked > acked_ || !said().wrong.empty(); }, kWorkLimit);
    }
    const Nanoseconds rest = in_start ? milliseconds(dice_() % 500) : milliseconds(50 + dice_() % 2500);
    stays([&] { return qemu.running(); }, rest);
    qemu.kill();
    cuts_in_start_ += in_start ? 1u : 0u;
    return said();
  }

  void cut_once(std::uint64_t cut) {
    const std::string where = fmt::format("cut {}", cut);
    auto argv = machine("work");
    // Some lives end as they should.
    argv.back() += fmt::format(" holdfast.ms={}", one_in(8) ? 500 : 600'000);
    add_disk(argv, orders_.disk);
    const Said heard = live_and_die(argv, where);
    ++cuts_;
    note(heard, where);
    if (!heard.good.empty()) fmt::print("powercut: {}: {}\n", where, heard.good.front());
  }

  void look_at(const std::vector<std::string>& disks) {
    auto argv = machine("look");
    for (const std::string& disk : disks) add_disk(argv, disk);
    Program qemu;
    if (!boot(qemu, argv)) return wrong("a look", "the guest does not boot");
    eventually([&] { return !qemu.running(); }, kLookLimit);
    qemu.kill();
    const Said heard = said();
    note(heard, fmt::format("after state {}", states_));
    if (!heard.ended) wrong("a look", "the guest did not come to its end");
    // Twice each: the second after a clean stop.
    if (good() && heard.good.size() != 2 * disks.size()) wrong("a look", "not every disk was looked at");
    if (good()) fmt::print("powercut: after state {}: {}\n", states_, heard.good.back());
  }

  // One life with its writes logged, and what power could have left of it at some moments.
  void lose_writes() {
    const std::string base = orders_.disk + ".base";
    fs::copy_file(orders_.disk, base, fs::copy_options::overwrite_existing);
    fs::remove(log());
    std::ofstream(log()).close();
    fs::resize_file(log(), kLogBytes);
    const std::uint64_t acked_before = acked_;
    auto argv = machine("work");
    argv.back() += " holdfast.ms=600000";
    add_logged_disk(argv, orders_.disk);
    const std::string where = fmt::format("the life before state {}", states_ + 1);
    const Said heard = live_and_die(argv, where);
    note(heard, where);
    const auto writes = read_write_log(log());
    if (!writes || writes->empty()) return wrong(where, "there is no log of its writes");
    most_acked_ = std::max(most_acked_, acked_);
    acked_ = acked_before;  // a state may be older than all that the life has acknowledged
    std::vector<std::string> disks;
    for (std::size_t i = 0; i < kStatesOfALife && states_ < orders_.states; ++i, ++states_) {
      const std::string disk = fmt::format("{}.{}", orders_.disk, i);
      fs::copy_file(base, disk, fs::copy_options::overwrite_existing);
      if (!apply_power_loss(log(), *writes, some_loss(*writes, i), dice_, disk))
        return wrong(where, "no state was made");
      disks.push_back(disk);
    }
    look_at(disks);
    if (!good()) return;
    // The next life begins where one of these ended.
    fs::rename(disks[dice_() % disks.size()], orders_.disk);
  }

  PowerLoss some_loss(const std::vector<LoggedWrite>& writes, std::size_t nth) {
    PowerLoss loss;
    loss.safe_from = (fs::file_size(orders_.disk) - kOutsideBytes) / 512;
    loss.entries = 1 + dice_() % writes.size();
    if (nth % 3 == 0) {  // just a flush
      while (loss.entries < writes.size() && !writes[loss.entries - 1].flush) ++loss.entries;
      return loss;
    }
    constexpr double kChances[] = {0.1, 0.5, 0.9, 1.0};
    loss.keeps = kChances[dice_() % 4];
    loss.tears = kChances[dice_() % 2];
    return loss;
  }

  const Orders orders_;
  std::mt19937 dice_;
  const std::string directory_;
  std::uint64_t acked_ = 0, most_acked_ = 0, cuts_ = 0, cuts_in_start_ = 0, states_ = 0, looked_ = 0, wrong_ = 0;
};

std::optional<Orders> read_orders(int argc, char** argv) {
  Orders orders;
  const std::map<std::string_view, std::string*> texts{
      {"--kernel", &orders.kernel}, {"--initrd", &orders.initrd}, {"--disk", &orders.disk}, {"--fs", &orders.fs}};
  const std::map<std::string_view, std::uint64_t*> numbers{
      {"--cuts", &orders.cuts}, {"--states", &orders.states}, {"--seed", &orders.seed}};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (const auto text = texts.find(argv[i]); text != texts.end()) {
      *text->second = argv[i + 1];
    } else if (const auto number = numbers.find(argv[i]); number != numbers.end()) {
      const auto parsed = parse_decimal<std::uint64_t>(argv[i + 1]);
      if (!parsed) return std::nullopt;
      *number->second = *parsed;
    } else {
      return std::nullopt;
    }
  }
  if (argc % 2 == 0 || orders.kernel.empty() || orders.initrd.empty() || orders.disk.empty()) return std::nullopt;
  return orders;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  const auto orders = holdfast::read_orders(argc, argv);
  if (!orders) {
    std::fputs("powercut_rig --kernel FILE --initrd FILE --disk FILE --fs NAME [--cuts N] [--states N] [--seed S]\n",
               stderr);
    return 2;
  }
  return holdfast::Rig(*orders).run();
}
