// Output in bounded memory: with nobody, with a slow client, with one that never reads.
#include <fstream>

#include "envd/test_support.h"

namespace caisson::envd {
namespace {

using OutputTest = Fixture;
using OutputLimitTest = Unbooted;

json::object Select(int64_t pid) { return {{"process", {{"pid", pid}}}}; }

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

TEST_F(OutputTest, AProcessNobodyFollowsIsNeverHeldUp) {
  int64_t pid = 0;
  {
    Call call = Stream("process.Process/Start",
                       BashRequest("sleep 0.3; head -c 200000000 /dev/zero; touch done"));
    pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  }
  EXPECT_TRUE(Until([&] { return !ProcessExists(pid); }));
  EXPECT_TRUE(std::ifstream(Path("done")).good());
}

TEST_F(OutputLimitTest, AClientThatNeverReadsHoldsTheProcessAndIsDropped) {
  settings.limits.stall_timeout_ms = 4000;
  Boot();
  size_t before = ResidentBytes();
  // More than any socket buffer; the client does not read after the first event.
  Call call =
      Stream("process.Process/Start", BashRequest("head -c 400000000 /dev/zero; echo x > done"));
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  Wait(700ms);
  EXPECT_TRUE(ProcessExists(pid)) << "the process should wait for the client";
  EXPECT_LT(ResidentBytes(), before + (24 << 20));
  EXPECT_TRUE(Until([&] { return !ProcessExists(pid); })) << "the client should have been dropped";
  EXPECT_EQ(ReadBack("done"), "x\n");
  EXPECT_LT(ResidentBytes(), before + (24 << 20));
}

TEST_F(OutputTest, ASlowClientGetsEverything) {
  Call call = Stream("process.Process/Start", BashRequest("seq 1 2000000"));
  call.Next();
  Wait(500ms);
  Outcome outcome = call.Collect();
  std::string expected;
  for (int i = 1; i <= 2'000'000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(outcome.out == expected) << outcome.out.size() << " bytes";
  EXPECT_EQ(outcome.end.at("status").as_string(), "exit status 0");
}

TEST_F(OutputLimitTest, BoundsTheNumberOfFollowers) {
  settings.limits.max_subscribers = 2;
  Boot();
  Call starter = Stream("process.Process/Start", BashRequest("sleep 30"));
  int64_t pid = starter.Next()->body.at("event").at("start").at("pid").as_int64();
  {
    Call second = Stream("process.Process/Connect", Select(pid));
    second.Next();
    Outcome third = Stream("process.Process/Connect", Select(pid)).Collect();
    EXPECT_EQ(third.error.at("code").as_string(), "resource_exhausted");
  }
  // A client that went away gave its place back without any event.
  EXPECT_TRUE(Until([&] {
    auto first = Stream("process.Process/Connect", Select(pid)).Next();
    return first && !first->last() && first->body.at("event").as_object().contains("start");
  }));
  json::object signal = Select(pid);
  signal["signal"] = "SIGNAL_SIGKILL";
  Unary("process.Process/SendSignal", signal);
}

TEST_F(OutputTest, ManyProcessesAtOnce) {
  std::vector<Call> calls;
  for (int i = 0; i < 50; ++i)
    calls.push_back(Stream("process.Process/Start", BashRequest("echo " + std::to_string(i))));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(calls[static_cast<size_t>(i)].Collect().out, std::to_string(i) + "\n");
  EXPECT_EQ(Unary("process.Process/List", {}).body, "{}");
}

}  // namespace
}  // namespace caisson::envd
