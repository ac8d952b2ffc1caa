// The main thread's loop: signals, what happens every so often, and the control socket. Everything that runs in it must
// return soon; what may take long runs elsewhere.
//
// Threads: run() in one; stop() and post() from any; the rest before run().
#pragma once

#include <functional>
#include <memory>

#include "spool/clock.h"

namespace boost::asio {
class io_context;
}

namespace holdfast {

class ControlLoop {
 public:
  ControlLoop();
  ~ControlLoop();

  // SIGTERM, SIGINT, SIGHUP. Nothing else is done about them then.
  void on_signal(std::function<void(int)> heard);
  void every(Nanoseconds interval, std::function<void()> work);
  void post(std::function<void()> work);

  void run();  // until stop()
  void stop();

  boost::asio::io_context& context();  // for control_*.cc

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
