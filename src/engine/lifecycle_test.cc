// Creating, reaching, measuring and destroying sandboxes through the engine process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "engine/pidfd.h"
#include "engine/test_support.h"

namespace caisson::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LifecycleTest : public testing::Test {
 protected:
  Spec NewSpec() { return TestSpec(engine_.config()); }
  // Creates one that must succeed, and returns its id.
  std::string Created(const Spec& spec) {
    auto instance = engine_.Create(spec);
    EXPECT_TRUE(instance) << instance.error().message();
    return spec.id;
  }

  TempDir dir_;
  TestEngine engine_{TestConfig(dir_)};
};

TEST_F(LifecycleTest, CreatedSandboxRunsCommandsAndIsGoneAfterDestroy) {
  engine_.WarmUp();
  Census before = Take(engine_);
  Spec spec = NewSpec();
  auto instance = engine_.Create(spec);
  ASSERT_TRUE(instance) << instance.error().message();
  EXPECT_EQ(instance->id, spec.id);
  EXPECT_GT(instance->pid, 0);
  EXPECT_LT(Now() - instance->created_at, std::chrono::seconds(60));
  CommandResult said = engine_.Run(spec.id, "echo it works; cat /boot-data");
  EXPECT_EQ(said.output, "it works\nhello");
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(engine_.List(), ElementsAre(spec.id));
  ASSERT_TRUE(engine_.Destroy(spec.id));
  EXPECT_TRUE(engine_.List().empty());
  EXPECT_EQ(AwaitCensus(engine_, before), before);
}

TEST_F(LifecycleTest, BootDataOfFullSizeArrivesUnchanged) {
  Spec spec = NewSpec();
  spec.boot.assign(kMaxBootBytes, '\n');
  for (size_t i = 0; i < spec.boot.size(); i += 7) spec.boot[i] = static_cast<char>('a' + i % 26);
  spec.boot.back() = '\0';
  auto host_sum = std::to_string(spec.boot.size());
  Created(spec);
  EXPECT_EQ(engine_.Run(spec.id, "stat -c %s /boot-data").output, host_sum);
  EXPECT_EQ(engine_.Run(spec.id, "head -c 8 /boot-data | od -An -c | tr -d ' '").output,
            "a\\n\\n\\n\\n\\n\\nh");
  spec.id = NewSpec().id;
  spec.boot += "x";
  auto refused = engine_.Create(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
}

TEST_F(LifecycleTest, DestroyIsIdempotentAndUnknownIdsSucceed) {
  std::string id = Created(NewSpec());
  EXPECT_TRUE(engine_.DestroyMany({id, id, id}));
  EXPECT_TRUE(engine_.Destroy(id));
  EXPECT_TRUE(engine_.Destroy("neverexisted"));
  Status bad = engine_.Destroy("../../etc");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), Code::kInvalidArgument);
}

TEST_F(LifecycleTest, SameIdTwiceIsRefused) {
  Spec spec = NewSpec();
  Created(spec);
  auto again = engine_.Create(spec);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(engine_.Run(spec.id, "echo alive").output, "alive");
}

TEST_F(LifecycleTest, OnlyTemplatesCanBecomeTheRootOfASandbox) {
  for (const char* path : {"/", "/etc", "/var/../", "/nowhere"}) {
    Spec spec = NewSpec();
    spec.root_dir = path;
    auto refused = engine_.Create(spec);
    ASSERT_FALSE(refused) << path;
    EXPECT_THAT(refused.error().message(), HasSubstr("template")) << path;
  }
}

TEST_F(LifecycleTest, TheReasonOfAFailedBootIsReported) {
  Spec spec = NewSpec();
  spec.boot = "fail:the user does not exist";
  auto failed = engine_.Create(spec);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), HasSubstr("the user does not exist"));
  spec = NewSpec();
  spec.boot = "exit";
  failed = engine_.Create(spec);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), HasSubstr("exit code 7"));
}

TEST_F(LifecycleTest, ASilentEnvdEndsAtTheDeadlineAndLeavesNothing) {
  engine_.WarmUp();
  Census before = Take(engine_);
  Spec spec = NewSpec();
  spec.boot = "hang";
  auto begin = std::chrono::steady_clock::now();
  auto failed = engine_.Create(spec, std::chrono::milliseconds(300));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kDeadlineExceeded);
  // Not after a minute, the engine's own limit.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(AwaitCensus(engine_, before), before);
}

TEST_F(LifecycleTest, DestroyWhileBeingBuiltCancelsTheBuild) {
  engine_.WarmUp();
  Census before = Take(engine_);
  Spec spec = NewSpec();
  spec.boot = "hang";
  auto begin = std::chrono::steady_clock::now();
  auto results = engine_.CreateThenDestroy(spec, std::chrono::milliseconds(500));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // of 60
  ASSERT_FALSE(results.first);
  EXPECT_TRUE(results.second) << results.second.error().message();
  EXPECT_TRUE(engine_.List().empty());
  EXPECT_EQ(AwaitCensus(engine_, before), before);
}

TEST_F(LifecycleTest, ManyAtOnceAllLiveAndAllDistinct) {
  std::vector<Spec> specs(20, NewSpec());
  for (Spec& spec : specs) spec.id = NewSpec().id;
  for (const auto& instance : engine_.CreateMany(specs))
    ASSERT_TRUE(instance) << instance.error().message();
  std::set<std::string> uid_maps, addresses;
  for (const Spec& spec : specs) {
    uid_maps.insert(engine_.Run(spec.id, "cat /proc/self/uid_map").output);
    addresses.insert(engine_.Run(spec.id, "hostname -I").output);
  }
  EXPECT_EQ(uid_maps.size(), specs.size());
  EXPECT_EQ(addresses.size(), specs.size());
  EXPECT_EQ(engine_.List().size(), specs.size());
}

TEST_F(LifecycleTest, DialReachesIpv4AndIpv6Loopback) {
  std::string id = Created(NewSpec());
  for (const char* address : {"::ffff:127.0.0.1", "::1"})
    EXPECT_EQ(engine_.Run(id, "echo yes", std::chrono::seconds(60), address).output, "yes");
  auto unknown = engine_.Dial("nosuchsandbox");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
}

TEST_F(LifecycleTest, ListenIsReachableFromInsideTheSandboxOnly) {
  std::string id = Created(NewSpec()), neighbour = Created(NewSpec());
  constexpr uint16_t kPort = 49'990;
  auto listener = engine_.Listen(id, kPort);
  ASSERT_TRUE(listener) << listener.error().message();
  const std::string knock = "exec 3<>/dev/tcp/127.0.0.1/49990 && echo hello >&3 && echo in";
  auto bash = [](const std::string& script) { return "bash -c '" + script + "' 2>/dev/null"; };
  EXPECT_EQ(engine_.Run(id, bash(knock)).output, "in");
  UniqueFd accepted(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  char buffer[16] = {};
  EXPECT_EQ(read(accepted.get(), buffer, sizeof buffer), 6);
  EXPECT_STREQ(buffer, "hello\n");

  // Another sandbox, also when it knows the address, and the host.
  EXPECT_EQ(engine_.Run(neighbour, bash(knock)).output, "");
  std::string address = engine_.Run(id, "hostname -I | cut -d\" \" -f1").output;
  EXPECT_EQ(engine_
                .Run(neighbour, bash("timeout 1 bash -c \"exec 3<>/dev/tcp/" + address +
                                     "/49990\" && echo in"))
                .output,
            "");
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(kPort);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd outside(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(connect(outside.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  EXPECT_EQ(engine_.Listen("nosuchsandbox", kPort).error().code(), Code::kNotFound);
}

TEST_F(LifecycleTest, ListenSaysThatAPortIsTaken) {
  std::string id = Created(NewSpec());
  auto first = engine_.Listen(id, 49'990);
  ASSERT_TRUE(first) << first.error().message();
  auto second = engine_.Listen(id, 49'990);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(second.error().message(),
            "port 49990 of sandbox " + id + " is taken by a process inside");
  // envd's own.
  EXPECT_EQ(engine_.Listen(id, 49'983).error().code(), Code::kAlreadyExists);
  first->Reset();
  EXPECT_TRUE(engine_.Listen(id, 49'990));
}

TEST_F(LifecycleTest, UsageIsMeasured) {
  Spec spec = NewSpec();
  std::string id = Created(spec);
  engine_.Run(id, "dd if=/dev/zero of=/home/user/file bs=1M count=20; sync");
  auto usage = engine_.Measure(id);
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_GT(usage->cpu_ns, 0);
  EXPECT_GT(usage->memory_used_bytes, 0);
  EXPECT_EQ(usage->memory_limit_bytes, spec.limits.memory_bytes);
  EXPECT_GE(usage->disk_used_bytes, 20 << 20);
  EXPECT_LE(usage->disk_total_bytes, spec.limits.disk_bytes);
  EXPECT_GT(usage->disk_total_bytes, spec.limits.disk_bytes * 8 / 10);
  EXPECT_GE(usage->pids, 1);
  EXPECT_EQ(usage->oom_kills, 0);
}

TEST_F(LifecycleTest, TheEndOfASandboxIsReportedWithItsReason) {
  Spec spec = NewSpec();
  auto instance = engine_.Create(spec);
  ASSERT_TRUE(instance);
  auto process = OpenProcess(instance->pid);
  ASSERT_TRUE(process);
  SendSignal(process->get(), SIGKILL);
  auto reason = engine_.AwaitExit(spec.id, std::chrono::seconds(30));
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, ExitReason::kEnvdKilled);
  EXPECT_TRUE(engine_.List().empty());
  EXPECT_TRUE(engine_.Destroy(spec.id));
}

TEST_F(LifecycleTest, ANewTemplateUnderTheSameNameIsUsed) {
  namespace fs = std::filesystem;
  std::string link = engine_.config().template_dir + "/base";
  std::string old = Created(NewSpec());
  // A copy of a few files is no working template, but its absence of others shows.
  fs::path changed = dir_.path() + "/changed";
  fs::create_directories(changed / "rootfs");
  fs::remove(link);
  fs::create_directory_symlink(changed, link);
  auto refused = engine_.Create(NewSpec());
  ASSERT_FALSE(refused);
  EXPECT_EQ(engine_.Run(old, "echo still here").output, "still here");
}

TEST_F(LifecycleTest, RootsMountedByPathAsOnOlderKernelsLeaveNothingEither) {
  TempDir dir;
  Config config = TestConfig(dir);
  config.overlay_by_path = true;
  TestEngine engine(config);
  engine.WarmUp();
  Census before = Take(engine);
  Spec spec = TestSpec(config);
  auto instance = engine.Create(spec);
  ASSERT_TRUE(instance) << instance.error().message();
  EXPECT_EQ(engine.Run(spec.id, "echo x > /etc/new && cat /etc/new").output, "x");
  ASSERT_TRUE(engine.Destroy(spec.id));
  EXPECT_EQ(AwaitCensus(engine, before), before);
}

TEST_F(LifecycleTest, QueueIsBounded) {
  TempDir dir;
  Config config = TestConfig(dir);
  config.launchers = 1;
  config.launcher_queue = 2;
  TestEngine engine(config);
  std::vector<Spec> specs;
  for (int i = 0; i < 8; ++i) {
    specs.push_back(TestSpec(config));
    specs.back().boot = "hang";
  }
  int refused = 0;
  // Time enough for all to be asked for before the first is given up.
  for (const auto& result : engine.CreateMany(specs, std::chrono::seconds(5))) {
    ASSERT_FALSE(result);
    refused += result.error().code() == Code::kResourceExhausted;
  }
  EXPECT_EQ(refused, 5);  // one is being built, two wait
}

}  // namespace
}  // namespace caisson::engine
