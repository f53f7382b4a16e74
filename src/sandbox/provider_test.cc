// What the work platform expects of whoever supplies its sandboxes, checked on both suppliers for
// real: this program's own engine, and a second server reached over its E2B API.
#include "sandbox/provider.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <fstream>

#include "base/id.h"
#include "base/testing.h"
#include "engine/test_support.h"
#include "http/stream.h"
#include "sandbox/manager.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// The supplier behind a provider, as long as the tests run.
class Supplier {
 public:
  virtual ~Supplier() = default;
  virtual Provider& provider() = 0;
};

class LocalSupplier final : public Supplier {
 public:
  explicit LocalSupplier(asio::io_context& io) : io_(io), config_(engine::TestConfig(dir_)) {
    auto process = engine::StartEngineProcess(config_);
    EXPECT_TRUE(process) << process.error().message();
    engine_ = std::make_unique<engine::Client>(io_.get_executor(), std::move(process->socket));
    engine_->Start();
    store_ = std::move(
        store::OpenStore("sqlite:///" + dir_.path() + "/caisson.db", io_.get_executor()).value());
    templates_ = TemplateCatalog::Load(config_.template_dir).value();
    manager_ = std::make_unique<Manager>(io_.get_executor(), config_, *engine_, *store_, templates_,
                                         "secret");
    EXPECT_TRUE(testing::Await(io_, manager_->Start()));
    provider_ = MakeLocalProvider(*manager_, config_);
  }
  ~LocalSupplier() override {
    ListFilter everything;
    everything.of_all_keys = true;
    for (const Info& info : manager_->List(everything))
      (void)testing::Await(io_, manager_->Kill(info.key_id, info.id));
    testing::Await(io_, manager_->Stop());
    engine_->Stop();
    (void)testing::Await(io_, store_->Close());
  }
  Provider& provider() override { return *provider_; }

 private:
  asio::io_context& io_;
  engine::TempDir dir_;
  Config config_;
  std::unique_ptr<engine::Client> engine_;
  std::unique_ptr<store::Store> store_;
  TemplateCatalog templates_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<Provider> provider_;
};

// `caisson serve` of the same build, as a stranger would run it.
class RemoteSupplier final : public Supplier {
 public:
  explicit RemoteSupplier(asio::io_context& io) : io_(io) {
    Config theirs = engine::TestConfig(dir_);
    std::filesystem::permissions(dir_.path(), std::filesystem::perms(0755));
    std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin/caisson";
    std::string output = dir_.path() + "/output", log = dir_.path() + "/log";
    std::vector<std::string> args = {
        program,    "serve",       "--data-dir", theirs.data_dir,
        "--listen", "127.0.0.1:0", "--set",      "template_dir=" + theirs.template_dir};
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &files, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < 3000 && key_.empty(); ++i) {
      usleep(10'000);
      std::ifstream lines(output);
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("caisson: ready on ")) url_ = line.substr(18);
        if (line.starts_with("API key: ")) key_ = line.substr(9);
      }
    }
    EXPECT_FALSE(key_.empty()) << ReadFile(log).value_or("");
    provider_ = MakeE2bProvider(io_.get_executor(), Settings());
  }
  ~RemoteSupplier() override {
    testing::Await(io_, provider_->Stop());
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  Provider& provider() override { return *provider_; }
  Config Settings() const {
    Config config;
    config.e2b_api_url = url_;
    config.e2b_api_key = key_;
    return config;
  }

 private:
  asio::io_context& io_;
  engine::TempDir dir_;
  pid_t pid_ = -1;
  std::string url_, key_;
  std::unique_ptr<Provider> provider_;
};

// Made once: the engine must be started before this program has any thread.
struct Suppliers {
  asio::io_context io{1};
  RemoteSupplier remote{io};
  LocalSupplier local{io};
};
Suppliers* suppliers = nullptr;

class Environment final : public ::testing::Environment {
  void SetUp() override { suppliers = new Suppliers; }
  void TearDown() override { delete suppliers; }
};
[[maybe_unused]] auto* const environment = ::testing::AddGlobalTestEnvironment(new Environment);

class ProviderTest : public ::testing::TestWithParam<std::string> {
 protected:
  template <class T>
  T Await(Task<T> task) {
    return testing::Await(suppliers->io, std::move(task));
  }
  Provider& provider() {
    return GetParam() == "local" ? suppliers->local.provider() : suppliers->remote.provider();
  }
  ProviderOptions Options() {
    ProviderOptions options;
    options.owner_id = "alice";
    options.timeout = 120s;
    options.metadata = {{"test", mark_}, {"a b", "c&d=é"}};
    return options;
  }
  std::string Created(ProviderOptions options) {
    auto info = Await(provider().Create(std::move(options)));
    EXPECT_TRUE(info) << info.error().message();
    return info ? info->id : "";
  }
  std::string Created() { return Created(Options()); }
  Result<sdk::CommandResult> Run(const std::string& id, std::string script) {
    auto envd = Await(provider().Envd("alice", id));
    if (!envd) return tl::unexpected(envd.error());
    sdk::Command command;
    command.argv = {"bash", "-c", std::move(script)};
    command.timeout = 60s;
    return Await(envd->Run(std::move(command)));
  }
  ~ProviderTest() override {
    auto mine = Await(provider().List("", {{"test", mark_}}));
    for (const auto& info : *mine) EXPECT_TRUE(Await(provider().Kill("alice", info.id)));
  }

  std::string mark_ = RandomHex(8);
};

TEST_P(ProviderTest, ASnapshotThatIsAskedForAgainIsTheSame) {
  std::string id = Created(), name = "snapshot-" + mark_;
  ASSERT_EQ(Run(id, "echo first > kept")->exit_code, 0);
  auto first = Await(provider().Snapshot("alice", id, name));
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_EQ(Run(id, "echo second > kept")->exit_code, 0);
  auto second = Await(provider().Snapshot("alice", id, name));
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(*second, *first);
  ProviderOptions options = Options();
  options.template_name = *second;
  EXPECT_EQ(Run(Created(options), "cat kept")->stdout_text, "first\n");
  // By its name, too; a second time is fine.
  ASSERT_TRUE(Await(provider().DeleteSnapshot("alice", name)));
  ASSERT_TRUE(Await(provider().DeleteSnapshot("alice", *first)));
  EXPECT_EQ(Await(provider().Create(options)).error().code(), Code::kNotFound);
}

TEST_P(ProviderTest, ASandboxIsMadeFoundAndKilled) {
  ProviderOptions options = Options();
  options.env = {{"GREETING", "hello"}};
  auto made = Await(provider().Create(options));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->state, "running");
  EXPECT_EQ(made->metadata, options.metadata);
  EXPECT_GT(made->ends_at, Now() + 60s);
  EXPECT_EQ(provider().name() == "local", GetParam() == "local");
  EXPECT_THAT(provider().Host(made->id, 3000), ::testing::StartsWith("3000-" + made->id + "."));
  auto found = Await(provider().Get("alice", made->id));
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->metadata, options.metadata);
  EXPECT_EQ(found->template_id, made->template_id);
  auto result = Run(made->id, "echo $GREETING; exit 3");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->stdout_text, "hello\n");
  EXPECT_EQ(result->exit_code, 3);
  ASSERT_TRUE(Await(provider().Kill("alice", made->id)));
  EXPECT_EQ(Await(provider().Get("alice", made->id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(provider().Kill("alice", made->id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(provider().Envd("alice", made->id)).error().code(), Code::kNotFound);
}

TEST_P(ProviderTest, OthersDoNotSeeIt) {
  std::string id = Created();
  EXPECT_EQ(Await(provider().Get("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(provider().Kill("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(provider().Envd("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(provider().Pause("bob", id)).error().code(), Code::kNotFound);
  EXPECT_TRUE(Await(provider().List("bob", {{"test", mark_}}))->empty());
  EXPECT_EQ(Await(provider().List("alice", {{"test", mark_}}))->size(), 1u);
  EXPECT_EQ(Await(provider().List("", {{"test", mark_}}))->size(), 1u);
  EXPECT_EQ(Await(provider().List("alice", {{"test", mark_}, {"a b", "c&d=é"}}))->size(), 1u);
  EXPECT_TRUE(Await(provider().List("alice", {{"test", mark_}, {"a b", "c"}}))->empty());
}

TEST_P(ProviderTest, TheSameKeyGivesTheSameSandbox) {
  ProviderOptions options = Options();
  options.idempotency_key = "key-" + mark_;
  std::string first = Created(options), second = Created(options);
  EXPECT_EQ(first, second);
  EXPECT_EQ(Await(provider().List("alice", {{"test", mark_}}))->size(), 1u);
}

TEST_P(ProviderTest, AskingForAPausedOneDoesNotWakeIt) {
  std::string id = Created();
  ASSERT_EQ(Run(id, "echo 7 > ~/kept")->exit_code, 0);
  ASSERT_TRUE(Await(provider().Pause("alice", id)));
  for (int i = 0; i < 2; ++i) {
    auto info = Await(provider().Get("alice", id));
    ASSERT_TRUE(info) << info.error().message();
    EXPECT_EQ(info->state, "paused");
  }
  EXPECT_EQ(Run(id, "true").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Await(provider().Get("alice", id))->state, "paused");
  ASSERT_TRUE(Await(provider().Resume("alice", id, 120s)));
  EXPECT_EQ(Await(provider().Get("alice", id))->state, "running");
  EXPECT_EQ(Run(id, "cat ~/kept")->stdout_text, "7\n");
  // A second resume finds it running.
  EXPECT_TRUE(Await(provider().Resume("alice", id, 120s)));
}

TEST_P(ProviderTest, ItsEndCanBeMoved) {
  std::string id = Created();
  ASSERT_TRUE(Await(provider().SetTimeout("alice", id, 1000s)));
  EXPECT_GT(Await(provider().Get("alice", id))->ends_at, Now() + 900s);
  ASSERT_TRUE(Await(provider().SetTimeout("alice", id, 100s)));
  EXPECT_LT(Await(provider().Get("alice", id))->ends_at, Now() + 200s);
}

TEST_P(ProviderTest, AKillEndsWhatRunsInIt) {
  std::string id = Created();
  auto envd = Await(provider().Envd("alice", id));
  ASSERT_TRUE(envd);
  TaskGroup group(suppliers->io.get_executor());
  sdk::Command command;
  command.argv = {"bash", "-c", "echo ready; sleep 300"};
  command.on_output = [&](sdk::Stream, std::string_view) {
    group.Spawn("kill", [](Provider& of, std::string whom) -> Task<void> {
      EXPECT_TRUE(co_await of.Kill("alice", whom));
    }(provider(), id));
  };
  auto result = Await(envd->Run(std::move(command)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kUnavailable);
  EXPECT_TRUE(
      Await([](TaskGroup& of) -> Task<Result<bool>> { co_return co_await of.Join(60s); }(group))
          .value());
}

TEST_P(ProviderTest, TellsTheCpuTimeIfItKnows) {
  std::string id = Created();
  auto before = Await(provider().CpuTime("alice", id));
  ASSERT_TRUE(before) << before.error().message();
  EXPECT_EQ(before->has_value(), GetParam() == "local");
  if (!*before) return;
  auto busy = Run(id, "n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done");
  ASSERT_TRUE(busy) << busy.error().message();
  auto after = Await(provider().CpuTime("alice", id));
  ASSERT_TRUE(after && *after);
  EXPECT_GT(**after, **before);
}

TEST_P(ProviderTest, WhatDoesNotExistIsSaid) {
  ProviderOptions options = Options();
  options.template_name = "no-such-template";
  EXPECT_EQ(Await(provider().Create(options)).error().code(), Code::kNotFound);
  for (Status status : {Await(provider().Pause("alice", "inobody0000000000000")),
                        Await(provider().Resume("alice", "inobody0000000000000", 10s)),
                        Await(provider().SetTimeout("alice", "inobody0000000000000", 10s))}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::kNotFound);
  }
}

// What the first connection to a listener says up to its end; the loop goes on meanwhile.
Task<Result<std::string>> Accepted(const UniqueFd& listener) {
  auto executor = co_await asio::this_coro::executor;
  CO_TRY(SetNonBlocking(listener.get()));
  asio::posix::stream_descriptor watched(executor, dup(listener.get()));
  auto [ec] = co_await watched.async_wait(watched.wait_read, kAwait);
  if (ec) co_return tl::unexpected(FromEc(ec, "waiting for a connection"));
  CO_TRY_ASSIGN(auto stream,
                http::MakeSocketStream(
                    executor, UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC))));
  std::string said(4096, '\0');
  for (size_t size = 0;;) {
    CO_TRY_ASSIGN(size_t n, co_await stream->Read(std::span(said).subspan(size)));
    if (n == 0) {
      CO_TRY(co_await stream->Write("heard it\n"));
      co_return said.substr(0, size);
    }
    size += n;
  }
}

TEST_P(ProviderTest, ListensInside) {
  std::string id = Created();
  auto listener = Await(provider().Listen("alice", id, 49'990));
  ASSERT_TRUE(listener) << listener.error().message();
  EXPECT_TRUE(provider().Listens(id, 49'990));
  auto talk = [&] {
    TaskGroup group(suppliers->io.get_executor());
    std::string said;
    group.Spawn("accept", [](const UniqueFd& on, std::string& out) -> Task<void> {
      auto heard = co_await WithDeadline(60s, "accepting", Accepted(on));
      out = heard ? *heard : heard.error().message();
    }(*listener, said));
    auto result = Run(id, R"py(python3 -c '
import socket
s = socket.create_connection(("127.0.0.1", 49990))
s.sendall(b"hello\n")
s.shutdown(socket.SHUT_WR)
print(s.makefile().read(), end="")')py");
    EXPECT_TRUE(result) << result.error().message();
    if (result) EXPECT_EQ(result->stdout_text, "heard it\n") << result->stderr_text;
    Await([](TaskGroup& of) -> Task<Result<bool>> { co_return co_await of.Join(60s); }(group))
        .value();
    return said;
  };
  EXPECT_EQ(talk(), "hello\n");
  EXPECT_EQ(Await(provider().Listen("bob", id, 49'990)).error().code(), Code::kNotFound);
  EXPECT_EQ(talk(), "hello\n");
  listener->Reset();
  // After a pause it is asked for again.
  ASSERT_TRUE(Await(provider().Pause("alice", id)));
  EXPECT_EQ(Await(provider().Listen("alice", id, 49'990)).error().code(),
            Code::kFailedPrecondition);
  ASSERT_TRUE(Await(provider().Resume("alice", id, 120s)));
  listener = Await(provider().Listen("alice", id, 49'990));
  ASSERT_TRUE(listener) << listener.error().message();
  EXPECT_EQ(talk(), "hello\n");
}

INSTANTIATE_TEST_SUITE_P(Both, ProviderTest, ::testing::Values("local", "e2b"),
                         [](const auto& info) { return info.param; });

// ---- settings of the remote one ------------------------------------------------------

TEST(E2bProviderTest, WithoutAKeyNothingIsConfigured) {
  Config config = suppliers->remote.Settings();
  config.e2b_api_key.clear();
  auto provider = MakeE2bProvider(suppliers->io.get_executor(), config);
  auto made = testing::Await(suppliers->io, provider->Create({}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kUnavailable);
  EXPECT_THAT(made.error().message(), HasSubstr("not configured"));
}

TEST(E2bProviderTest, AWrongKeyIsUnauthenticated) {
  Config config = suppliers->remote.Settings();
  config.e2b_api_key = "e2b_00000000000000000000000000000000000000aa";
  auto provider = MakeE2bProvider(suppliers->io.get_executor(), config);
  auto made = testing::Await(suppliers->io, provider->Create({.owner_id = "alice"}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kUnauthenticated);
  EXPECT_THAT(made.error().message(), ::testing::Not(HasSubstr("e2b_0000")));
}

}  // namespace
}  // namespace caisson::sandbox
