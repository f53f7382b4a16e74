// For tests: a daemon and its clients on one loop, in the test's own thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "envd/daemon.h"
#include "http/client.h"

namespace caisson::envd {

using namespace std::chrono_literals;
namespace json = boost::json;

// A whole answer.
struct Reply {
  unsigned status = 0;
  http::Headers headers;
  std::string body;

  json::value Json() const { return json::parse(body); }
};

// One envelope of a stream.
struct Message {
  uint8_t flags = 0;
  json::object body;
  bool last() const { return (flags & 2) != 0; }
};

// What a process gave.
struct Outcome {
  int64_t pid = 0;
  std::string out, err, pty;
  int keepalives = 0;
  json::object end;    // empty if there was none
  json::object error;  // of the EndStream envelope
};

class Fixture;

// A request that is answered by a stream; the request can be written piece by piece.
class Call {
 public:
  Call(Fixture& fixture, std::unique_ptr<http::ClientConnection> connection)
      : fixture_(fixture), connection_(std::move(connection)) {}

  // The next envelope; nothing when none comes within `timeout` or the connection ends.
  std::optional<Message> Next(std::chrono::milliseconds timeout = 30s);
  // Reads events until the end of the stream.
  Outcome Collect();
  void Write(const json::object& message);  // one envelope more of a client stream
  void Finish();
  http::ClientConnection& connection() { return *connection_; }

 private:
  Fixture& fixture_;
  std::unique_ptr<http::ClientConnection> connection_;
  std::string buffer_;
};

class Fixture : public testing::Test {
 protected:
  Fixture();
  ~Fixture() override;

  // Changes before Boot(); afterwards the daemon has its copy.
  Settings settings;
  // Starts the daemon; SetUp() does it unless a test is derived from Unbooted.
  void Boot();
  void SetUp() override { Boot(); }
  // What a test left running ends with it.
  void KillProcesses();

 public:
  asio::io_context loop{1};
  std::unique_ptr<Daemon> daemon;
  uint16_t port = 0;  // where requests go
  std::string dir;    // fresh, gone afterwards

  // Runs the loop until `task` is done; throws after two minutes.
  template <class T>
  T Await(Task<T> task) {
    // Shared: after a timeout the task may still end later.
    struct State {
      bool done = false;
      std::exception_ptr thrown;
      std::optional<T> result;
    };
    auto state = std::make_shared<State>();
    asio::co_spawn(loop, std::move(task), [state](std::exception_ptr thrown, T value) {
      state->done = true;
      state->thrown = thrown;
      if (!thrown) state->result.emplace(std::move(value));
    });
    RunUntil(state->done);
    if (state->thrown) std::rethrow_exception(state->thrown);
    return std::move(*state->result);
  }
  void RunUntil(const bool& done);
  // Lets the daemon work.
  void Wait(std::chrono::milliseconds duration);
  // The same until it is so, for at most a minute; what it came to.
  bool Until(const std::function<bool()>& so);

  std::unique_ptr<http::ClientConnection> Connect();
  Reply Http(std::string method, std::string target, http::Headers headers = {},
             std::string body = "");
  // `procedure` is "process.Process/List".
  Reply Unary(const std::string& procedure, const json::object& request,
              http::Headers headers = {});
  // Sends one request message. `finish` false leaves the request open, for client streams.
  Call Stream(const std::string& procedure, const json::object& request, http::Headers headers = {},
              bool finish = true);
  // Starts a process and follows it to its end.
  Outcome Run(const json::object& request, http::Headers headers = {});
  Outcome Bash(const std::string& script, http::Headers headers = {});

  std::string Path(const std::string& name) const { return dir + "/" + name; }
  void WriteFile(const std::string& name, const std::string& content);
  std::string ReadBack(const std::string& name);
};

// A fixture that boots when the test says so.
class Unbooted : public Fixture {
 protected:
  void SetUp() override {}
};

// {"process":{"cmd":"/bin/bash","args":["-c",script]}, "stdin":false}
json::object BashRequest(const std::string& script);
// The name of the user who runs the tests.
std::string CurrentUser();
bool ProcessExists(int64_t pid);

}  // namespace caisson::envd
