// `holdfast certify`: whether it is safe to send records to a target of the configuration, tried out on the real one
// (forwarder/certification.h). Takes the configuration only: no key, no spool, and a running service is not disturbed.
#pragma once

#include <optional>
#include <string>

#include "appliance/config.h"
#include "appliance/json.h"
#include "forwarder/certification.h"

namespace holdfast {

struct CertifyOptions {
  std::string config;
  std::string target;
  std::string subject;  // of the records; empty: one that a route leads to the target
  std::string payload;  // a file; empty: JSON that names the run
  std::string timeout = "5m";
  std::string remove;  // the run whose records are to be removed, and nothing else done
  bool keep = false;
  bool json = false;
};

// 0: safe, perhaps with conditions. 1: not safe. 2: the configuration or the options. 75: could not be proven.
int run_certify(const CertifyOptions& options);

// A subject that the target is sent: that of the first route which leads to it, "certify" in place of each wildcard;
// without routes that of a source. Nothing: none is named.
std::optional<std::string> certification_subject(const Config& config, const std::string& target);

Json certification_answer(const CertificationReport& report, const CertificationOptions& options,
                          const std::string& target);

}  // namespace holdfast
