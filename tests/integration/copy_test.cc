// A spool that was copied: it opens where it lies now. One that was put back to an older state: what had left since
// comes again under the same key, and nothing else happens.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

void copy_directory(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
  fs::permissions(to, fs::perms::owner_all);
  for (const auto& entry : fs::recursive_directory_iterator(to)) {
    fs::permissions(entry.path(),
                    entry.is_directory() ? fs::perms::owner_all : fs::perms::owner_read | fs::perms::owner_write);
  }
}

// Without an uplink.
bool takes_into_files(Scene& scene, std::uint64_t count) {
  scene.hub.kill();
  scene.box.start();
  scene.publish(1, count);
  return in_files(scene.box, count);
}

TEST(Copy, InAnotherDirectory_Opens) {
  Scene scene("linger = \"200ms\"");
  ASSERT_TRUE(takes_into_files(scene, 500));
  scene.publish(501, 500);
  ASSERT_TRUE(taken(scene.box, 1000));
  scene.box.kill9();  // some of it in the journal

  const std::string moved = scene.box.directory() + "/moved";
  copy_directory(scene.box.state(), moved);
  scene.box.configure({nats_source(scene.edge.url(), kEdgeStream) + nats_target("hub", scene.hub.url()), "", moved});
  scene.hub.start();
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 1000)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1000), kEachOnce);
  EXPECT_TRUE(scene.box.audit()["balanced"].flag());
}

TEST(Copy, OlderOnePutBack_CostsRepetitionsAndNothingElse) {
  Scene scene("linger = \"200ms\"");
  ASSERT_TRUE(takes_into_files(scene, 500));
  ASSERT_EQ(scene.box.terminate(), 0);
  const std::string older = scene.box.directory() + "/older";
  copy_directory(scene.box.state(), older);

  scene.hub.start();
  scene.box.start();
  scene.publish(501, 500);
  ASSERT_TRUE(delivered(scene.box, 1000)) << pretty_json_text(scene.box.status());
  ASSERT_EQ(scene.box.terminate(), 0);

  copy_directory(older, scene.box.state());
  scene.box.start();
  scene.publish(1001, 500);
  ASSERT_TRUE(delivered(scene.box, 1000)) << pretty_json_text(scene.box.status());
  const Json hub = scene.box.target("hub");
  EXPECT_EQ(hub["duplicates"].count(), 500u) << "the hub knows them by their keys";
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1500), kEachOnce);
  EXPECT_EQ(scene.box.audit()["lost"].count(), 0u);
  EXPECT_TRUE(scene.box.audit()["balanced"].flag());
}

}  // namespace
}  // namespace holdfast
