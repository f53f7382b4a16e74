#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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

TEST(CommandLine, AShellAndTheShortNameOfList) {
  auto shell = ParseAction<ShellInSandbox>({"shell", "ia", "--user", "root", "-e", "A=b"});
  EXPECT_EQ(shell.id, "ia");
  EXPECT_EQ(shell.user, "root");
  EXPECT_EQ(shell.env, (StringMap{{"A", "b"}}));
  ParseAction<ListSandboxes>({"ls"});
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
  auto run =
      ParseAction<RunInSandbox>({"run", "--template", "t", "--timeout", "9", "--file", "a.py",
                                 "--file", "b:/c", "--no-internet", "-e", "A=b", "--", "ls"});
  EXPECT_EQ(run.create.template_name, "t");
  EXPECT_EQ(run.create.timeout_s, 9);
  EXPECT_FALSE(run.create.internet);
  EXPECT_EQ(run.files, (std::vector<std::string>{"a.py", "b:/c"}));
  EXPECT_EQ(run.exec.env, (StringMap{{"A", "b"}}));
  EXPECT_EQ(run.exec.command, std::vector<std::string>{"ls"});
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
    return std::get<AccountCommand>(*Parse(arguments));
  };
  auto add = parse({"add", "ci", "--limit", "rate_limit=5", "--user", "mia", "--url", "http://s"});
  EXPECT_EQ(add.server.url, "http://s");
  EXPECT_EQ(std::get<AddKey>(add.action).user, "mia");
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

TEST(CommandLine, Users) {
  auto parse = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "user");
    return std::get<AccountCommand>(*Parse(arguments)).action;
  };
  auto add = std::get<AddUser>(parse({"add", "mia", "--role", "viewer", "--password"}));
  EXPECT_EQ(add.name, "mia");
  EXPECT_EQ(add.role, "viewer");
  EXPECT_TRUE(add.password);
  EXPECT_EQ(std::get<AddUser>(parse({"add", "mia"})).role, "member");
  EXPECT_EQ(std::get<SetUserPassword>(parse({"passwd", "mia"})).user, "mia");
  EXPECT_TRUE(std::get<DisableUser>(parse({"disable", "mia"})).disabled);
  EXPECT_FALSE(std::get<DisableUser>(parse({"enable", "mia"})).disabled);
  EXPECT_EQ(std::get<SetUserRole>(parse({"role", "mia", "admin"})).role, "admin");
  // A password is never an argument.
  EXPECT_EQ(Parse({"user", "passwd", "mia", "secret"}).error().status, 2);
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
    return std::get<SandboxCommand>(*Parse(arguments, environment)).server;
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
  EXPECT_EQ(std::get<SandboxCommand>(*after).server.url, "http://e");
  EXPECT_TRUE(std::get<SandboxCommand>(*after).json);
}

TEST(CommandLine, RemembersALogin) {
  caisson::testing::TempDir dir;
  Environment environment{{"HOME", dir.path()}, {"CAISSON_DATA_DIR", dir.path()}};
  std::string file = LoginFile(environment);
  EXPECT_EQ(file, dir / ".config/caisson/config.toml");
  ASSERT_TRUE(StoreLogin(file, "http://board:8000", "e2b_stored"));
  struct stat info{};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(FindServer(environment, "").url, "http://board:8000");
  EXPECT_EQ(FindServer(environment, "").api_key, "e2b_stored");
  // The key is for that server only.
  EXPECT_EQ(FindServer(environment, "http://other").api_key, "");
  environment["CAISSON_API_KEY"] = "e2b_env";
  EXPECT_EQ(FindServer(environment, "").api_key, "e2b_env");
  EXPECT_FALSE(StoreLogin(file, "http://\"x", "e2b_stored"));
  EXPECT_FALSE(StoreLogin("", "http://x", "e2b_stored"));
}

template <class Action>
Action ParseWork(std::vector<const char*> arguments) {
  auto command = Parse(arguments);
  if (!command) {
    ADD_FAILURE() << command.error().text;
    return {};
  }
  return std::get<Action>(std::get<WorkCommand>(*command).action);
}

TEST(CommandLine, Agents) {
  auto add = ParseWork<AddAgent>({"agent", "add", "ada", "--adapter", "claude", "--model", "opus",
                                  "-e", "A=b=c", "--config", "{}"});
  EXPECT_EQ(add.name, "ada");
  EXPECT_EQ(add.adapter, "claude");
  EXPECT_EQ(add.env.at("A"), "b=c");
  auto script = ParseWork<AddAgent>({"agent", "add", "s", "--", "bash", "-c", "echo --model"});
  EXPECT_EQ(script.command, (std::vector<std::string>{"bash", "-c", "echo --model"}));
  EXPECT_EQ(ParseWork<RemoveAgents>({"agent", "rm", "a", "b"}).agents.size(), 2);
  EXPECT_EQ(Parse({"agent", "add", "a", "-e", "nonsense"}).error().status, 2);
}

TEST(CommandLine, Tasks) {
  auto create = ParseWork<CreateTask>(
      {"task", "create", "--repo", "o/n", "--agent", "ada", "--watch", "Fix it"});
  EXPECT_EQ(create.title, "Fix it");
  EXPECT_EQ(create.repo, "o/n");
  EXPECT_TRUE(create.start && create.watch);
  EXPECT_FALSE(ParseWork<CreateTask>({"task", "create", "x"}).start);
  EXPECT_FALSE(ParseWork<CreateTask>({"task", "create", "x", "--agent", "a", "--later"}).start);
  EXPECT_EQ(Parse({"task", "create", "x", "--watch"}).error().status, 2);
  EXPECT_EQ(ParseWork<WatchTask>({"task", "watch", "t1"}).id, "t1");
  EXPECT_EQ(ParseWork<ListTasks>({"task", "list", "--status", "done"}).status, "done");
  EXPECT_EQ(ParseWork<RetryRun>({"run", "retry", "r1", "--step", "agent"}).step, "agent");
  EXPECT_EQ(ParseWork<ListRuns>({"run", "list", "--task", "t1"}).task, "t1");
}

template <class Action>
Action ParseSession(std::vector<const char*> arguments) {
  auto command = Parse(arguments);
  if (!command) {
    ADD_FAILURE() << command.error().text;
    return {};
  }
  return std::get<Action>(std::get<SessionCommand>(*command).action);
}

TEST(CommandLine, Sessions) {
  auto create = ParseSession<CreateSession>(
      {"session", "create", "--repo", "o/n", "--agent", "ada", "A garden"});
  EXPECT_EQ(create.title, "A garden");
  EXPECT_EQ(create.repo, "o/n");
  EXPECT_EQ(create.agent, "ada");
  auto send = ParseSession<SendMessage>({"session", "send", "s1", "plant a tree", "--plan"});
  EXPECT_EQ(send.id, "s1");
  EXPECT_EQ(send.text, "plant a tree");
  EXPECT_TRUE(send.plan && send.wait);
  EXPECT_FALSE(ParseSession<SendMessage>({"session", "send", "s1", "x", "--now"}).wait);
  EXPECT_TRUE(ParseSession<StopAnswer>({"session", "stop", "s1", "--all"}).all);
  EXPECT_EQ(ParseSession<ShowHistory>({"session", "history", "s1", "--limit", "5"}).limit, 5);
  EXPECT_EQ(ParseSession<PauseSession>({"session", "pause", "s1"}).id, "s1");
  EXPECT_EQ(ParseSession<DeleteSessions>({"session", "delete", "a", "b"}).ids.size(), 2);
  EXPECT_EQ(ParseSession<ListSessions>({"session", "list", "--status", "paused"}).status, "paused");
  EXPECT_EQ(Parse({"session", "history", "s1", "--limit", "0"}).error().status, 2);
}

}  // namespace
}  // namespace caisson::cli
