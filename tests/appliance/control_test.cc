#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "appliance/control_client.h"
#include "appliance/control_server.h"
#include "appliance/progress.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// A door that opens once.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait(Nanoseconds limit = 20s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class Control : public ::testing::Test {
 protected:
  void TearDown() override {
    audit_may_end_.open();
    finish();
  }

  void serve(Nanoseconds patience = 10s) {
    const auto listening = listen_at(path_);
    ASSERT_TRUE(listening.ok()) << listening.error().text;
    server_ = std::make_unique<ControlServer>(
        loop_, *listening, [this](const CommandCall& call, const Peer& peer) { return handle(call, peer); }, patience);
    thread_ = std::thread([this] { loop_.run(); });
  }

  void finish() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
    if (server_) {
      EXPECT_TRUE(server_->stop(Progress::now() + 20s));
    }
    server_.reset();
  }

  CallAnswer handle(const CommandCall& call, const Peer& peer) {
    if (call.command == "fail") return {Error{ErrorKind::not_found, "nothing of that name"}};
    if (call.command == "forbid") return {Error{ErrorKind::invalid, "not you"}, 403};
    if (call.command == "audit") {
      audit_began_.open();
      audit_may_end_.wait();
    }
    Json json;
    json.set("command", call.command);
    json.set("arguments", call.arguments);
    json.set("uid", std::uint64_t{peer.uid});
    return {json};
  }

  std::unique_ptr<ControlClient> connect() {
    auto client = ControlClient::connect(path_);
    EXPECT_TRUE(client.ok()) << client.error().text;
    return client.ok() ? std::move(*client) : nullptr;
  }

  int raw_connection() {
    const auto fd = connect_to(path_);
    EXPECT_TRUE(fd.ok());
    return fd.ok() ? *fd : -1;
  }

  // What the server sends until it closes, or until `enough` is in it.
  std::string received(int fd, const std::string& enough = "") {
    std::string text;
    char buffer[4096];
    pollfd ready{fd, POLLIN, 0};
    while (enough.empty() || text.find(enough) == std::string::npos) {
      if (::poll(&ready, 1, 20'000) != 1) return text + " (nothing more within 20 s)";
      const ssize_t got = ::read(fd, buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }

  std::string exchange(const std::string& request) {
    const int fd = raw_connection();
    EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    std::string answer = received(fd, "}");
    ::close(fd);
    return answer;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "run/control.sock";
  Gate audit_began_, audit_may_end_;
  ControlLoop loop_;
  std::unique_ptr<ControlServer> server_;
  std::thread thread_;
};

TEST_F(Control, ACommand_IsAnsweredWithWhoAsked) {
  serve();
  Json arguments;
  arguments.set("after", 17);
  const auto answer = connect()->ask("spool list", arguments);
  ASSERT_TRUE(answer.ok()) << answer.error().text;
  EXPECT_EQ((*answer)["command"].text(), "spool list");
  EXPECT_EQ((*answer)["arguments"]["after"].count(), 17u);
  EXPECT_EQ((*answer)["uid"].count(), ::geteuid());
}

TEST_F(Control, OneConnection_CarriesManyCommands) {
  serve();
  const auto client = connect();
  for (int n = 0; n < 100; ++n) ASSERT_TRUE(client->ask("status", Json()).ok());
}

TEST_F(Control, AFailure_ComesBackAsItWas) {
  serve();
  const auto client = connect();
  const auto missing = client->ask("fail", Json());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
  EXPECT_EQ(missing.error().text, "nothing of that name");
  const auto forbidden = client->ask("forbid", Json());
  ASSERT_FALSE(forbidden.ok());
  EXPECT_EQ(forbidden.error().text, "not you");
}

TEST_F(Control, PlainHttp_IsSpoken) {
  serve();
  EXPECT_NE(exchange("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n").find("HTTP/1.1 200 OK"), std::string::npos);
  EXPECT_NE(exchange("GET /v1/forbid HTTP/1.1\r\nHost: x\r\n\r\n").find("HTTP/1.1 403 "), std::string::npos);
  EXPECT_NE(exchange("GET /v1/fail HTTP/1.1\r\nHost: x\r\n\r\n").find("HTTP/1.1 404 "), std::string::npos);
  EXPECT_NE(exchange("GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n").find("HTTP/1.1 404 "), std::string::npos);
  EXPECT_NE(exchange("PUT /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").find("HTTP/1.1 400 "),
            std::string::npos);
  EXPECT_NE(exchange("POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n[1,]").find("HTTP/1.1 400 "),
            std::string::npos);
}

TEST_F(Control, AnOversizedRequest_IsRefused_AndTheNextIsServed) {
  serve();
  Json arguments;
  arguments.set("reason", std::string(2 * kMaxRequestBytes, 'x'));
  const auto answer = connect()->ask("spool discard", arguments);
  ASSERT_FALSE(answer.ok());
  EXPECT_TRUE(connect()->ask("status", Json()).ok());
  EXPECT_NE(exchange("POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n").find("HTTP/1.1 413 "),
            std::string::npos);
  EXPECT_NE(exchange("GET /v1/status HTTP/1.1\r\nHost: " + std::string(20'000, 'x') + "\r\n\r\n").find("HTTP/1.1 413 "),
            std::string::npos);
}

TEST_F(Control, WhatIsNoHttp_IsCutOff) {
  serve();
  const int fd = raw_connection();
  ASSERT_EQ(::send(fd, "\0\xff\0\r\n\r\n", 7, MSG_NOSIGNAL), 7);
  EXPECT_EQ(received(fd), "");
  ::close(fd);
  EXPECT_TRUE(connect()->ask("status", Json()).ok());
}

TEST_F(Control, WhoSaysNothing_IsCutOff) {
  serve(50ms);
  const int silent = raw_connection();
  const int slow = raw_connection();
  ASSERT_EQ(::send(slow, "GET /v1/st", 10, MSG_NOSIGNAL), 10);
  EXPECT_EQ(received(silent), "");
  EXPECT_EQ(received(slow), "");
  ::close(silent);
  ::close(slow);
}

TEST_F(Control, ALongCommand_HoldsUpNoOther) {
  serve();
  std::thread patient([this] { EXPECT_TRUE(connect()->ask("audit", Json()).ok()); });
  ASSERT_TRUE(audit_began_.wait());
  EXPECT_TRUE(connect()->ask("status", Json()).ok());
  audit_may_end_.open();
  patient.join();
}

TEST_F(Control, ConnectionsAboveTheBound_WaitForAPlace) {
  serve();
  std::vector<int> idle;
  for (std::size_t n = 0; n < kMaxConnections; ++n) {
    idle.push_back(raw_connection());
    ASSERT_EQ(::send(idle.back(), "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", 36, MSG_NOSIGNAL), 36);
    ASSERT_NE(received(idle.back(), "uid").find("200 OK"), std::string::npos);
  }
  const int late = raw_connection();
  ASSERT_EQ(::send(late, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", 36, MSG_NOSIGNAL), 36);
  pollfd ready{late, POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 100), 0) << "served above the bound";
  ::close(idle.back());
  idle.pop_back();
  EXPECT_NE(received(late, "uid").find("200 OK"), std::string::npos);
  ::close(late);
  for (const int fd : idle) ::close(fd);
}

TEST_F(Control, Stopping_WaitsForACommandOnlySoLong) {
  serve();
  const int asking = raw_connection();
  ASSERT_EQ(::send(asking, "GET /v1/audit HTTP/1.1\r\nHost: x\r\n\r\n", 35, MSG_NOSIGNAL), 35);
  ASSERT_TRUE(audit_began_.wait());
  loop_.stop();
  thread_.join();
  EXPECT_FALSE(server_->stop(Progress::now() + 20ms));
  audit_may_end_.open();
  EXPECT_TRUE(server_->stop(Progress::now() + 20s));
  ::close(asking);
}

TEST_F(Control, TheSocket_IsForItsGroupOnly) {
  const mode_t before = ::umask(0);
  serve();
  ::umask(before);
  struct stat facts {};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0660u);
  ASSERT_EQ(::stat((directory_ / "run").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0750u);
}

TEST_F(Control, AStaleSocket_IsReplaced_ALiveOneIsNot) {
  const auto first = listen_at(path_);
  ASSERT_TRUE(first.ok());
  const auto second = listen_at(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::exists);
  ::close(*first);  // as a kill would leave it
  const auto third = listen_at(path_);
  ASSERT_TRUE(third.ok()) << third.error().text;
  ::close(*third);
}

TEST_F(Control, AFileInThePlaceOfTheSocket_IsNotRemoved) {
  ASSERT_EQ(::mkdir((directory_ / "run").c_str(), 0750), 0);
  std::ofstream(path_) << "precious";
  const auto listening = listen_at(path_);
  ASSERT_FALSE(listening.ok());
  EXPECT_EQ(listening.error().kind, ErrorKind::exists);
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
}

TEST_F(Control, WhereNobodyListens_ThatIsSaid) {
  const auto absent = ControlClient::connect(path_);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().kind, ErrorKind::not_found);
  ::close(*listen_at(path_));
  const auto stale = ControlClient::connect(path_);
  ASSERT_FALSE(stale.ok());
  EXPECT_EQ(stale.error().kind, ErrorKind::not_found);
  EXPECT_EQ(ControlClient::connect("/" + std::string(200, 'x')).error().kind, ErrorKind::invalid);
}

TEST_F(Control, AnApplianceThatLeaves_IsNotWaitedForForEver) {
  const auto listening = listen_at(path_);
  ASSERT_TRUE(listening.ok());
  const auto client = connect();
  const auto late = client->ask("status", Json(), 50ms);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().kind, ErrorKind::unavailable);
  ::close(*listening);
}

TEST(ControlWire, CallsAndTargets_AreEachOthersOpposite) {
  for (const char* command : {"status", "spool list", "quarantine requeue", "target kick"}) {
    const auto call = read_call("POST", call_target(command), "");
    ASSERT_TRUE(call.ok());
    EXPECT_EQ(call->command, command);
  }
}

TEST(ControlWire, WhatIsNoCall_IsRefused) {
  EXPECT_EQ(read_call("DELETE", "/v1/status", "").error().kind, ErrorKind::invalid);
  for (const char* target :
       {"", "/", "/v2/status", "/v1/Status", "/v1/a%20b", "/v1/status?x=1", "/v1/../etc", "v1/status"})
    EXPECT_EQ(read_call("GET", target, "").error().kind, ErrorKind::not_found) << target;
  for (const char* body : {"[]", "1", "{", "\"x\"", "{}{}"})
    EXPECT_EQ(read_call("POST", "/v1/status", body).error().kind, ErrorKind::invalid) << body;
}

TEST(ControlWire, Failures_SurviveTheWay) {
  for (const ErrorKind kind : {ErrorKind::full, ErrorKind::io, ErrorKind::corrupt, ErrorKind::unavailable,
                               ErrorKind::invalid, ErrorKind::not_found, ErrorKind::exists}) {
    const Error read = read_failure(failure_body({kind, "why \"not\""}));
    EXPECT_EQ(read.kind, kind);
    EXPECT_EQ(read.text, "why \"not\"");
    EXPECT_GE(status_of(read), 400);
  }
  EXPECT_EQ(read_failure("<html>").kind, ErrorKind::unavailable);
}

}  // namespace
}  // namespace holdfast
