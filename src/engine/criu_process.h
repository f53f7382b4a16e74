// One running CRIU, and the conversation with it. Internal to criu*.cc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/engine.h"

namespace caisson::engine {

// Numbers of CRIU's requests and answers (images/rpc.proto there).
enum class CriuVerb : uint32_t {
  kDump = 1,
  kRestore = 2,
  kNotify = 6,
  kFeatureCheck = 9,
  kVersion = 10
};

struct CriuAnswer {
  CriuVerb verb{};
  bool success = false;
  std::string error;   // CRIU's own first complaint, may be empty
  int pid = 0;         // restored, or named by a notification
  std::string script;  // where a notification comes from, e.g. "setup-namespaces"
  std::string version;
};

struct CriuStart {
  const std::vector<std::string>* command = nullptr;
  // Put into /run/criu.kdat, on a tmpfs that only this process sees; "" with `cover_run`: an empty
  // one.
  bool cover_run = false;
  std::string_view kernel_facts;
  int cgroup = -1;  // v2, to be born in
  const std::function<Status()>* enter = nullptr;
  // A file to be locked (shared) until it ends, "" = none. Then nobody kills it: what it works on
  // would be left in a state that nobody can mend.
  std::string_view lock;
};

// Killed, with the processes it was about to restore, if it still runs when the object goes away;
// one with a lock goes on and ends by itself.
class CriuProcess {
 public:
  static Result<CriuProcess> Start(const CriuStart& start);
  CriuProcess(CriuProcess&&) = default;
  CriuProcess& operator=(CriuProcess&&) = delete;
  ~CriuProcess();

  // `message` is a whole criu_req.
  Status Send(const std::string& message) { return SendMessage(socket_.get(), message); }
  // kDeadlineExceeded; kUnavailable if it ended without an answer.
  Result<CriuAnswer> Receive(Deadline deadline);
  // After its last answer: it ends by itself.
  void Finish(Deadline deadline);

  int pid() const { return pid_; }

 private:
  CriuProcess() = default;
  int pid_ = 0;
  bool has_lock_ = false;
  UniqueFd process_, socket_;
};

}  // namespace caisson::engine
