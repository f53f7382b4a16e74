// For tests: a Manager on a fake engine, a real store and one template.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <filesystem>

#include "base/testing.h"
#include "sandbox/fake_engine.h"
#include "sandbox/fake_envd.h"
#include "sandbox/manager.h"

namespace caisson::sandbox {

inline void WriteTemplate(const std::string& dir, const std::string& name,
                          const std::string& json) {
  std::filesystem::create_directories(dir + "/" + name + "/rootfs");
  ASSERT_TRUE(WriteFileAtomic(dir + "/" + name + "/template.json", json, 0644));
}

class ManagerFixture : public ::testing::Test {
 protected:
  ManagerFixture() {
    config_.data_dir = dir_.path();
    config_.shutdown_grace_ms = 1000;
    config_.ca_bundle = "none";
    WriteTemplate(dir_ / "templates", "base",
                  R"({"id":"base-id","aliases":["base","debian"],"cpuCount":3,"memoryMB":512,
                      "user":"user","workdir":"/srv/app","env":{"A":"template","B":"template"},
                      "tools":[{"name":"git","version":"2.47"}]})");
    templates_ = TemplateCatalog::Load(dir_ / "templates").value();
    OpenStore();
  }
  ~ManagerFixture() override { StopServer(); }

  void OpenStore() {
    auto opened = store::OpenStore("sqlite:///" + (dir_ / "caisson.db"), io_.get_executor());
    ASSERT_TRUE(opened) << opened.error().message();
    store_ = std::move(*opened);
  }
  // A server process begins (again): what the engine and the store hold stays.
  void StartServer() {
    manager_ = std::make_unique<Manager>(io_.get_executor(), config_, engine_, *store_, templates_,
                                         "secret", envd_);
    auto started = Wait(manager_->Start());
    ASSERT_TRUE(started) << started.error().message();
  }
  void StopServer() {
    if (!manager_) return;
    testing::Await(io_, manager_->Stop());
    manager_.reset();
  }

  // Begins something; its result is there when the loop has run for long enough. What it has come
  // to by now is a matter of speed.
  template <class T>
  std::shared_ptr<std::optional<T>> Begin(Task<T> task) {
    auto result = std::make_shared<std::optional<T>>();
    asio::co_spawn(io_, std::move(task),
                   [result](std::exception_ptr, T value) { result->emplace(std::move(value)); });
    Sleep(std::chrono::milliseconds(2));
    return result;
  }
  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }
  void Sleep(std::chrono::milliseconds duration) { testing::Await(io_, SleepFor(duration)); }
  // Lets the loop run until `condition`, for at most half a minute.
  bool Until(const std::function<bool()>& condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      Sleep(std::chrono::milliseconds(2));
    }
    return true;
  }

  static CreateOptions Options(std::string key_id = "admin") {
    CreateOptions options;
    options.key_id = std::move(key_id);
    return options;
  }
  Info Make(CreateOptions options = Options()) {
    auto made = Wait(manager_->Create(std::move(options)));
    EXPECT_TRUE(made) << made.error().message();
    return made.value_or(Info{});
  }
  // Its end is counted from its start, but for what passes between two looks at the clock, and the
  // start may lie ahead a little.
  static bool Lasts(const Info& info, std::chrono::seconds timeout) {
    return std::chrono::abs(info.end_at - info.started_at - timeout) < std::chrono::seconds(5);
  }
  store::SandboxRow RowOf(const std::string& id) {
    return Wait(store_->GetSandbox(id)).value().value_or(store::SandboxRow{});
  }
  // The last event of this type.
  store::SandboxEvent EventOf(const std::string& id, std::string_view type) {
    store::SandboxEvent found;
    auto events = Wait(store_->ListEvents(id, {}));
    for (auto& event : events.value())
      if (event.type == type) found = std::move(event);
    EXPECT_EQ(found.type, type);
    return found;
  }
  std::vector<std::string> EventTypes(const std::string& id) {
    std::vector<std::string> types;
    auto events = Wait(store_->ListEvents(id, {}));
    for (const auto& event : events.value()) types.push_back(event.type);
    return types;
  }

  asio::io_context io_;
  testing::TempDir dir_;
  Config config_;
  FakeEngine engine_;
  FakeEnvd envd_;
  TemplateCatalog templates_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Manager> manager_;
};

}  // namespace caisson::sandbox
