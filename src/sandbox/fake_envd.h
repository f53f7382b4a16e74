// An envd without a sandbox, for tests of the manager.
#pragma once

#include <optional>
#include <vector>

#include "sandbox/envd.h"

namespace caisson::sandbox {

class FakeEnvd : public Envd {
 public:
  Task<Status> CheckHealth(UniqueFd) override {
    if (health_fails) co_return tl::unexpected(*health_fails);
    co_return Status();
  }
  Task<Status> Init(UniqueFd, EnvdSettings settings, std::string token) override {
    if (asks_for && token != *asks_for) co_return Fail(Code::kUnauthenticated, "another token");
    if (asks_for) asks_for = settings.access_token;
    inits.push_back({std::move(settings), std::move(token)});
    if (init_takes.count() > 0) co_await SleepFor(init_takes);
    if (init_fails) co_return tl::unexpected(*init_fails);
    co_return Status();
  }
  Task<Status> SetOutputRate(UniqueFd, int64_t kbps, std::string) override {
    if (init_fails) co_return tl::unexpected(*init_fails);
    output_rates.push_back(kbps);
    co_return Status();
  }

  // What a test wants to happen.
  std::optional<Error> health_fails, init_fails;
  std::chrono::milliseconds init_takes{0};
  std::optional<std::string> asks_for;  // the token

  // What has happened.
  struct Told {
    EnvdSettings settings;
    std::string token;
  };
  std::vector<Told> inits;
  std::vector<int64_t> output_rates;
};

}  // namespace caisson::sandbox
