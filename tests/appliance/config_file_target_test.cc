// What a target of type "file" may be told, and what is said of what it may not.
#include <gtest/gtest.h>

#include "appliance/config_file.h"

namespace holdfast {
namespace {

LoadedConfig with(const std::string& lines) {
  return parse_config(
      "[appliance]\nsite = \"truck-07\"\n[spool]\nkey_file = \"/k\"\n[[target]]\nname = \"shelf\"\ntype = \"file\"\n"
      "directory = \"/media/shelf\"\n" +
      lines);
}

FileTargetConfig target_of(const std::string& lines) {
  const LoadedConfig loaded = with(lines);
  EXPECT_TRUE(loaded.ok()) << lines;
  return loaded.ok() ? std::get<FileTargetConfig>(loaded.config.targets[0].settings) : FileTargetConfig();
}

std::string errors_of(const std::string& lines) {
  std::string text;
  for (const Finding& finding : with(lines).errors) text += finding.key + " " + finding.text + '\n';
  return text;
}

TEST(ConfigFileTarget, LayoutAndCompression_AreRead) {
  const FileTargetConfig plain = target_of("");
  EXPECT_EQ(plain.layout, FileLayout::flat);
  EXPECT_EQ(plain.compression, Compression::none);
  const FileTargetConfig all = target_of("layout = \"subject\"\ncompression = \"zstd\"\n");
  EXPECT_EQ(all.layout, FileLayout::subject);
  EXPECT_EQ(all.compression, Compression::zstd);
  EXPECT_EQ(target_of("layout = \"date\"\ncompression = \"gzip\"\n").compression, Compression::gzip);
}

TEST(ConfigFileTarget, AnArchive_HasItsRotation_AndNoFilesOfItsRecords) {
  EXPECT_FALSE(target_of("").archive);
  const FileTargetConfig archive = target_of("format = \"ndjson\"\nrotate_bytes = \"1MiB\"\nrotate_after = \"5s\"\n");
  EXPECT_TRUE(archive.archive);
  EXPECT_EQ(archive.rotate_bytes, 1u << 20);
  EXPECT_EQ(archive.rotate_after, std::chrono::seconds(5));
  EXPECT_EQ(target_of("format = \"ndjson\"\n").rotate_bytes, 64u << 20);
  EXPECT_EQ(errors_of("format = \"ndjson\"\nlayout = \"date\"\ncompression = \"gzip\""),
            "target.layout is for one file a record, not for format = \"ndjson\"\n"
            "target.compression is for one file a record, not for format = \"ndjson\"\n");
  EXPECT_EQ(errors_of("rotate_bytes = \"1MiB\"\nrotate_after = \"5s\""),
            "target.rotate_bytes is for format = \"ndjson\" alone\n"
            "target.rotate_after is for format = \"ndjson\" alone\n");
}

TEST(ConfigFileTarget, WhatCannotBe_IsNamed) {
  EXPECT_NE(errors_of("layout = \"deep\"").find("target.layout"), std::string::npos);
  EXPECT_NE(errors_of("compression = \"lz4\"").find("target.compression"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
