// The engine's main process: knows every living sandbox, answers the server, and leaves everything
// slow to the launchers. Single-threaded; never blocks for longer than microseconds.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "engine/engine.h"
#include "engine/event_loop.h"
#include "engine/launcher.h"
#include "engine/protocol.h"

namespace caisson::engine {

class Supervisor {
 public:
  // `lock`: an open descriptor that marks the data directory as used; launchers keep it too.
  Supervisor(const Config& config, Driver& driver, EventLoop& loop, int server, int lock);

  // Takes over these sandboxes and starts the launchers.
  Status Start(std::vector<Sandbox> sandboxes);
  // Serves until the server closes its socket. Sandboxes live on.
  void Run();
  // Nothing lives and nothing is being built or removed.
  bool idle() const { return entries_.empty(); }

 private:
  using Call = int64_t;
  struct Entry {
    enum class State { kBuilding, kRunning, kRemoving };
    State state = State::kBuilding;
    Sandbox sandbox;               // while running
    bool unwanted = false;         // destroyed while being built
    std::vector<Call> destroyers;  // who waits until it is gone
    Call creator = 0;              // who waits until it is built
    std::optional<Error> failure;  // the answer for `creator` once it is gone
  };

  void OnServerReadable();
  void Handle(Message request);
  Result<Message> Answer(Call call, const std::string& op, Message& request, bool& later);

  Status Create(Call call, Message request);
  void OnBuilt(const std::string& id, Result<Message> answer, bool died);
  Status Register(Entry& entry, Message answer);
  void Destroy(Call call, const std::string& id);
  void BeginRemoval(const std::string& id, Entry& entry);
  void SubmitRemoval(const std::string& id, int attempts);
  void OnRemoved(const std::string& id, Status removed);
  void OnEnded(const std::string& id);
  Result<Message> Dial(const json::object& head);
  Result<Message> Measure(const json::object& head);
  Result<Message> List(const json::object& head);

  void Reply(Call call, Result<Message> answer);
  // Messages wait here while the server does not read; until they are gone no request is taken.
  void Post(Message message);
  void Flush();
  void WatchServer();

  const Config& config_;
  Driver& driver_;
  EventLoop& loop_;
  int server_;
  LauncherPool launchers_;
  std::map<std::string, Entry> entries_;
  std::deque<Message> outgoing_;
  bool behind_ = false;  // the server is watched for room to write instead of requests
  bool server_gone_ = false;
};

}  // namespace caisson::engine
