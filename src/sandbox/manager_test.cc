#include "sandbox/manager.h"

#include <boost/json.hpp>

#include "sandbox/manager_fixture.h"
#include "sandbox/secrets.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;
using Types = std::vector<std::string>;

class ManagerTest : public ManagerFixture {};

TEST_F(ManagerTest, ProgramsInsideFindTheCaBundleUnlessTheyAreToldOtherwise) {
  config_.ca_bundle = "/some/bundle.pem";
  StartServer();
  CreateOptions options = Options();
  options.env = {{"SSL_CERT_FILE", "/own.pem"}};
  Make(options);
  auto env = boost::json::parse(engine_.last_spec.boot).at("envVars");
  EXPECT_EQ(env.at("SSL_CERT_FILE"), "/own.pem");
  for (const char* name : {"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "NODE_EXTRA_CA_CERTS"})
    EXPECT_EQ(env.at(name), "/.caisson/ca-certificates.crt") << name;
}

TEST_F(ManagerTest, CreateTellsTheEngineAndTheStore) {
  StartServer();
  CreateOptions options = Options();
  options.template_name = "debian";
  options.timeout = 60s;
  options.metadata = {{"k", "v"}};
  options.env = {{"B", "request"}};
  options.allow_internet = false;
  options.network = {.allow_public_traffic = false, .mask_request_host = "x"};
  Info info = Make(options);

  EXPECT_EQ(info.id.size(), 21u);
  EXPECT_EQ(info.id[0], 'i');
  EXPECT_EQ(info.template_id, "base-id");
  EXPECT_EQ(info.alias, "debian");
  EXPECT_TRUE(Lasts(info, 60s));
  EXPECT_EQ(info.cpus, 3);
  EXPECT_EQ(info.memory_mb, 512);
  EXPECT_EQ(info.disk_mb, config_.sandbox_disk_mb);
  EXPECT_EQ(info.access_token, AccessToken("secret", info.id));
  EXPECT_EQ(info.inside_token, InsideToken("secret", info.id));
  EXPECT_EQ(info.traffic_token, TrafficToken("secret", info.id));

  const engine::Spec& spec = engine_.last_spec;
  EXPECT_EQ(spec.id, info.id);
  EXPECT_EQ(spec.egress.deny, (std::vector<std::string>{"0.0.0.0/0", "::/0"}));
  EXPECT_EQ(spec.limits.cpus, 3);
  EXPECT_EQ(spec.limits.memory_bytes, int64_t{512} << 20);
  EXPECT_EQ(spec.limits.pids, config_.sandbox_pids);
  auto boot = boost::json::parse(spec.boot).as_object();
  EXPECT_EQ(boot["sandboxId"], info.id.c_str());
  EXPECT_EQ(boot["templateId"], "base-id");
  EXPECT_EQ(boot["accessToken"], info.inside_token.c_str());
  EXPECT_EQ(spec.boot.find(info.access_token), std::string::npos);
  EXPECT_EQ(boot["defaultUser"], "user");
  EXPECT_EQ(boot["defaultWorkdir"], "/srv/app");
  EXPECT_EQ(boot["envVars"], boost::json::parse(R"({"A":"template","B":"request"})"));

  auto row = RowOf(info.id);
  EXPECT_EQ(row.state, "running");
  EXPECT_EQ(row.metadata, options.metadata);
  EXPECT_EQ(row.started_at, info.started_at);
  EXPECT_EQ(EventTypes(info.id), Types{"created"});
  EXPECT_EQ(manager_->running(), 1u);
}

TEST_F(ManagerTest, AnOpenSandboxHasNoToken) {
  StartServer();
  CreateOptions options = Options();
  options.secure = false;
  Info info = Make(options);
  EXPECT_EQ(info.access_token, "");
  EXPECT_EQ(info.traffic_token, "");
  EXPECT_FALSE(boost::json::parse(engine_.last_spec.boot).as_object().contains("accessToken"));
  int secured = 0;
  manager_->ForEachRoute([&](const Route&) { return ++secured, false; });
  EXPECT_EQ(secured, 0);
}

TEST_F(ManagerTest, RefusesWhatCannotBe) {
  config_.max_metadata_bytes = 100;
  config_.max_timeout_s = 1000;
  StartServer();
  auto refused = [&](auto change, Code code, std::string_view text) {
    CreateOptions options = Options();
    change(options);
    auto made = Wait(manager_->Create(options));
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code(), code) << text;
    EXPECT_NE(made.error().message().find(text), std::string::npos) << made.error().message();
  };
  using O = CreateOptions;
  refused([](O& o) { o.template_name = "nope"; }, Code::kNotFound, "template 'nope' not found");
  refused([](O& o) { o.timeout = 0s; }, Code::kInvalidArgument, "Timeout must be greater than 0");
  refused([](O& o) { o.timeout = 1001s; }, Code::kInvalidArgument, "greater than 1000 seconds");
  refused([](O& o) { o.metadata = {{"a", std::string(100, 'x')}}; }, Code::kInvalidArgument,
          "metadata is too large");
  refused([](O& o) { o.env = {{"a", std::string(100, 'x')}}; }, Code::kInvalidArgument,
          "environment variables are too large");
  refused([](O& o) { o.env = {{"a=b", "x"}}; }, Code::kInvalidArgument, "cannot be the name");
  refused([](O& o) { o.env = {{"", "x"}}; }, Code::kInvalidArgument, "cannot be the name");
  refused([](O& o) { o.env = {{"a", std::string(1, '\0')}}; }, Code::kInvalidArgument, "NUL");
  EXPECT_EQ(engine_.creates, 0);
}

TEST_F(ManagerTest, AnEnvironmentTooLargeForTheEngineIsRefused) {
  config_.max_metadata_bytes = 0;
  StartServer();
  CreateOptions options = Options();
  options.env = {{"A", std::string(engine::kMaxBootBytes, 'x')}};
  EXPECT_EQ(Wait(manager_->Create(options)).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(engine_.creates, 0);
}

TEST_F(ManagerTest, EngineErrorsAreToldWithoutTheHostsPaths) {
  StartServer();
  for (auto [engine_code, code] : {std::pair{Code::kInternal, Code::kInternal},
                                   {Code::kPermissionDenied, Code::kInternal},
                                   {Code::kResourceExhausted, Code::kUnavailable},
                                   {Code::kDeadlineExceeded, Code::kDeadlineExceeded}}) {
    engine_.create_fails = Error(engine_code, "mounting /srv/secret/path: failed");
    auto made = Wait(manager_->Create(Options()));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), code);
    EXPECT_EQ(made.error().message().find("/srv"), std::string::npos);
  }
  EXPECT_EQ(manager_->running(), 0u);
  EXPECT_TRUE(Wait(store_->ListLiveSandboxes()).value().empty());
}

// ---- quotas
// --------------------------------------------------------------------------------------

Task<void> CreateInto(Manager& manager, CreateOptions options, std::vector<Result<Info>>& results) {
  results.push_back(co_await manager.Create(std::move(options)));
}

TEST_F(ManagerTest, CreationsInFlightCountAgainstTheServersQuota) {
  config_.max_sandboxes = 3;
  engine_.create_takes = 20ms;
  StartServer();
  std::vector<Result<Info>> results;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 5; ++i) group.Spawn("create", CreateInto(*manager_, Options(), results));
  EXPECT_TRUE(Wait(group.Join(30s)));
  int made = 0;
  for (auto& result : results) {
    if (result) {
      ++made;
    } else {
      EXPECT_EQ(result.error().code(), Code::kUnavailable);
    }
  }
  EXPECT_EQ(made, 3);
  EXPECT_EQ(engine_.creates, 3);
  // A kill makes room at once, even while the engine is still cleaning up.
  auto infos = manager_->List({.key_id = "admin"});
  ASSERT_TRUE(Wait(manager_->Kill("admin", infos[0].id)));
  EXPECT_TRUE(Wait(manager_->Create(Options())));
}

TEST_F(ManagerTest, AKeysQuotaIsItsOwn) {
  config_.max_sandboxes_per_key = 2;
  StartServer();
  Make(Options("a"));
  Make(Options("a"));
  auto refused = Wait(manager_->Create(Options("a")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(Wait(manager_->Create(Options("b"))));
}

TEST_F(ManagerTest, AFailedCreationGivesItsPlaceBack) {
  config_.max_sandboxes = 1;
  StartServer();
  engine_.create_fails = Error(Code::kInternal, "no");
  EXPECT_FALSE(Wait(manager_->Create(Options())));
  engine_.create_fails.reset();
  EXPECT_TRUE(Wait(manager_->Create(Options())));
}

// ---- ownership, lists
// ------------------------------------------------------------------------------

TEST_F(ManagerTest, AnotherKeySeesNothing) {
  StartServer();
  std::string id = Make(Options("a")).id;
  EXPECT_TRUE(manager_->Get("a", id));
  EXPECT_EQ(manager_->Get("b", id).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->Kill("b", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->SetTimeout("b", id, 5s, false)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->Metrics("b", id, {}, {})).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->Events("b", id, {})).error().code(), Code::kNotFound);
  EXPECT_TRUE(manager_->List({.key_id = "b"}).empty());
  EXPECT_EQ(manager_->List({.key_id = "a"}).size(), 1u);
}

TEST_F(ManagerTest, ListsAreSortedAndFiltered) {
  StartServer();
  std::vector<Info> made;
  for (int i = 0; i < 4; ++i) {
    CreateOptions options = Options();
    options.metadata = {{"n", std::to_string(i)}, {"odd", i % 2 ? "yes" : "no"}};
    made.push_back(Make(options));
  }
  auto ids = [](const std::vector<Info>& infos) {
    std::vector<std::string> list;
    for (const Info& info : infos) list.push_back(info.id);
    return list;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids(manager_->List({.key_id = "admin"})),
            (Ids{made[3].id, made[2].id, made[1].id, made[0].id}));
  EXPECT_EQ(ids(manager_->List({.key_id = "admin", .ascending = true})),
            (Ids{made[0].id, made[1].id, made[2].id, made[3].id}));
  EXPECT_EQ(ids(manager_->List({.key_id = "admin", .metadata = {{"odd", "yes"}}})),
            (Ids{made[3].id, made[1].id}));
  EXPECT_EQ(ids(manager_->List({.key_id = "admin", .metadata = {{"odd", "yes"}, {"n", "1"}}})),
            Ids{made[1].id});
  EXPECT_EQ(ids(manager_->List({.key_id = "admin", .metadata = {{"odd", ""}}})), Ids{});
  EXPECT_EQ(ids(manager_->List({.key_id = "admin", .started_after = made[2].started_at})),
            (Ids{made[3].id, made[2].id}));
  EXPECT_EQ(ids(manager_->List({.key_id = "admin", .running = false})), Ids{});
  EXPECT_EQ(manager_->List({.key_id = "admin", .template_name = "base"}).size(), 4u);
  EXPECT_EQ(manager_->List({.key_id = "admin", .template_name = "base-id"}).size(), 4u);
  EXPECT_EQ(manager_->List({.key_id = "admin", .template_name = "nope"}).size(), 0u);
}

// ---- store failure, cancellation
// ---------------------------------------------------------------------

TEST_F(ManagerTest, WhatCannotBeRecordedIsDestroyedAgain) {
  StartServer();
  ASSERT_TRUE(Wait(store_->Close()));
  auto made = Wait(manager_->Create(Options()));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kUnavailable);
  EXPECT_EQ(engine_.creates, 1);
  EXPECT_TRUE(engine_.instances.empty());
  EXPECT_EQ(manager_->running(), 0u);
}

TEST_F(ManagerTest, ACreationGoesOnWhenItsClientHangsUp) {
  engine_.held = "create";
  StartServer();
  std::vector<Result<Info>> results;
  TaskGroup client(io_.get_executor());
  client.Spawn("create", CreateInto(*manager_, Options(), results));
  ASSERT_TRUE(Until([&] { return engine_.creates == 1; }));
  EXPECT_TRUE(Wait(client.Stop()));
  EXPECT_TRUE(results.empty());
  engine_.held = "";
  EXPECT_TRUE(Until([&] { return manager_->running() == 1; }));
  EXPECT_EQ(Wait(store_->ListLiveSandboxes()).value().size(), 1u);
}

TEST_F(ManagerTest, AStoppedManagerRefuses) {
  StartServer();
  Make();
  testing::Await(io_, manager_->Stop());
  EXPECT_EQ(Wait(manager_->Create(Options())).error().code(), Code::kUnavailable);
  EXPECT_EQ(engine_.instances.size(), 1u);  // sandboxes live on
}

// ---- idempotency
// ------------------------------------------------------------------------------------

TEST_F(ManagerTest, ARepeatedRequestGetsTheSameSandbox) {
  engine_.held = "create";
  StartServer();
  CreateOptions options = Options();
  options.idempotency_key = "key-1";
  options.request_hash = "h1";
  std::vector<Result<Info>> results;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 2; ++i) group.Spawn("create", CreateInto(*manager_, options, results));
  ASSERT_TRUE(Until([&] { return engine_.creates == 1 && results.size() == 1; }));
  engine_.held = "";
  EXPECT_TRUE(Wait(group.Join(30s)));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].error().code(), Code::kAborted);  // the first is still being worked on
  ASSERT_TRUE(results[1]);
  EXPECT_EQ(Make(options).id, results[1]->id);

  CreateOptions different = options;
  different.request_hash = "h2";
  EXPECT_EQ(Wait(manager_->Create(different)).error().code(), Code::kAlreadyExists);
  CreateOptions stranger = options;
  stranger.key_id = "b";
  EXPECT_NE(Make(stranger).id, results[1]->id);

  StopServer();  // the promise outlives the server process
  StartServer();
  EXPECT_EQ(Make(options).id, results[1]->id);
  EXPECT_EQ(engine_.creates, 2);
}

TEST_F(ManagerTest, AFailedRequestMayBeTriedAgainWithItsKey) {
  StartServer();
  CreateOptions options = Options();
  options.idempotency_key = "key-1";
  engine_.create_fails = Error(Code::kInternal, "no");
  EXPECT_FALSE(Wait(manager_->Create(options)));
  engine_.create_fails.reset();
  EXPECT_TRUE(Wait(manager_->Create(options)));
}

// ---- traffic
// -----------------------------------------------------------------------------------------

TEST_F(ManagerTest, RoutesAreThereWhileTheSandboxRuns) {
  StartServer();
  CreateOptions options = Options();
  options.network.mask_request_host = "app:${PORT}";
  Info info = Make(options);
  const Route* route = manager_->FindRoute(info.id);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->id, info.id);
  EXPECT_EQ(route->access_token, info.access_token);
  EXPECT_TRUE(route->allow_public_traffic);
  EXPECT_EQ(route->mask_request_host, "app:${PORT}");
  EXPECT_FALSE(manager_->FindRoute("iother"));
  int seen = 0;
  manager_->ForEachRoute([&](const Route& r) { return ++seen, r.id == info.id; });
  EXPECT_EQ(seen, 1);
}

TEST_F(ManagerTest, SocketsComeFromTheEngineInBatches) {
  config_.spare_sockets = 8;
  StartServer();
  std::string id = Make().id;
  std::vector<UniqueFd> taken;
  for (int i = 0; i < 20; ++i) {
    auto socket = Wait(manager_->Dial(id));
    ASSERT_TRUE(socket) << socket.error().message();
    taken.push_back(std::move(*socket));
  }
  EXPECT_LE(engine_.dials, 6);
  std::set<int> different;
  for (const UniqueFd& fd : taken) different.insert(fd.get());
  EXPECT_EQ(different.size(), 20u);
  ASSERT_TRUE(Wait(manager_->Kill("admin", id)));
  EXPECT_EQ(Wait(manager_->Dial(id)).error().code(), Code::kNotFound);
}

Task<void> DialInto(Manager& manager, std::string id, int& succeeded, int& not_found) {
  auto socket = co_await manager.Dial(std::move(id));
  if (socket)
    ++succeeded;
  else if (socket.error().code() == Code::kNotFound)
    ++not_found;
}

TEST_F(ManagerTest, ManyDialsAtOnceShareTheTripsToTheEngine) {
  StartServer();
  std::string id = Make().id;
  int succeeded = 0, not_found = 0;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 64; ++i) group.Spawn("dial", DialInto(*manager_, id, succeeded, not_found));
  EXPECT_TRUE(Wait(group.Join(30s)));
  EXPECT_EQ(succeeded, 64);
  EXPECT_LE(engine_.dials, 16);
}

TEST_F(ManagerTest, AKillDuringADialIsNotFound) {
  StartServer();
  std::string id = Make().id;
  int succeeded = 0, not_found = 0;
  TaskGroup group(io_.get_executor());
  engine_.held = "dial";
  for (int i = 0; i < 4; ++i) group.Spawn("dial", DialInto(*manager_, id, succeeded, not_found));
  ASSERT_TRUE(Until([&] { return engine_.dials > 0; }));
  ASSERT_TRUE(Wait(manager_->Kill("admin", id)));
  engine_.held = "";
  EXPECT_TRUE(Wait(group.Join(30s)));
  EXPECT_EQ(not_found, 4);
}

// ---- metrics, events, health
// ----------------------------------------------------------------------------

TEST_F(ManagerTest, TheFirstSampleIsTakenWhenAskedFor) {
  StartServer();
  Info info = Make();
  auto samples = Wait(manager_->Metrics("admin", info.id, {}, {}));
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 1u);
  EXPECT_EQ((*samples)[0].usage.memory_limit_bytes, 2);
  EXPECT_EQ(engine_.measures, 1);
  EXPECT_TRUE(Wait(manager_->Metrics("admin", info.id, {}, info.started_at - 1s))->empty());
  EXPECT_TRUE(Wait(manager_->Metrics("admin", info.id, Now() + 1h, {}))->empty());
}

TEST_F(ManagerTest, UsageIsMeasuredForEveryCall) {
  StartServer();
  Info info = Make();
  engine_.usage.cpu_ns = 5;
  EXPECT_EQ(Wait(manager_->Usage("admin", info.id))->cpu_ns, 5);
  engine_.usage.cpu_ns = 9;
  EXPECT_EQ(Wait(manager_->Usage("admin", info.id))->cpu_ns, 9);
  EXPECT_EQ(Wait(manager_->Usage("b", info.id)).error().code(), Code::kNotFound);
}

TEST_F(ManagerTest, SamplesAreTakenRegularlyAndBounded) {
  config_.metrics_interval_ms = 5;
  config_.metrics_history = 3;
  StartServer();
  Info info = Make();
  EXPECT_TRUE(Until([&] { return engine_.measures >= 6; }));
  auto samples = Wait(manager_->Metrics("admin", info.id, {}, {})).value();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_LT(samples[0].usage.at, samples[2].usage.at);
}

TEST_F(ManagerTest, MeansReachFurtherBackThanSamples) {
  config_.metrics_interval_ms = 20;
  config_.metrics_history = 3;
  config_.metrics_long_interval_s = 1;
  config_.metrics_long_history = 10;
  StartServer();
  Info info = Make();
  // From now on there are always so many.
  ASSERT_TRUE(
      Until([&] { return Wait(manager_->Metrics("admin", info.id, {}, {}))->size() == 3; }));
  auto means = [&] {
    auto fine = Wait(manager_->Metrics("admin", info.id, {}, {})).value();
    auto all = Wait(manager_->Metrics("admin", info.id, info.started_at, {})).value();
    EXPECT_TRUE(std::ranges::is_sorted(all, {}, [](const Sample& one) { return one.usage.at; }));
    return all.size() - fine.size();
  };
  EXPECT_TRUE(Until([&] { return means() >= 1; }));
  // Without a time only what is fresh is asked for.
  EXPECT_EQ(Wait(manager_->Metrics("admin", info.id, {}, {}))->size(), 3u);
}

TEST_F(ManagerTest, AnUnresponsiveEnvdIsRecordedOnce) {
  StartServer();
  std::string id = Make().id;
  engine_.dial_fails = Error(Code::kUnavailable, "no sockets");
  for (int i = 0; i < 3; ++i) manager_->ReportUnresponsive(id, "connection refused");
  EXPECT_TRUE(Until([&] { return EventTypes(id).size() == 2; }));
  manager_->ReportUnresponsive(id, "connection refused");  // too soon for a second event
  manager_->ReportUnresponsive("iother", "unknown sandboxes are ignored");
  Sleep(20ms);
  auto events = Wait(manager_->Events("admin", id, {.levels = {"error"}})).value();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, "unresponsive");
  EXPECT_NE(events[0].message.find("connection refused"), std::string::npos);
}

}  // namespace
}  // namespace caisson::sandbox
