#include "forwarder/http_readback.h"

#include <gtest/gtest.h>

#include "tests/forwarder/delivered.h"
#include "tests/forwarder/worlds_http.h"

namespace holdfast {
namespace {

TEST(HttpReadback, AsksForEachKey_AndTakesItOutAgain) {
  std::map<std::string, int> copies{{"/held?a=b&key=msg%3A1", 1}, {"/held?a=b&key=msg%3A2", 3}};
  HttpStub stub([&](const StubRequest& request) -> StubAnswer {
    if (request.method == "DELETE") return {copies.erase(request.path) == 1 ? 204 : 404, {}, ""};
    return {200, {}, "{\"copies\":" + std::to_string(copies[request.path]) + "}"};
  });
  const auto readback = make_http_readback(stub.url("/held?a=b"), http_options(stub.url()));
  const std::vector<DueRecord> records{made_record(1, "a"), made_record(2, "b"), made_record(3, "c")};
  std::vector<Delivery> deliveries;
  for (const DueRecord& record : records) deliveries.push_back({&record, wire_key(record.key)});
  const auto held = readback->look(deliveries);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ((*held)[0].copies, 1u);
  EXPECT_EQ((*held)[1].copies, 3u);
  EXPECT_EQ((*held)[2].copies, 0u);
  EXPECT_TRUE(readback->remove(deliveries).ok());
  EXPECT_EQ((*readback->look(deliveries))[1].copies, 0u);
}

TEST(HttpReadback, WhatIsNoAnswer_IsNotTakenForOne) {
  for (const char* body : {"", "3", "{}", "{\"copies\":-1}", "{\"copies\":\"1\"}", "{\"copies\":1,\"as_sent\":1}"}) {
    EXPECT_FALSE(parse_held(body)) << body;
  }
  EXPECT_FALSE(parse_held("{\"copies\":1,\"as_sent\":false}")->as_sent);
  HttpStub stub([](const StubRequest&) -> StubAnswer { return {404, {}, "{\"copies\":1}"}; });
  const auto readback = make_http_readback(stub.url(), http_options(stub.url()));
  const DueRecord record = made_record(1, "a");
  const std::vector<Delivery> deliveries{{&record, "msg:1"}};
  EXPECT_FALSE(readback->look(deliveries).ok());
  stub.stop();
  EXPECT_FALSE(readback->look(deliveries).ok());
}

}  // namespace
}  // namespace holdfast
