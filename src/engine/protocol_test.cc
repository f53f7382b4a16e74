#include "engine/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace caisson::engine {
namespace {

class ProtocolTest : public testing::Test {
 protected:
  ProtocolTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    ours_.Reset(ends[0]);
    theirs_.Reset(ends[1]);
  }
  UniqueFd ours_, theirs_;
};

TEST_F(ProtocolTest, ASpecArrivesAsItWasSentWhateverItsBootDataHolds) {
  Spec spec{.id = "i1",
            .root_dir = "/templates/base/rootfs",
            .limits = {.cpus = 3, .memory_bytes = 5, .disk_bytes = int64_t{7} << 40, .pids = 9},
            .egress = {.allow = {"*.example.com"}, .deny = {"0.0.0.0/0"}},
            .boot = std::string("\n{\0\xff}\n", 7)};
  ASSERT_TRUE(Send(ours_.get(), EncodeSpec(spec)));
  auto message = Receive(theirs_.get());
  ASSERT_TRUE(message) << message.error().message();
  auto decoded = DecodeSpec(std::move(*message));
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->id, spec.id);
  EXPECT_EQ(decoded->root_dir, spec.root_dir);
  EXPECT_EQ(decoded->limits.cpus, 3);
  EXPECT_EQ(decoded->limits.memory_bytes, 5);
  EXPECT_EQ(decoded->limits.disk_bytes, int64_t{7} << 40);
  EXPECT_EQ(decoded->limits.pids, 9);
  EXPECT_EQ(decoded->egress, spec.egress);
  EXPECT_EQ(decoded->boot, spec.boot);
}

TEST_F(ProtocolTest, WhatIsNoMessageIsAnErrorAndNotACrash) {
  for (const char* text : {"x", "{}", "[]\n", "{\"a\":\n", "\n", "null\n", "{\"id\":1}"}) {
    ASSERT_TRUE(SendMessage(ours_.get(), text));
    auto message = Receive(theirs_.get());
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code(), Code::kInvalidArgument) << text;
  }
  for (const char* text : {"{}\n", "{\"id\":1}\n", "{\"id\":\"a\",\"root_dir\":null}\n"}) {
    ASSERT_TRUE(SendMessage(ours_.get(), text));
    auto message = Receive(theirs_.get());
    ASSERT_TRUE(message) << text;
    auto spec = DecodeSpec(std::move(*message));
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(DecodeInstance(json::value("text")));
  EXPECT_FALSE(DecodeUsage(json::object{{"at", "yesterday"}}));
}

TEST_F(ProtocolTest, NothingThereAndTheEndAreTold) {
  auto nothing = Receive(theirs_.get());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().sys_errno(), EAGAIN);
  ours_.Reset();
  auto end = Receive(theirs_.get());
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), Code::kUnavailable);
}

TEST_F(ProtocolTest, TooLongIsRefusedBeforeItIsSent) {
  Message message;
  message.body.assign(kMaxMessageBytes, 'x');
  Status sent = Send(ours_.get(), message);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Code::kOutOfRange);
}

TEST_F(ProtocolTest, DescriptorsTravelAlong) {
  Message message;
  message.head["a"] = 1;
  for (int i = 0; i < 3; ++i) message.fds.emplace_back(dup(0));
  ASSERT_TRUE(Send(ours_.get(), message));
  auto received = Receive(theirs_.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->fds.size(), 3u);
}

TEST_F(ProtocolTest, ErrorsKeepTheirCodeAndWords) {
  Error error(Code::kResourceExhausted, "all slots are taken");
  Status status = DecodeStatus({{"call", 1}, {"error", EncodeError(error)}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(status.error().message(), "all slots are taken");
  EXPECT_TRUE(DecodeStatus({{"call", 1}}));
  EXPECT_FALSE(DecodeStatus({{"error", 7}}));
  EXPECT_FALSE(DecodeStatus({{"error", {{"code", 99}, {"message", "?"}}}}));
}

TEST_F(ProtocolTest, ExitReasonsHaveNames) {
  for (ExitReason reason : {ExitReason::kEnvdExited, ExitReason::kEnvdKilled,
                            ExitReason::kOutOfMemory, ExitReason::kUnknown})
    EXPECT_EQ(DecodeExitReason(ExitReasonName(reason)), reason);
  EXPECT_FALSE(DecodeExitReason("bored"));
}

}  // namespace
}  // namespace caisson::engine
