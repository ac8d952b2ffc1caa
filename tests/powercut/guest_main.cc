// The first process of the guest: makes of a bare kernel a box with a spool on its disk, looks at what the last life
// left, and works until the power goes. Speaks on the serial line:
//
//   ACK n       the source was told to forget all messages up to n
//   WRONG text  a promise was broken
//   GOOD text   what the last life left was looked at
//   END         stopped as it should
//
// The kernel's command line says what to do: holdfast.do=work (the first disk, for holdfast.ms milliseconds, then a
// clean stop) or holdfast.do=look (each disk: look, stop, start, look), holdfast.seed=, holdfast.fs=, holdfast.acked=
// (what the host heard of by ACK).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "crypto/text.h"
#include "tests/powercut/box.h"

namespace holdfast {
namespace {

void say(const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
}

std::map<std::string, std::string> orders() {
  std::ifstream in("/proc/cmdline");
  std::map<std::string, std::string> found;
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (word.starts_with("holdfast.") && equals != word.npos)
      found[word.substr(9, equals - 9)] = word.substr(equals + 1);
  }
  return found;
}

void load_modules() {
  std::set<std::filesystem::path> modules;
  for (const auto& entry : std::filesystem::directory_iterator("/modules")) modules.insert(entry.path());
  for (const auto& module : modules) {
    const int fd = ::open(module.c_str(), O_RDONLY | O_CLOEXEC);
    if (::syscall(SYS_finit_module, fd, "", 0) != 0) say("WRONG module " + module.string());
    ::close(fd);
  }
}

class Guest {
 public:
  Guest() : orders_(orders()) {}

  void run() {
    if (orders_["do"] == "work") {
      work("/dev/vda");
    } else {
      for (char disk = 'a'; ::access(device(disk).c_str(), F_OK) == 0; ++disk) look(device(disk));
    }
    say("END");
  }

 private:
  static std::string device(char letter) { return std::string("/dev/vd") + letter; }
  std::uint64_t number(const std::string& name) { return parse_decimal<std::uint64_t>(orders_[name]).value_or(0); }

  void wrong(const std::string& device, const std::string& what) { say("WRONG " + device + ": " + what); }

  // Opens what lies on the disk, looks at it, and hands it on.
  void with_box(const std::string& device, const std::function<void(Box&)>& use) {
    if (::mount(device.c_str(), "/disk", orders_["fs"].c_str(), 0, "") != 0) return wrong(device, "cannot be mounted");
    ::mkdir("/disk/spool", 0700);
    if (const auto outside = Outside::open(device)) {
      if (outside->acknowledged() < number("acked")) wrong(device, "the rig forgot what was acknowledged");
      Box box("/disk/spool", *outside, [&](const std::string& what) { wrong(device, what); });
      say("OPENING " + device);
      if (box.open()) {
        box.check(static_cast<std::uint32_t>(number("seed")));
        say("GOOD " + device + ": " + box.summary());
        use(box);
      }
    } else {
      wrong(device, "has no place for the world outside");
    }
    if (::umount("/disk") != 0) wrong(device, "cannot be unmounted");
  }

  void work(const std::string& device) {
    with_box(device, [&](Box& box) {
      box.work(static_cast<std::uint32_t>(number("seed")), std::chrono::milliseconds(number("ms")),
               [](std::uint64_t upto) { say(fmt::format("ACK {}", upto)); });
      box.close();
    });
  }

  void look(const std::string& device) {
    for (int start = 0; start < 2; ++start) with_box(device, [](Box& box) { box.close(); });
  }

  std::map<std::string, std::string> orders_;
};

}  // namespace
}  // namespace holdfast

int main() {
  ::mount("proc", "/proc", "proc", 0, "");
  ::mount("sys", "/sys", "sysfs", 0, "");
  ::mount("dev", "/dev", "devtmpfs", 0, "");
  holdfast::load_modules();
  if (holdfast::init_crypto()) holdfast::Guest().run();
  ::reboot(RB_POWER_OFF);
}
