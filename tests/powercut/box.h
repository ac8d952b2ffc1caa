// The box under test: the real spool on a mounted disk, worked as the appliance works it, and looked at after each
// start.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/powercut/messages.h"
#include "tests/powercut/outside.h"

namespace holdfast {

class Box {
 public:
  // `directory` is the spool's. What goes wrong goes to `wrong`, once for each thing; it may be called by any thread.
  Box(const std::string& directory, Outside& outside, std::function<void(const std::string&)> wrong);
  ~Box();

  bool open();
  // Every promise that can be looked at from here, after a start.
  void check(std::uint32_t seed);
  // Takes in, delivers to upstreams that come and go, keeps house, until the time is over. `acknowledged` hears how far
  // the source was told to forget, after it was.
  void work(std::uint32_t seed, Nanoseconds time, const std::function<void(std::uint64_t)>& acknowledged);
  bool close();
  std::string summary() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
