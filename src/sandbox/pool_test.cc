// Sandboxes that are ready before anybody asks.
#include "sandbox/pool.h"

#include "sandbox/manager_fixture.h"

namespace caisson::sandbox {
namespace {

class PoolTest : public ManagerFixture {
 protected:
  PoolTest() { config_.warm_pool = "base=2"; }
  bool UntilReady(size_t count) {
    return Until([&] { return manager_->pool().ready == count; });
  }
};

TEST_F(PoolTest, TheSettingNamesTemplatesAndNumbers) {
  WriteTemplate(dir_ / "templates", "other", R"({"id":"other"})");
  templates_ = TemplateCatalog::Load(dir_ / "templates").value();
  EXPECT_TRUE(Pool::Parse("", templates_)->empty());
  EXPECT_TRUE(Pool::Parse("base=0", templates_)->empty());
  EXPECT_EQ(Pool::Parse(" debian = 1 , other=2", templates_)->NextMissing(), "base-id");
  for (const char* wrong : {"base", "base=many", "base=-1", "nobody=1", "base=99999999", ",", "=3",
                            "base=3-2", "base=2-", "base=-2", "base=1-2-3"})
    EXPECT_EQ(Pool::Parse(wrong, templates_).error().code(), Code::kInvalidArgument) << wrong;
}

TEST_F(PoolTest, ACreateTakesOneAndAnotherIsMade) {
  StartServer();
  ASSERT_TRUE(UntilReady(2));
  EXPECT_EQ(manager_->running(), 0u);
  EXPECT_TRUE(manager_->List({.key_id = "admin"}).empty());
  int creates = engine_.creates;
  auto ready = engine_.instances;
  auto options = Options();
  options.metadata["who"] = "me";
  Info made = Make(options);
  EXPECT_TRUE(ready.contains(made.id));  // nothing was built for it
  EXPECT_EQ(made.metadata.at("who"), "me");
  EXPECT_FALSE(made.access_token.empty());
  EXPECT_EQ(RowOf(made.id).key_id, "admin");
  EXPECT_EQ(manager_->pool().hits, 1u);
  auto events = Wait(store_->ListEvents(made.id, {})).value();
  EXPECT_EQ(events.at(0).fields.at("from"), "pool");
  ASSERT_TRUE(UntilReady(2));
  EXPECT_EQ(engine_.creates, creates + 1);  // for the shelf, not for the user
  EXPECT_NE(Make().id, made.id);
}

TEST_F(PoolTest, WhatDiffersFromTheUsualIsMadeAnew) {
  StartServer();
  ASSERT_TRUE(UntilReady(2));
  auto small = Options();
  small.limits.memory_mb = 100;
  Make(small);
  EXPECT_EQ(engine_.last_spec.limits.memory_bytes, 100 << 20);
  auto offline = Options();
  offline.allow_internet = false;
  Make(offline);
  ASSERT_TRUE(Wait(store_->AddApiKey({.id = "k", .name = "k", .hash = "k", .hint = ""})));
  ASSERT_TRUE(Wait(
      store_->UpdateApiKey({.id = "k", .name = "k", .limits = {.max_sandbox_memory_mb = 50}})));
  ASSERT_TRUE(Wait(manager_->ReloadKeyLimits()));
  EXPECT_EQ(Make(Options("k")).memory_mb, 50);
  EXPECT_EQ(manager_->pool().ready, 2u);
  EXPECT_EQ(manager_->pool().hits, 0u);
}

TEST_F(PoolTest, OneThatCannotTakeItsSettingsIsReplacedAndTheCreateSucceeds) {
  StartServer();
  ASSERT_TRUE(UntilReady(2));
  auto options = Options();
  options.env["A"] = "1";  // envd must be told
  envd_.init_fails = Error(Code::kUnavailable, "no answer");
  Info made = Make(options);
  EXPECT_NE(engine_.last_spec.boot.find(R"("A":"1")"), std::string::npos);
  ASSERT_TRUE(Until([&] { return engine_.destroys == 1; }));
  EXPECT_FALSE(engine_.destroyed.contains(made.id));
  EXPECT_TRUE(UntilReady(2));
}

TEST_F(PoolTest, OneIsToldWhatItsUserWants) {
  StartServer();
  ASSERT_TRUE(UntilReady(2));
  auto options = Options();
  options.env["A"] = "1";
  Info made = Make(options);
  EXPECT_EQ(manager_->pool().hits, 1u);
  ASSERT_EQ(envd_.inits.size(), 1u);
  EXPECT_EQ(envd_.inits[0].token, made.inside_token);
  EXPECT_EQ(envd_.inits[0].settings.env.at("A"), "1");
  EXPECT_FALSE(envd_.inits[0].settings.reset_identity);
}

TEST_F(PoolTest, AnEmptyPoolIsNoObstacle) {
  engine_.held = "create";
  StartServer();
  auto made = Begin(manager_->Create(Options()));
  ASSERT_TRUE(Until([&] { return manager_->pool().misses == 1; }));
  engine_.held = "";
  ASSERT_TRUE(Until([&] { return made->has_value(); }));
  EXPECT_TRUE(**made);
  EXPECT_TRUE(UntilReady(2));
}

TEST_F(PoolTest, TheSickAndTheDeadAreReplaced) {
  config_.pool_check_interval_ms = 20;
  config_.warm_pool = "base=1";
  envd_.health_fails = Error(Code::kUnavailable, "no answer");
  StartServer();
  ASSERT_TRUE(Until([&] { return engine_.destroyed.size() >= 2; }));
  StopServer();
  config_.pool_check_interval_ms = 10'000;
  envd_.health_fails.reset();
  StartServer();
  ASSERT_TRUE(UntilReady(1));
  std::string id = engine_.instances.begin()->first;
  engine_.Exit(id, engine::ExitReason::kEnvdKilled);
  ASSERT_TRUE(
      Until([&] { return manager_->pool().ready == 1 && !engine_.instances.contains(id); }));
}

TEST_F(PoolTest, ARangeGrowsWithDemandAndShrinksAgain) {
  Pool pool = Pool::Parse("base=1-3", templates_).value();
  auto fill = [&] {
    size_t made = 0;
    for (std::string id = pool.NextMissing(); !id.empty(); id = pool.NextMissing(), ++made) {
      auto record = std::make_shared<Record>();
      record->row.template_id = id;
      pool.Put(record);
    }
    return made;
  };
  EXPECT_EQ(fill(), 1u);
  EXPECT_TRUE(pool.Take("base-id"));
  EXPECT_EQ(fill(), 1u) << "enough was there";
  for (size_t ready : {2u, 3u, 3u}) {
    while (pool.Take("base-id")) {
    }
    EXPECT_EQ(fill(), ready) << "too few were there";
  }
  EXPECT_TRUE(pool.Relax().empty()) << "somebody asked";
  EXPECT_EQ(pool.Relax().size(), 1u);
  EXPECT_EQ(pool.Relax().size(), 1u);
  EXPECT_TRUE(pool.Relax().empty()) << "the smaller number stays";
  EXPECT_EQ(pool.ready(), 1u);
}

TEST_F(PoolTest, AServerThatIsLeftAloneGivesBackWhatItDoesNotNeed) {
  config_.warm_pool = "base=0-4";
  config_.pool_check_interval_ms = 20;
  StartServer();
  EXPECT_EQ(manager_->pool().ready, 0u);
  Make();  // nothing was there
  ASSERT_TRUE(Until([&] { return engine_.creates >= 2; }));
  ASSERT_TRUE(Until([&] { return manager_->pool().ready == 0 && engine_.destroys >= 1; }));
  EXPECT_EQ(engine_.instances.size(), 1u);
}

TEST_F(PoolTest, ItNeverKeepsAUserOut) {
  config_.max_sandboxes = 2;
  config_.warm_pool = "base=5";
  StartServer();
  ASSERT_TRUE(UntilReady(2));
  auto other = Options();
  other.allow_internet = false;
  Make(other);
  EXPECT_EQ(manager_->pool().ready, 1u);  // one had to go
  Make(other);
  EXPECT_EQ(Wait(manager_->Create(Options())).error().code(), Code::kUnavailable);
  EXPECT_EQ(manager_->running(), 2u);
  EXPECT_EQ(manager_->pool().ready, 0u);
}

TEST_F(PoolTest, NothingIsLeftWhenTheServerStops) {
  StartServer();
  ASSERT_TRUE(UntilReady(2));
  std::string id = Make().id;
  ASSERT_TRUE(UntilReady(2));
  StopServer();
  EXPECT_EQ(engine_.instances.size(), 1u);
  EXPECT_TRUE(engine_.instances.contains(id));
}

TEST_F(PoolTest, OneThatIsHalfMadeWhenTheServerStopsIsNotForgotten) {
  config_.shutdown_grace_ms = 30'000;
  engine_.held = "create";
  StartServer();
  ASSERT_TRUE(Until([&] { return engine_.creates == 1; }));
  bool stopped = false;
  asio::co_spawn(io_, manager_->Stop(), [&](std::exception_ptr) { stopped = true; });
  io_.restart();
  io_.poll();  // it is stopping now, and waits for what is half made
  EXPECT_FALSE(stopped);
  engine_.held = "";
  ASSERT_TRUE(Until([&] { return stopped; }));
  manager_.reset();
  EXPECT_TRUE(engine_.instances.empty());
  EXPECT_EQ(engine_.destroys, 1);
}

TEST_F(PoolTest, AWrongSettingStopsTheStart) {
  config_.warm_pool = "nobody=1";
  Manager manager(io_.get_executor(), config_, engine_, *store_, templates_, "secret");
  auto started = Wait(manager.Start());
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("warm_pool"), std::string::npos);
  testing::Await(io_, manager.Stop());
}

}  // namespace
}  // namespace caisson::sandbox
