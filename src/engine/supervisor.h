// The engine's main process: knows every living sandbox, answers the server, and leaves everything
// slow to the launchers. Single-threaded; never blocks for longer than microseconds.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "engine/balance.h"
#include "engine/disk_guard.h"
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
  static constexpr int kSaveAttempts = 2;
  struct Entry {
    enum class State { kBuilding, kRunning, kFrozen, kRemoving };
    State state = State::kBuilding;
    std::string group;             // Spec::group; "" after the engine was started anew
    Sandbox sandbox;               // while running or frozen
    bool saving = false;           // a launcher pauses it, resumes it or takes a snapshot
    bool held = false;             // stands still for the host's disk
    int64_t disk_taken = 0;        // of the host's, when it was near full
    int64_t slowed_to = 0;         // bytes per second for the host's disk; 0 = not
    bool ended = false;            // by itself, meanwhile
    bool keep_saved = false;       // it was being resumed: what is saved of it must not go
    bool unwanted = false;         // destroyed while a launcher works on it
    std::vector<Call> destroyers;  // who waits until it is gone
    Call creator = 0;              // who waits until it is built
    std::optional<Error> failure;  // the answer for `creator` once it is gone
  };

  void OnServerReadable();
  void Handle(Message request);
  Result<Message> Answer(Call call, const std::string& op, Message& request, bool& later);

  // Also resumes what is saved on disk.
  Status Create(Call call, Message request, std::chrono::milliseconds longest);
  void OnBuilt(const std::string& id, Result<Message> answer, bool died);
  Status Register(Entry& entry, Message answer);
  void Destroy(Call call, const std::string& id);
  void BeginRemoval(const std::string& id, Entry& entry);
  void SubmitRemoval(const std::string& id, bool keep_saved, int attempts);
  void OnRemoved(const std::string& id, Status removed);
  void OnEnded(const std::string& id);

  // ---- supervisor_saving.cc
  Status Save(Call call, Message request, int attempts);
  void OnSaved(Call call, const std::string& id, Result<Message> answer);
  // Asks again for those that were still being saved, from time to time.
  void SettleRest();
  // Goes on with what happened to the sandbox while a launcher was at work; false if it is gone.
  bool CatchUp(const std::string& id, Entry& entry);
  Status Resume(Call call, Message request);
  void OnThawed(Call call, const std::string& id, Result<Message> answer);
  Status DeleteSaved(Call call, Message request);
  Status GrowDisk(Call call, Message request);
  Result<Message> GetSaved(const json::object& head);
  Result<Message> ListSaved(const json::object& head);
  Result<Message> SetLimits(const json::object& head);

  Result<Message> Dial(const json::object& head);
  Result<Message> Listen(const json::object& head);
  Result<Message> SetEgress(const json::object& head);
  Result<Message> Measure(const json::object& head);
  Result<Message> List(const json::object& head);
  // Sandboxes that compute or write all the time make room for the others; looked at from time to
  // time.
  void MakeRoom();
  bool NobodyWorks(std::chrono::steady_clock::time_point now);
  void Apply(const std::vector<Balance::Change>& computing,
             const std::vector<Balance::Change>& writing);
  // Those who fill the host's disk stand still when it is nearly full.
  void GuardDisk();
  void Hold(Entry& entry, bool hold);
  // As if it had never made room: before it is saved, and when nobody remembers whether it did.
  void Ease(const Entry& entry);

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
  std::set<std::string> unsettled_;
  std::chrono::steady_clock::time_point settle_at_;
  Balance cpu_balance_, write_balance_;
  std::chrono::steady_clock::time_point make_room_at_, looked_at_;
  int64_t cpu_of_all_ = 0;
  DiskGuard disk_guard_;
  int64_t free_disk_ = std::numeric_limits<int64_t>::max();
  std::deque<Message> outgoing_;
  bool behind_ = false;  // the server is watched for room to write instead of requests
  bool server_gone_ = false;
};

}  // namespace caisson::engine
