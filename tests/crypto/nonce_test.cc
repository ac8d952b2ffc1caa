// No nonce is given twice: not in a thread, not between threads, not by a forked child.
#include "crypto/nonce.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "crypto/secret.h"

namespace holdfast {
namespace {

const bool kReady = init_crypto();

std::vector<Nonce> draw(int count) {
  std::vector<Nonce> nonces;
  for (int i = 0; i < count; ++i) nonces.push_back(fresh_nonce());
  return nonces;
}

TEST(Nonce, ManyInManyThreads_AreAllDifferent) {
  ASSERT_TRUE(kReady);
  constexpr int kThreads = 4, kEach = 1000;
  std::vector<std::vector<Nonce>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (auto& nonces : drawn) threads.emplace_back([&nonces] { nonces = draw(kEach); });
  for (std::thread& thread : threads) thread.join();
  std::set<Nonce> all;
  for (const auto& nonces : drawn) all.insert(nonces.begin(), nonces.end());
  EXPECT_EQ(all.size(), std::size_t{kThreads * kEach});
}

TEST(Nonce, NoByteIsAlwaysTheSame) {
  std::array<std::set<std::uint8_t>, 24> values;
  for (const Nonce& nonce : draw(64))
    for (std::size_t i = 0; i < nonce.size(); ++i) values[i].insert(nonce[i]);
  for (const auto& seen : values) EXPECT_GT(seen.size(), 20u);
}

TEST(Nonce, ForkedChild_HasNoneOfItsParents) {
  fresh_nonce();  // so that the parent has a supply to inherit
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::vector<Nonce> nonces = draw(40);
    const auto size = static_cast<ssize_t>(nonces.size() * sizeof(Nonce));
    _exit(write(ends[1], nonces.data(), static_cast<std::size_t>(size)) == size ? 0 : 1);
  }
  close(ends[1]);
  std::set<Nonce> all;
  Nonce nonce;
  while (read(ends[0], nonce.data(), nonce.size()) == static_cast<ssize_t>(nonce.size())) all.insert(nonce);
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(all.size(), 40u);
  for (const Nonce& own : draw(40)) all.insert(own);
  EXPECT_EQ(all.size(), 80u);
}

}  // namespace
}  // namespace holdfast
