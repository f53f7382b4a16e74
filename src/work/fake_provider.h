// A provider without sandboxes, for tests of what stands above it. Every one of its sandboxes is
// the same envd.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/id.h"
#include "sandbox/provider.h"
#include "sdk/test_support.h"

namespace caisson::work {

class FakeProvider final : public sandbox::Provider {
 public:
  explicit FakeProvider(uint16_t envd_port) : envd_port_(envd_port) {}

  std::string name() const override { return name_; }

  Task<Result<sandbox::ProviderInfo>> Create(sandbox::ProviderOptions options) override {
    ++creates;
    if (create_takes.count() > 0) co_await SleepFor(create_takes);
    while (hold_create) co_await SleepFor(std::chrono::milliseconds(1));
    if (create_fails && !create_fails_late) co_return tl::unexpected(*create_fails);
    if (room && sandboxes.size() >= *room) co_return Fail(Code::kResourceExhausted, "it is full");
    sandbox::ProviderInfo info{.id = RandomId("i", 20),
                               .owner_id = options.owner_id,
                               .state = "running",
                               .template_id = "base",
                               .metadata = options.metadata,
                               .started_at = Now(),
                               .ends_at = Now() + options.timeout};
    sandboxes[info.id] = info;
    last_options = std::move(options);
    if (create_fails) co_return tl::unexpected(*create_fails);
    co_return info;
  }
  Task<Result<sandbox::ProviderInfo>> Get(std::string owner_id, std::string id) override {
    ++gets;
    co_return Find(owner_id, id);
  }
  Task<Result<std::vector<sandbox::ProviderInfo>>> List(
      std::string owner_id, std::map<std::string, std::string> metadata) override {
    if (down) co_return tl::unexpected(*down);
    std::vector<sandbox::ProviderInfo> list;
    for (const auto& [id, info] : sandboxes) {
      bool matches = owner_id.empty() || info.owner_id == owner_id;
      for (const auto& [name, value] : metadata) {
        auto it = info.metadata.find(name);
        matches = matches && it != info.metadata.end() && it->second == value;
      }
      if (matches) list.push_back(info);
    }
    co_return list;
  }
  Task<Status> Kill(std::string owner_id, std::string id) override {
    ++kills;
    if (down) co_return tl::unexpected(*down);
    CO_TRY(Find(owner_id, id));
    sandboxes.erase(id);
    co_return Status();
  }
  Task<Status> Pause(std::string owner_id, std::string id) override {
    CO_TRY(Find(owner_id, id));
    ++pauses;
    most_pausing = std::max(most_pausing, ++pausing);
    auto late = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (most_pausing < pauses_meet && std::chrono::steady_clock::now() < late)
      co_await SleepFor(std::chrono::milliseconds(1));
    --pausing;
    if (pause_fails) co_return tl::unexpected(*pause_fails);
    if (cannot_pause.contains(id)) co_return Fail(Code::kUnavailable, "it cannot be paused");
    sandboxes[id].state = "paused";
    co_return Status();
  }
  Task<Status> Resume(std::string owner_id, std::string id, std::chrono::seconds) override {
    ++resumes;
    CO_TRY(Find(owner_id, id));
    sandboxes[id].state = "running";
    co_return Status();
  }
  Task<Status> SetTimeout(std::string owner_id, std::string id, std::chrono::seconds) override {
    CO_TRY(Find(owner_id, id));
    co_return Status();
  }
  Task<Result<std::string>> Snapshot(std::string owner_id, std::string id,
                                     std::string name) override {
    CO_TRY(Find(owner_id, id));
    co_return snapshots.try_emplace(name, "snap-" + id).first->second;
  }
  Task<Status> DeleteSnapshot(std::string, std::string name) override {
    std::erase_if(snapshots,
                  [&](const auto& one) { return one.first == name || one.second == name; });
    co_return Status();
  }
  Task<Result<sdk::EnvdClient>> Envd(std::string owner_id, std::string id) override {
    CO_TRY_ASSIGN(auto info, Find(owner_id, id));
    if (info.state == "paused") co_return Fail(Code::kFailedPrecondition, "it is paused");
    co_return sdk::EnvdClient(std::make_unique<sdk::LoopbackTransport>(envd_port_, "a token"));
  }
  Task<Result<UniqueFd>> Listen(std::string, std::string, uint16_t) override {
    co_return Fail(Code::kUnimplemented, "a fake has no network");
  }
  std::string Host(const std::string& id, uint16_t port) const override {
    return fmt::format("{}-{}.test", port, id);
  }

  // What a test wants to happen.
  std::optional<Error> create_fails, pause_fails, down;
  bool create_fails_late = false;  // the sandbox is there all the same
  std::optional<size_t> room;      // for so many
  std::set<std::string> cannot_pause;
  int pauses_meet = 0;  // a pause waits until there were so many at the same time
  std::chrono::milliseconds create_takes{0};
  bool hold_create = false;  // it takes as long as this is set
  std::string name_ = "local";

  // What has happened.
  std::map<std::string, sandbox::ProviderInfo> sandboxes;
  sandbox::ProviderOptions last_options;
  std::map<std::string, std::string> snapshots;  // by name
  int creates = 0, gets = 0, kills = 0, resumes = 0;
  int pauses = 0, pausing = 0, most_pausing = 0;

 private:
  Result<sandbox::ProviderInfo> Find(const std::string& owner_id, const std::string& id) const {
    if (down) return tl::unexpected(*down);
    auto it = sandboxes.find(id);
    if (it == sandboxes.end() || it->second.owner_id != owner_id)
      return Fail(Code::kNotFound, "sandbox '{}' does not exist or has ended", id);
    return it->second;
  }

  uint16_t envd_port_;
};

}  // namespace caisson::work
