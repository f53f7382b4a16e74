// A server process with a fake provider and a real envd, for tests of the platform's sandboxes.
#pragma once

#include <gmock/gmock.h>

#include "store/account_rows.h"
#include "store/work_rows.h"
#include "work/fake_provider.h"
#include "work/sandboxes.h"

namespace caisson::work {

using namespace std::chrono_literals;
using store::GitOperationRow;
using store::Select;
using store::Transaction;

class SandboxesTest : public sdk::EnvdFixture {
 protected:
  SandboxesTest() : provider_(port_) {
    config_.database_url = "sqlite:///" + (dir_ / "caisson.db");
    config_.shutdown_grace_ms = 1000;
    store_ = std::move(store::OpenStore(config_.database_url, io_.get_executor()).value());
    for (const char* id : {"alice", "bob"}) {
      store::UserRow user{.id = id, .name = id, .role = "member", .created_at = Now()};
      EXPECT_TRUE(Await(store_->Write([user](Transaction& write) { return write.Insert(user); })));
    }
    log_ = std::make_unique<events::Log>(io_.get_executor(), *store_, config_);
    EXPECT_TRUE(Await(log_->Start()));
    Begin();
  }
  ~SandboxesTest() override {
    caisson::testing::Await(io_, sandboxes_->Stop());
    caisson::testing::Await(io_, log_->Stop());
    EXPECT_TRUE(Await(store_->Close()));
  }
  // A server process begins (again).
  void Begin() {
    if (sandboxes_) caisson::testing::Await(io_, sandboxes_->Stop());
    sandboxes_ = std::make_unique<Sandboxes>(io_.get_executor(), config_, *store_, *log_, provider_,
                                             "this server");
    sandboxes_->OnStopped([this](const std::string& id) { stopped_.push_back(id); });
  }

  static SandboxRequest For(std::string holder) {
    SandboxRequest request;
    request.owner_id = "alice";
    if (!holder.empty()) request.holder = {.kind = "task", .id = std::move(holder)};
    return request;
  }
  static SandboxRequest Patient(std::string holder, std::chrono::seconds wait) {
    SandboxRequest request = For(std::move(holder));
    request.wait = wait;
    return request;
  }
  SandboxRow Made(std::string holder = "e1") {
    auto row = Await(sandboxes_->Create(For(std::move(holder))));
    EXPECT_TRUE(row) << row.error().message();
    return row.value_or(SandboxRow());
  }
  std::vector<SandboxRow> Rows() {
    return Await(store_->Read([](Transaction& read) { return read.List(Select<SandboxRow>()); }))
        .value();
  }
  std::vector<GitOperationRow> Operations() {
    return Await(
               store_->Read([](Transaction& read) { return read.List(Select<GitOperationRow>()); }))
        .value();
  }
  std::vector<std::string> EventTypes() {
    caisson::testing::Await(io_, log_->Flush());
    std::vector<std::string> types;
    auto recent = Await(log_->Recent({}, 100));
    for (const auto& event : recent.value()) types.push_back(event.type);
    return types;
  }
  void Pause() { caisson::testing::Await(io_, SleepFor(10ms)); }
  void Change(SandboxRow row) {
    EXPECT_TRUE(Await(store_->Write([row](Transaction& write) { return write.Update(row); })));
  }
  Result<Sandboxes::Executed> Execute(const std::string& id, std::string script) {
    return Await(sandboxes_->Execute("alice", id, {.command = Bash(std::move(script))}));
  }

  Config config_;
  FakeProvider provider_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<events::Log> log_;
  std::unique_ptr<Sandboxes> sandboxes_;
  std::vector<std::string> stopped_;
};

}  // namespace caisson::work
