// Snapshots and forks.
#include "sandbox/manager_fixture.h"
#include "sandbox/secrets.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

class CopiesTest : public ManagerFixture {
 protected:
  Result<store::SnapshotRow> Snapshot(const std::string& id, const std::string& name = "") {
    return Wait(manager_->MakeSnapshot("admin", id, {.name = name}));
  }
  static CreateOptions From(const std::string& name, std::string key_id = "admin") {
    CreateOptions options = Options(std::move(key_id));
    options.template_name = name;
    return options;
  }
  std::vector<std::string> Names(SnapshotFilter filter = {.key_id = "admin"}) {
    std::vector<std::string> names;
    for (const auto& row : manager_->ListSnapshots(filter)) names.push_back(SnapshotName(row));
    return names;
  }
};

TEST_F(CopiesTest, ASnapshotMayBeOfFilesOnly) {
  StartServer();
  std::string source = Make().id;
  auto row = Wait(manager_->MakeSnapshot("admin", source, {.name = "checkout", .memory = false}));
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_EQ(row->tier, "files");
  size_t told = envd_.inits.size();
  Info copy = Make(From("checkout"));
  EXPECT_EQ(engine_.instances.at(copy.id).snapshot, row->id);
  EXPECT_EQ(envd_.inits.size(), told);  // it is booted, and knows whose it is from the start
}

TEST_F(CopiesTest, ASandboxIsMadeFromASnapshot) {
  StartServer();
  CreateOptions options = Options();
  options.env = {{"A", "mine"}, {"C", "mine"}};
  std::string source = Make(options).id;
  auto row = Snapshot(source);
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_EQ(SnapshotName(*row), row->id + ":default");
  EXPECT_EQ(row->tier, "memory");
  EXPECT_TRUE(manager_->FindRoute(source));
  EXPECT_EQ(EventOf(source, "snapshot_created").fields.at("snapshot"), row->id);

  for (const std::string& name : {row->id, row->id + ":default"}) {
    CreateOptions again = From(name);
    again.env = {{"A", "new"}};
    Info copy = Make(again);
    EXPECT_NE(copy.id, source);
    EXPECT_EQ(copy.template_id, "base-id");
    EXPECT_EQ(copy.cpus, 3);
    EXPECT_EQ(engine_.instances.at(copy.id).snapshot, row->id);
    // envd was told by its old token whose it is now.
    auto& told = envd_.inits.back();
    EXPECT_EQ(told.token, InsideToken("secret", source));
    EXPECT_EQ(told.settings.sandbox_id, copy.id);
    EXPECT_EQ(told.settings.access_token, InsideToken("secret", copy.id));
    EXPECT_NE(told.settings.access_token, told.token);
    EXPECT_TRUE(told.settings.reset_identity);
    EXPECT_EQ(told.settings.env, (StringMap{{"A", "new"}, {"B", "template"}, {"C", "mine"}}));
    EXPECT_EQ(told.settings.user, "user");
  }
  // A copy of a copy was told by its own token.
  std::string copy = Make(From(row->id)).id;
  auto second = Snapshot(copy);
  Make(From(second->id));
  EXPECT_EQ(envd_.inits.back().token, InsideToken("secret", copy));
}

TEST_F(CopiesTest, WithoutTokenAndWithoutMemory) {
  StartServer();
  CreateOptions options = Options();
  options.secure = false;
  std::string open = Make(options).id;
  auto row = Snapshot(open);
  Make(From(row->id));
  EXPECT_EQ(envd_.inits.back().token, "");
  engine_.memory_tier = engine::Tier::kFrozen;  // memory cannot be saved here
  auto files = Snapshot(open);
  EXPECT_EQ(files->tier, "files");
  size_t told = envd_.inits.size();
  Make(From(files->id));
  EXPECT_EQ(envd_.inits.size(), told);  // it booted with its settings
}

TEST_F(CopiesTest, ACopyThatCannotBeToldIsDestroyed) {
  StartServer();
  auto row = Snapshot(Make().id);
  envd_.init_fails = Error(Code::kUnavailable, "no answer");
  auto made = Wait(manager_->Create(From(row->id)));
  EXPECT_EQ(made.error().code(), Code::kUnavailable);
  EXPECT_EQ(engine_.instances.size(), 1u);
  EXPECT_EQ(manager_->running(), 1u);
}

TEST_F(CopiesTest, NamesAndTags) {
  StartServer();
  std::string source = Make().id;
  auto first = Snapshot(source, "Team/Mine");
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(SnapshotName(*first), "team/mine:default");
  auto tagged = Snapshot(source, "team/mine:v2");
  EXPECT_EQ(SnapshotName(*tagged), "team/mine:v2");
  EXPECT_EQ(engine_.instances.at(Make(From("team/mine")).id).snapshot, first->id);
  EXPECT_EQ(engine_.instances.at(Make(From("team/mine:v2")).id).snapshot, tagged->id);
  EXPECT_EQ(Wait(manager_->Create(From("team/mine:v3"))).error().code(), Code::kNotFound);
  // The name goes over to the newest; the one before keeps its id.
  auto newer = Snapshot(source, "team/mine");
  EXPECT_EQ(engine_.instances.at(Make(From("team/mine:default")).id).snapshot, newer->id);
  EXPECT_EQ(engine_.instances.at(Make(From(first->id)).id).snapshot, first->id);
  EXPECT_EQ(Names({.key_id = "admin", .name = "team/mine"}).size(), 2u);
  EXPECT_EQ(Names({.key_id = "admin", .name = "team/mine:v2"}).size(), 1u);
  for (const char* bad : {"a b", "/x", "x/", "a/b/c", ":", "x:", "base", "base-id", "a:b c"})
    EXPECT_EQ(Snapshot(source, bad).error().code(), Code::kInvalidArgument) << bad;
  EXPECT_FALSE(Snapshot(source, std::string(200, 'a')));
}

TEST_F(CopiesTest, ListsAndDeletes) {
  StartServer();
  std::string one = Make().id, two = Make().id;
  auto a = Snapshot(one), b = Snapshot(two, "b");
  EXPECT_EQ(Names(), (std::vector<std::string>{"b:default", a->id + ":default"}));
  EXPECT_EQ(Names({.key_id = "admin", .sandbox_id = two}), std::vector<std::string>{"b:default"});
  EXPECT_TRUE(Names({.key_id = "other"}).empty());
  // Nobody else's business.
  EXPECT_EQ(Wait(manager_->Create(From("b", "other"))).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->DeleteSnapshot("other", "b")).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->MakeSnapshot("other", one)).error().code(), Code::kNotFound);
  std::string made = Make(From("b")).id;
  ASSERT_TRUE(Wait(manager_->DeleteSnapshot("admin", "b:default")));
  EXPECT_EQ(Wait(manager_->DeleteSnapshot("admin", "b:default")).error().code(), Code::kNotFound);
  EXPECT_FALSE(engine_.saved.contains(b->id));
  EXPECT_TRUE(manager_->FindRoute(made));
  ASSERT_TRUE(Wait(manager_->DeleteSnapshot("admin", a->id)));
  EXPECT_TRUE(Names().empty());
}

TEST_F(CopiesTest, ASnapshotOutlivesItsSandboxAndTheServer) {
  StartServer();
  std::string source = Make().id;
  auto row = Snapshot(source, "kept");
  ASSERT_TRUE(Wait(manager_->Kill("admin", source)));
  StopServer();
  StartServer();
  EXPECT_EQ(Names(), std::vector<std::string>{"kept:default"});
  Make(From("kept"));
  EXPECT_EQ(envd_.inits.back().token, InsideToken("secret", source));
}

TEST_F(CopiesTest, WhatTheStoreAndTheEngineDisagreeOnIsCleaned) {
  StartServer();
  auto row = Snapshot(Make().id, "lost");
  StopServer();
  engine_.saved.clear();
  engine_.saved["sunknown"] = {.id = "sunknown"};
  StartServer();
  EXPECT_TRUE(Names().empty());
  EXPECT_TRUE(engine_.saved.empty());
  EXPECT_TRUE(Wait(store_->ListSnapshots())->empty());
}

TEST_F(CopiesTest, LimitsAndFailures) {
  config_.max_snapshots_per_key = 1;
  StartServer();
  std::string source = Make().id;
  engine_.snapshot_fails = Error(Code::kResourceExhausted, "no space on /host");
  auto failed = Snapshot(source);
  EXPECT_EQ(failed.error().code(), Code::kUnavailable);
  EXPECT_TRUE(manager_->FindRoute(source));
  engine_.snapshot_fails.reset();
  ASSERT_TRUE(Snapshot(source));
  EXPECT_EQ(Snapshot(source).error().code(), Code::kResourceExhausted);
}

TEST_F(CopiesTest, OnceMeansOnce) {
  config_.max_snapshots_per_key = 1;
  StartServer();
  std::string source = Make().id;
  engine_.snapshot_takes = 20ms;
  // The first is still at work when the second comes.
  auto first = Begin(manager_->MakeSnapshot("admin", source, {.name = "build-1", .once = true}));
  auto second = Wait(manager_->MakeSnapshot("admin", source, {.name = "build-1", .once = true}));
  ASSERT_TRUE(second) << second.error().message();
  ASSERT_TRUE(first->has_value() && **first);
  EXPECT_EQ((*first)->value().id, second->id);
  StopServer();
  StartServer();
  // Also of another sandbox: the name tells what it is.
  auto third = Wait(manager_->MakeSnapshot("admin", Make().id, {.name = "build-1", .once = true}));
  ASSERT_TRUE(third) << third.error().message();
  EXPECT_EQ(third->id, second->id);
  EXPECT_EQ(engine_.saved.size(), 1u);
  EXPECT_EQ(Names(), std::vector<std::string>{"build-1:default"});
}

TEST_F(CopiesTest, AKillWaitsForTheSnapshot) {
  StartServer();
  std::string source = Make().id;
  engine_.snapshot_takes = 20ms;
  auto row = Begin(manager_->MakeSnapshot("admin", source));
  EXPECT_TRUE(manager_->FindRoute(source));
  ASSERT_TRUE(Wait(manager_->Kill("admin", source)));
  ASSERT_TRUE(row->has_value());
  EXPECT_TRUE(**row);
  EXPECT_TRUE(engine_.instances.empty());
}

TEST_F(CopiesTest, ForksAreCopiesWithTheirOwnNames) {
  StartServer();
  CreateOptions options = Options();
  options.metadata = {{"team", "red"}};
  options.env = {{"C", "mine"}};
  options.allow_internet = false;
  options.network = {.allow_public_traffic = false, .as_requested_json = R"({"x":1})"};
  options.lifecycle = {.auto_pause = true, .auto_resume = true};
  Info source = Make(options);
  auto forks = Wait(manager_->Fork("admin", source.id, 60s, 3));
  ASSERT_TRUE(forks) << forks.error().message();
  ASSERT_EQ(forks->size(), 3u);
  std::set<std::string> ids{source.id}, tokens{source.access_token};
  for (auto& fork : *forks) {
    ASSERT_TRUE(fork) << fork.error().message();
    ids.insert(fork->id);
    tokens.insert(fork->access_token);
    EXPECT_EQ(fork->metadata, source.metadata);
    EXPECT_EQ(fork->template_id, source.template_id);
    EXPECT_FALSE(fork->allow_internet);
    EXPECT_FALSE(fork->network.allow_public_traffic);
    EXPECT_EQ(fork->network.as_requested_json, source.network.as_requested_json);
    EXPECT_NE(fork->traffic_token, source.traffic_token);
    EXPECT_TRUE(fork->lifecycle.auto_pause && fork->lifecycle.auto_resume);
    EXPECT_TRUE(Lasts(*fork, 60s));
    EXPECT_EQ(RowOf(fork->id).env, options.env);
  }
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_EQ(tokens.size(), 4u);
  EXPECT_EQ(manager_->Get("admin", source.id)->end_at, source.end_at);
  EXPECT_TRUE(engine_.saved.empty());  // the snapshot behind them is gone
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(EventOf(source.id, "forked").fields.at("count"), "3");
}

TEST_F(CopiesTest, SomeForksMayFail) {
  StartServer();
  std::string source = Make().id;
  engine_.create_fails_from = 3;
  auto forks = Wait(manager_->Fork("admin", source, 15s, 4));
  ASSERT_TRUE(forks);
  EXPECT_EQ(std::count_if(forks->begin(), forks->end(), [](auto& one) { return !!one; }), 2);
  EXPECT_EQ(EventOf(source, "forked").level, "error");
  EXPECT_TRUE(engine_.saved.empty());
}

TEST_F(CopiesTest, ForksHaveLimits) {
  config_.max_forks = 5;
  config_.max_sandboxes_per_key = 4;
  StartServer();
  std::string source = Make().id;
  for (int64_t count : {0, -1, 6, 4})
    EXPECT_EQ(Wait(manager_->Fork("admin", source, 15s, count)).error().code(),
              Code::kInvalidArgument)
        << count;
  EXPECT_EQ(Wait(manager_->Fork("admin", source, 0s, 1)).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Wait(manager_->Fork("other", source, 15s, 1)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->Fork("admin", source, 15s, 3))->size(), 3u);
}

TEST_F(CopiesTest, ForksAreBoundByTheLimitOfTheirOwnKey) {
  config_.max_sandboxes_per_key = 3;
  for (auto [name, most] : {std::pair("small", 2), std::pair("wide", 6)}) {
    ASSERT_TRUE(Wait(store_->AddApiKey({.id = name, .name = name, .hash = name, .hint = ""})));
    ASSERT_TRUE(
        Wait(store_->UpdateApiKey({.id = name, .name = name, .limits = {.max_sandboxes = most}})));
  }
  StartServer();
  std::string small = Make(Options("small")).id, wide = Make(Options("wide")).id;
  auto refused = Wait(manager_->Fork("small", small, 15s, 2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "count must be less than 2, the number of sandboxes that may run at once");
  auto forks = Wait(manager_->Fork("wide", wide, 15s, 5));
  ASSERT_TRUE(forks) << forks.error().message();
  EXPECT_EQ(std::count_if(forks->begin(), forks->end(), [](auto& one) { return !!one; }), 5);
}

}  // namespace
}  // namespace caisson::sandbox
