// A resolver that does not return, behind a name of its own: this program's getaddrinfo stands before the library's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "forwarder/http_client.h"
#include "tests/support/http_stub.h"
#include "tests/support/patience.h"

namespace {

std::mutex mutex;
std::condition_variable changed;
bool let_go = false;
std::atomic<int> hanging{0};

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  if (host != nullptr && std::strcmp(host, "hangs.invalid") == 0) {
    ++hanging;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [] { return let_go; });
    }
    --hanging;
    return EAI_NONAME;
  }
  using Real = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, found);
}

namespace holdfast {
namespace {

using namespace std::chrono_literals;

HttpRequest request_to(const std::string& url) {
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  return request;
}

TEST(HttpDns, AResolverThatHangs_HoldsNeitherTheConnectLimitNorAnInterruption) {
  HttpClientOptions options;
  options.https_only = false;
  options.connect_limit = 300ms;
  HttpStub stub;
  {
    HttpClient client(options);
    const auto began = std::chrono::steady_clock::now();
    const auto response = client.exchange(request_to("http://hangs.invalid/"));
    ASSERT_TRUE(response.ok());
    EXPECT_EQ(response->fault, HttpFault::connect);
    EXPECT_FALSE(response->may_have_arrived);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
    EXPECT_EQ(hanging, 1) << "the resolver was left behind";
    EXPECT_EQ(client.exchange(request_to(stub.url()))->status, 204) << "and others go on";
  }
  options.connect_limit = 10min;
  options.deadline = 10min;
  {
    HttpClient client(options);
    std::atomic<bool> over = false;
    std::thread calling([&] {
      EXPECT_FALSE(client.exchange(request_to("http://hangs.invalid/")).ok());
      over = true;
    });
    EXPECT_TRUE(eventually([] { return hanging == 2; }));
    client.interrupt();
    EXPECT_TRUE(eventually([&] { return over.load(); }, 5s));
    calling.join();
  }
  const std::lock_guard lock(mutex);
  let_go = true;
  changed.notify_all();
}

// After all else, so that no thread of a resolver is at work when the process ends.
TEST(HttpDns, ThoseThatWereLeftBehind_EndInTheirOwnTime) {
  EXPECT_TRUE(eventually([] { return hanging == 0; }));
}

}  // namespace
}  // namespace holdfast
