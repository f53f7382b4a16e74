#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing.h"

namespace caisson::cli {
namespace {

using ::testing::HasSubstr;

tl::expected<Command, Exit> Parse(std::vector<const char*> arguments,
                                  const Environment& environment = {}) {
  arguments.insert(arguments.begin(), "caisson");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(), environment);
}

template <class Action>
Action ParseAction(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sandbox");
  auto command = Parse(arguments);
  if (!command) {
    ADD_FAILURE() << command.error().text;
    return {};
  }
  return std::get<Action>(std::get<SandboxCommand>(*command).action);
}

TEST(CommandLine, LaterSourcesWin) {
  caisson::testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir / "c.toml",
                              "listen = \"1.1.1.1:1\"\ndomain = \"file.example\"\n"
                              "sandbox_cpus = 7\nmax_sandboxes = 3\n",
                              0600));
  std::string file = dir / "c.toml";
  auto command = Parse({"serve", "--config", file.c_str(), "--listen", "5.5.5.5:5", "--listen",
                        "4.4.4.4:4", "--set", "max_sandboxes=5", "--set", "log_level=debug"},
                       {{"CAISSON_LISTEN", "3.3.3.3:3"}, {"CAISSON_DOMAIN", "env.example"}});
  ASSERT_TRUE(command) << command.error().text;
  const Config& config = std::get<ServeCommand>(*command).config;
  EXPECT_EQ(config.listen, "4.4.4.4:4");
  EXPECT_EQ(config.domain, "env.example");
  EXPECT_EQ(config.sandbox_cpus, 7);
  EXPECT_EQ(config.max_sandboxes, 5);
  EXPECT_EQ(config.log_level, "debug");
}

TEST(CommandLine, MistakesAreExplainedWithStatus2) {
  for (std::vector<const char*> arguments :
       std::vector<std::vector<const char*>>{{},
                                             {"dance"},
                                             {"serve", "--no-such-option"},
                                             {"serve", "--set", "nonsense"},
                                             {"serve", "--set", "no_such_setting=1"},
                                             {"serve", "--tls", "maybe"},
                                             {"serve", "--config", "/does/not/exist.toml"},
                                             {"sandbox"},
                                             {"sandbox", "info"},
                                             {"sandbox", "kill"},
                                             {"sandbox", "kill", "--all", "iabc"},
                                             {"sandbox", "create", "-e", "NOVALUE"},
                                             {"sandbox", "create", "--timeout", "soon"},
                                             {"sandbox", "url", "iabc", "0"},
                                             {"sandbox", "url", "iabc", "65536"},
                                             {"sandbox", "exec", "iabc"}}) {
    auto command = Parse(arguments);
    ASSERT_FALSE(command) << fmt::format("{}", fmt::join(arguments, " "));
    EXPECT_EQ(command.error().status, 2);
    EXPECT_THAT(command.error().text, ::testing::StartsWith("caisson: "));
  }
}

TEST(CommandLine, HelpTeaches) {
  struct Case {
    std::vector<const char*> arguments;
    const char* teaches;
  };
  for (const Case& c : {Case{{"--help"}, "caisson sandbox exec ID --"},
                        Case{{"serve", "--help"}, "sudo caisson serve --listen"},
                        Case{{"sandbox", "--help"}, "Exit status"},
                        Case{{"sandbox", "exec", "--help"}, "caisson sandbox exec ID --"}}) {
    auto command = Parse(c.arguments);
    ASSERT_FALSE(command);
    EXPECT_EQ(command.error().status, 0);
    EXPECT_THAT(command.error().text, HasSubstr(c.teaches));
  }
}

TEST(CommandLine, Create) {
  auto create =
      ParseAction<CreateSandbox>({"create", "--template", "node", "--timeout", "60", "-e", "A=1=2",
                                  "-e", "B=", "--metadata", "k=v", "--no-internet"});
  EXPECT_EQ(create.template_name, "node");
  EXPECT_EQ(create.timeout_s, 60);
  EXPECT_EQ(create.env, (StringMap{{"A", "1=2"}, {"B", ""}}));
  EXPECT_EQ(create.metadata, (StringMap{{"k", "v"}}));
  EXPECT_FALSE(create.internet);
}

TEST(CommandLine, ExecTakesTheCommandAsItIs) {
  auto exec = ParseAction<ExecInSandbox>(
      {"exec", "iabc", "--user", "root", "-e", "A=b", "--", "ls", "-la", "--user", "--", "x y"});
  EXPECT_EQ(exec.id, "iabc");
  EXPECT_EQ(exec.user, "root");
  EXPECT_EQ(exec.env, (StringMap{{"A", "b"}}));
  EXPECT_EQ(exec.command, (std::vector<std::string>{"ls", "-la", "--user", "--", "x y"}));
}

TEST(CommandLine, OthersKnowTheirSandbox) {
  EXPECT_EQ(ParseAction<ShowSandbox>({"info", "iabc"}).id, "iabc");
  EXPECT_EQ(ParseAction<ShowLogs>({"logs", "iabc"}).id, "iabc");
  EXPECT_EQ(ParseAction<ShowMetrics>({"metrics", "iabc"}).id, "iabc");
  EXPECT_EQ(ParseAction<ShowTimeline>({"timeline", "iabc"}).id, "iabc");
  EXPECT_EQ(ParseAction<SaveDiagnostics>({"diagnostics", "iabc"}).id, "iabc");
  EXPECT_EQ(ParseAction<SaveDiagnostics>({"diagnostics", "iabc", "-o", "f"}).file, "f");
  EXPECT_EQ(ParseAction<ShowUrl>({"url", "iabc", "3000"}).port, 3000);
  EXPECT_EQ(ParseAction<KillSandboxes>({"kill", "ia", "ib"}).ids.size(), 2u);
  EXPECT_TRUE(ParseAction<KillSandboxes>({"kill", "--all"}).all);
}

TEST(CommandLine, Keys) {
  auto parse = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "key");
    return std::get<KeyCommand>(*Parse(arguments));
  };
  auto add = parse({"add", "ci", "--limit", "rate_limit=5", "--data-dir", "/somewhere"});
  EXPECT_EQ(add.config.data_dir, "/somewhere");
  EXPECT_EQ(std::get<AddKey>(add.action).name, "ci");
  EXPECT_EQ(std::get<AddKey>(add.action).limits, (StringMap{{"rate_limit", "5"}}));
  auto limit = std::get<LimitKey>(parse({"limit", "k1", "a=1", "b=default"}).action);
  EXPECT_EQ(limit.id, "k1");
  EXPECT_EQ(limit.limits, (StringMap{{"a", "1"}, {"b", "default"}}));
  EXPECT_EQ(std::get<RevokeKey>(parse({"revoke", "k1"}).action).id, "k1");
  EXPECT_TRUE(parse({"list", "--json"}).json);
  for (std::vector<const char*> wrong : std::vector<std::vector<const char*>>{
           {"key"}, {"key", "add"}, {"key", "limit", "k1"}, {"key", "add", "x", "--limit", "y"}})
    EXPECT_EQ(Parse(wrong).error().status, 2);
}

TEST(CommandLine, PauseAndCopies) {
  EXPECT_TRUE(ParseAction<PauseSandbox>({"pause", "iabc"}).memory);
  EXPECT_FALSE(ParseAction<PauseSandbox>({"pause", "iabc", "--files-only"}).memory);
  auto resume = ParseAction<ResumeSandbox>({"resume", "iabc", "--timeout", "7", "--reboot"});
  EXPECT_EQ(resume.timeout_s, 7);
  EXPECT_FALSE(resume.memory);
  EXPECT_EQ(ParseAction<ForkSandbox>({"fork", "iabc", "--count", "3"}).count, 3);
  EXPECT_EQ(ParseAction<MakeSnapshot>({"snapshot", "iabc", "--name", "a:b"}).name, "a:b");
  auto create = ParseAction<CreateSandbox>({"create", "--auto-pause", "--auto-resume"});
  EXPECT_TRUE(create.auto_pause && create.auto_resume);
  auto action = [](std::vector<const char*> arguments) {
    return std::get<SandboxCommand>(*Parse(arguments)).action;
  };
  EXPECT_EQ(std::get<ListSnapshots>(action({"snapshot", "list", "--sandbox", "ia"})).sandbox_id,
            "ia");
  EXPECT_EQ(std::get<DeleteSnapshots>(action({"snapshot", "delete", "a", "b:c"})).ids.size(), 2u);
  EXPECT_FALSE(std::get<DrainServer>(action({"drain"})).end);
  EXPECT_TRUE(std::get<DrainServer>(action({"drain", "--end"})).end);
  EXPECT_FALSE(Parse({"snapshot", "delete"}));
}

TEST(CommandLine, FindsTheServerAndTheKey) {
  caisson::testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir / "api-key", "e2b_file\n", 0600));
  auto find = [](Environment environment, std::vector<const char*> arguments = {}) {
    arguments.insert(arguments.begin(), "sandbox");
    arguments.push_back("list");
    return std::get<SandboxCommand>(*Parse(arguments, environment));
  };
  EXPECT_EQ(find({{"CAISSON_DATA_DIR", dir.path()}}).api_key, "e2b_file");
  EXPECT_EQ(find({}).url, "http://127.0.0.1:8000");
  Environment both{
      {"E2B_API_KEY", "e2b_b"}, {"E2B_API_URL", "http://b"}, {"CAISSON_DATA_DIR", dir.path()}};
  EXPECT_EQ(find(both).api_key, "e2b_b");
  EXPECT_EQ(find(both).url, "http://b");
  both["CAISSON_API_KEY"] = "e2b_c";
  both["CAISSON_URL"] = "http://c";
  EXPECT_EQ(find(both).api_key, "e2b_c");
  EXPECT_EQ(find(both).url, "http://c");
  EXPECT_EQ(find(both, {"--url", "http://d"}).url, "http://d");
  auto after = Parse({"sandbox", "list", "--json", "--url", "http://e"});
  ASSERT_TRUE(after);
  EXPECT_EQ(std::get<SandboxCommand>(*after).url, "http://e");
  EXPECT_TRUE(std::get<SandboxCommand>(*after).json);
}

}  // namespace
}  // namespace caisson::cli
