// What a target of type "nats" may be told, and what is said of what it may not.
#include <gtest/gtest.h>

#include "appliance/config_file.h"

namespace holdfast {
namespace {

LoadedConfig with(const std::string& lines) {
  return parse_config(
      "[appliance]\nsite = \"truck-07\"\n[spool]\nkey_file = \"/k\"\n[[target]]\nname = \"hub\"\ntype = \"nats\"\n"
      "url = \"nats://hub.example:4222\"\n" +
      lines);
}

std::string errors_of(const std::string& lines) {
  std::string text;
  for (const Finding& finding : with(lines).errors) text += finding.key + " " + finding.text + '\n';
  return text;
}

TEST(ConfigNatsTarget, Stream_Subject_Bucket_AreRead) {
  const LoadedConfig plain = with("");
  ASSERT_TRUE(plain.ok());
  const auto& defaults = std::get<NatsTargetConfig>(plain.config.targets[0].settings);
  EXPECT_EQ(defaults.stream + defaults.subject + defaults.bucket + defaults.key, "");
  EXPECT_EQ(defaults.existing, ExistingValue::fail);

  const LoadedConfig stream = with("stream = \"HUB\"\nsubject = \"site.{site}.{subject}\"\n");
  ASSERT_TRUE(stream.ok());
  const auto& to_stream = std::get<NatsTargetConfig>(stream.config.targets[0].settings);
  EXPECT_EQ(to_stream.stream, "HUB");
  EXPECT_EQ(to_stream.subject, "site.{site}.{subject}");

  const LoadedConfig bucket = with("bucket = \"STATE\"\nkey = \"{site}/{2}\"\nexisting = \"replace\"\n");
  ASSERT_TRUE(bucket.ok());
  const auto& to_bucket = std::get<NatsTargetConfig>(bucket.config.targets[0].settings);
  EXPECT_EQ(to_bucket.bucket, "STATE");
  EXPECT_EQ(to_bucket.key, "{site}/{2}");
  EXPECT_EQ(to_bucket.existing, ExistingValue::replace);
}

TEST(ConfigNatsTarget, WhatCannotBe_IsNamed) {
  EXPECT_EQ(
      errors_of("stream = \"A.B\""),
      "target.stream must be a name as JetStream takes it: printable, without spaces, '.', '*', '>', '/' or '\\'\n");
  for (const char* subject : {"", "site.{nobody}", "a..{subject}", "a.*", "{subject}.>", "{subject", "a b"}) {
    EXPECT_EQ(errors_of(std::string("subject = \"") + subject + '"'),
              "target.subject must be a subject with {subject}, {site}, {stream}, {key} or {1} to {99} in it, like "
              "\"site.{site}.{subject}\"\n")
        << subject;
  }
  EXPECT_EQ(errors_of("bucket = \"A.B\""),
            "target.bucket must be the name of a bucket: letters, digits, '-' and '_'\n");
  EXPECT_EQ(
      errors_of("bucket = \"A\"\nkey = \"a:{key}\""),
      "target.key must be a key with {key}, {subject}, {site}, {stream} or {1} to {99} in it, like \"{site}/{2}\": "
      "letters, digits, '-', '_', '/' and single dots between them\n");
  EXPECT_NE(errors_of("bucket = \"A\"\nexisting = \"overwrite\"").find("target.existing"), std::string::npos);
}

TEST(ConfigNatsTarget, ABucketHasItsOwnStreamAndSubject_AndItsKeysAreItsAlone) {
  EXPECT_EQ(errors_of("bucket = \"A\"\nstream = \"B\"\nsubject = \"c\""),
            "target.stream cannot be used together with bucket, which has its own\n"
            "target.subject cannot be used together with bucket, which has its own\n");
  EXPECT_EQ(errors_of("key = \"{key}\"\nexisting = \"skip\""),
            "target.key is for a bucket; name one, or leave it out\n"
            "target.existing is for a bucket; name one, or leave it out\n");
}

}  // namespace
}  // namespace holdfast
