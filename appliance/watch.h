// Tells the log what changed: what needs attention and what is well again, once each. What comes and goes within
// moments is not worth a line. Pure. Threads: one.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "appliance/appliance_status.h"

namespace holdfast {

class Watch {
 public:
  static constexpr Nanoseconds kWorthALine = std::chrono::seconds(3);

  struct Changes {
    std::vector<Attention> began;
    std::vector<Attention> ended;
  };
  Changes look(Nanoseconds now, const std::vector<Attention>& attentions);

 private:
  struct Known {
    Attention attention;
    Nanoseconds since{0};
    bool told = false;
    bool still = false;
  };
  std::map<std::pair<std::string, std::string>, Known> known_;  // by code and what it is about
};

}  // namespace holdfast
