#include "appliance/config_target.h"

#include "appliance/config_http.h"
#include "appliance/config_s3.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kKiB = 1ull << 10;
constexpr std::uint64_t kGiB = 1ull << 30;

TargetSettings read_nats(ConfigTable& in) {
  NatsTargetConfig nats;
  read_address(in, nats.address);
  return nats;
}

TargetSettings read_file(ConfigTable& in) {
  FileTargetConfig file;
  in.required_text("directory", file.directory, path_rule);
  in.choice<FileFormat>("format", file.format, {{"json", FileFormat::json}, {"raw", FileFormat::raw}});
  return file;
}

TargetSettings read_http_settings(ConfigTable& in) {
  return read_http(in);
}

TargetSettings read_s3_settings(ConfigTable& in) {
  return read_s3(in);
}

}  // namespace

void read_address(ConfigTable& in, NatsAddress& address) {
  in.required_text("url", address.url, nats_url_rule);
  in.text("creds_file", address.creds_file, path_rule);
  in.text("nkey_file", address.nkey_file, path_rule);
  in.text("tls_ca", address.tls_ca, path_rule);
  in.text("tls_cert", address.tls_cert, path_rule);
  in.text("tls_key", address.tls_key, path_rule);
}

TargetConfig read_target(ConfigTable& in) {
  using ReadSettings = TargetSettings (*)(ConfigTable & in);
  TargetConfig target;
  target.line = in.line();
  in.required_text("name", target.name, name_rule);
  ReadSettings read_settings = read_nats;
  in.required_choice<ReadSettings>(
      "type", read_settings,
      {{"nats", read_nats}, {"file", read_file}, {"http", read_http_settings}, {"s3", read_s3_settings}});
  in.flag("required", target.required);
  in.count("window", target.window, 1, 65536);
  in.bytes("window_bytes", target.window_bytes, 64 * kKiB, kGiB);
  in.choice<Drain>("order", target.order, {{"fifo", Drain::fifo}, {"priority", Drain::priority}});
  target.settings = read_settings(in);
  return target;
}

}  // namespace holdfast
