#include "appliance/config_target.h"

#include <tuple>
#include "appliance/config_http.h"
#include "appliance/config_s3.h"
#include "appliance/config_sql.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kKiB = 1ull << 10;
constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kGiB = 1ull << 30;

TargetSettings read_nats(ConfigTable& in) {
  NatsTargetConfig nats;
  read_address(in, nats.address);
  in.text("stream", nats.stream, nats_name_rule);
  in.text("subject", nats.subject, subject_template_rule);
  in.text("bucket", nats.bucket, bucket_rule);
  in.text("key", nats.key, key_template_rule);
  in.choice<ExistingValue>(
      "existing", nats.existing,
      {{"fail", ExistingValue::fail}, {"skip", ExistingValue::skip}, {"replace", ExistingValue::replace}});
  for (const char* key : {"stream", "subject"}) {
    if (in.has("bucket") && in.has(key)) in.complain(key, "cannot be used together with bucket, which has its own");
  }
  for (const char* key : {"key", "existing"}) {
    if (!in.has("bucket") && in.has(key)) in.complain(key, "is for a bucket; name one, or leave it out");
  }
  return nats;
}

TargetSettings read_file(ConfigTable& in) {
  FileTargetConfig file;
  in.required_text("directory", file.directory, path_rule);
  using Form = std::pair<FileFormat, bool>;  // and whether it is an archive
  Form form{file.format, false};
  in.choice<Form>(
      "format", form,
      {{"json", {FileFormat::json, false}}, {"raw", {FileFormat::raw, false}}, {"ndjson", {FileFormat::json, true}}});
  std::tie(file.format, file.archive) = form;
  in.choice<FileLayout>("layout", file.layout,
                        {{"flat", FileLayout::flat}, {"date", FileLayout::date}, {"subject", FileLayout::subject}});
  in.choice<Compression>("compression", file.compression,
                         {{"none", Compression::none}, {"gzip", Compression::gzip}, {"zstd", Compression::zstd}});
  in.bytes("rotate_bytes", file.rotate_bytes, kMiB, 16 * kGiB);
  in.duration("rotate_after", file.rotate_after, std::chrono::seconds(1), std::chrono::hours(24 * 365));
  for (const char* key : {"layout", "compression"}) {
    if (file.archive && in.has(key)) in.complain(key, "is for one file a record, not for format = \"ndjson\"");
  }
  for (const char* key : {"rotate_bytes", "rotate_after"}) {
    if (!file.archive && in.has(key)) in.complain(key, "is for format = \"ndjson\" alone");
  }
  return file;
}

TargetSettings read_http_settings(ConfigTable& in) {
  return read_http(in);
}

TargetSettings read_postgres(ConfigTable& in) {
  return read_sql(in, SqlDialect::postgres);
}

TargetSettings read_mysql(ConfigTable& in) {
  return read_sql(in, SqlDialect::mysql);
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
  in.required_choice<ReadSettings>("type", read_settings,
                                   {{"nats", read_nats},
                                    {"file", read_file},
                                    {"http", read_http_settings},
                                    {"s3", read_s3_settings},
                                    {"postgres", read_postgres},
                                    {"mysql", read_mysql}});
  in.flag("required", target.required);
  in.count("window", target.window, 1, 65536);
  in.bytes("window_bytes", target.window_bytes, 64 * kKiB, kGiB);
  in.choice<Drain>("order", target.order, {{"fifo", Drain::fifo}, {"priority", Drain::priority}});
  target.settings = read_settings(in);
  return target;
}

}  // namespace holdfast
