#include "appliance/control_loop.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

struct Ticker : std::enable_shared_from_this<Ticker> {
  Ticker(boost::asio::io_context& context, Nanoseconds interval_in, std::function<void()> work_in)
      : timer(context), interval(interval_in), work(std::move(work_in)) {}

  void wait() {
    timer.expires_after(interval);
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& failed) {
      if (failed) return;
      self->work();
      self->wait();
    });
  }

  boost::asio::steady_timer timer;
  const Nanoseconds interval;
  const std::function<void()> work;
};

}  // namespace

struct ControlLoop::Parts {
  void listen() {
    signals.async_wait([this](const boost::system::error_code& failed, int signal) {
      if (failed) return;
      heard(signal);
      listen();
    });
  }

  boost::asio::io_context context{1};
  boost::asio::signal_set signals{context};
  std::function<void(int)> heard;
};

ControlLoop::ControlLoop() : parts_(std::make_unique<Parts>()) {}
ControlLoop::~ControlLoop() = default;

void ControlLoop::on_signal(std::function<void(int)> heard) {
  parts_->heard = std::move(heard);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) parts_->signals.add(signal);
  parts_->listen();
}

void ControlLoop::every(Nanoseconds interval, std::function<void()> work) {
  std::make_shared<Ticker>(parts_->context, interval, std::move(work))->wait();
}

void ControlLoop::post(std::function<void()> work) {
  boost::asio::post(parts_->context, std::move(work));
}

void ControlLoop::run() {
  const auto stay = boost::asio::make_work_guard(parts_->context);
  parts_->context.run();
}

void ControlLoop::stop() {
  parts_->context.stop();
}

boost::asio::io_context& ControlLoop::context() {
  return parts_->context;
}

}  // namespace holdfast
