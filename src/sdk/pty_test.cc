// A shell at a terminal of the real envd.
#include "sdk/pty.h"

#include "sdk/test_support.h"

namespace caisson::sdk {
namespace {

using Kind = ProcessEvent::Kind;
using ::testing::HasSubstr;

class PtyTest : public EnvdFixture {
 protected:
  static PtyCommand Shell() {
    return {.argv = {"/bin/bash", "--norc", "--noprofile", "-i"},
            .env = {{"PS1", "$ "}},
            .user = "root",
            .size = {100, 30}};
  }
  // Reads until `wanted` is shown.
  static Task<std::string> ReadUntil(Pty& pty, std::string wanted) {
    std::string shown;
    while (shown.find(wanted) == std::string::npos) {
      auto event = co_await pty.Next();
      if (!event || event->kind == Kind::kEnded) break;
      shown += event->data;
    }
    co_return shown;
  }
  static Task<int> ReadToEnd(Pty& pty) {
    for (;;) {
      auto event = co_await pty.Next();
      if (!event) co_return -1;
      if (event->kind == Kind::kEnded) co_return event->exit_code;
    }
  }
};

TEST_F(PtyTest, TypingResizingAndTheEnd) {
  EnvdClient client = Client();
  Pty pty(client, "a-tag");
  ASSERT_TRUE(Await(pty.Start(Shell())));
  EXPECT_GT(pty.pid(), 0);
  ASSERT_TRUE(Await(pty.Send("echo $((6*7))x; stty size\n")));
  EXPECT_THAT(Await(ReadUntil(pty, "30 100\r\n")), HasSubstr("42x\r\n"));
  ASSERT_TRUE(Await(pty.Resize({120, 40})));
  ASSERT_TRUE(Await(pty.Send("stty size\n")));
  EXPECT_THAT(Await(ReadUntil(pty, "40 120\r\n")), HasSubstr("40 120"));
  ASSERT_TRUE(Await(pty.Send("exit 3\n")));
  EXPECT_EQ(Await(ReadToEnd(pty)), 3);
}

TEST_F(PtyTest, WhoKnowsTheTagComesBack) {
  EnvdClient client = Client();
  int64_t pid = 0;
  {
    Pty pty(client, "a-tag");
    ASSERT_TRUE(Await(pty.Start(Shell())));
    ASSERT_TRUE(Await(pty.Send("mine=kept\n")));
    pid = pty.pid();
  }
  Pty again(client, "a-tag");
  ASSERT_TRUE(Await(again.Follow()));
  EXPECT_EQ(again.pid(), pid);
  ASSERT_TRUE(Await(again.Send("echo $mine-$((1+1))\n")));
  EXPECT_THAT(Await(ReadUntil(again, "kept-2")), HasSubstr("kept-2"));
  ASSERT_TRUE(Await(again.Kill()));
  EXPECT_EQ(Await(ReadToEnd(again)), 137);
  EXPECT_EQ(Await(again.Send("x")).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(again.Kill()).error().code(), Code::kNotFound);
}

TEST_F(PtyTest, WhatDoesNotStartOrIsNotThereIsAnError) {
  EnvdClient client = Client();
  Pty pty(client, "a-tag");
  PtyCommand command = Shell();
  command.argv = {"/no/such/program"};
  EXPECT_FALSE(Await(pty.Start(command)));
  EXPECT_EQ(Await(pty.Follow()).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(pty.Next()).error().code(), Code::kFailedPrecondition);
  command = Shell();
  command.user = "nobody-of-this-name";
  EXPECT_EQ(Await(pty.Start(command)).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace caisson::sdk
