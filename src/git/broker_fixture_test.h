// For tests of the broker: a forge that is git's own http-backend, a broker in front of it, and git
// that talks to the broker.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "git/broker.h"
#include "git/test_support.h"
#include "http/test_support.h"

namespace caisson::git {

inline constexpr std::string_view kToken = "ghs_PlantedTokenThatNobodyMaySee";

// The server that the broker talks to. Repositories are below `root`.
class TestForge {
 public:
  explicit TestForge(std::string root);

  std::string base_url() const { return "http://" + server_.address(); }
  uint16_t port() const { return server_.port(); }

  // What was asked of it, and with which headers.
  struct Seen {
    std::string method, target;
    http::Headers headers;
    std::string body;
  };
  std::vector<Seen> seen() const;
  size_t Count(std::string_view method, std::string_view part) const;
  void Forget();

  // The token it wants; "" = anybody may.
  void Require(std::string token);
  // May answer instead of git; true if it did.
  using Instead = std::function<Task<bool>(http::Exchange&, const Seen&)>;
  void Plant(Instead instead);

 private:
  Task<void> Serve(http::Exchange& exchange);

  std::string root_;
  mutable std::mutex mutex_;  // tests look from their own thread
  std::vector<Seen> seen_;
  std::string token_;
  Instead instead_;
  http::TestServer server_;
};

class BrokerTest : public ::testing::Test {
 protected:
  BrokerTest();
  ~BrokerTest() override;

  // Opens the broker of one sandbox; the port it listens on.
  uint16_t Open(const std::string& sandbox, Grant grant);
  // For octo/repo of the forge, pushes below task-7, with `token`.
  Grant MakeGrant(std::string token = std::string(kToken));
  // What git prints, and its exit code. `url` stands for the repository at the broker.
  sdk::CommandResult Git(std::vector<std::string> args, const std::string& dir = "/");
  std::string GitOk(std::vector<std::string> args, const std::string& dir = "/");
  // A clone through the broker, with a commit more on task-7.
  void MakeWork();
  std::string RemoteRefs() { return Must({"git", "for-each-ref"}, remote); }
  Broker::Numbers numbers();

  caisson::testing::TempDir temp;
  std::string root = temp / "forge";
  std::string remote = root + "/octo/repo.git";
  std::string work = temp / "work";
  Config config;
  std::unique_ptr<TestForge> forge;
  http::TestLoop loop;
  std::unique_ptr<Broker> broker;
  std::vector<ModelRoute> models;
  uint16_t port = 0;
  std::string url;
};

}  // namespace caisson::git
