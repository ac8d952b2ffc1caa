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

TEST(ConfigFileTarget, WhatCannotBe_IsNamed) {
  EXPECT_NE(errors_of("layout = \"deep\"").find("target.layout"), std::string::npos);
  EXPECT_NE(errors_of("compression = \"lz4\"").find("target.compression"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
