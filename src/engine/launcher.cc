#include "engine/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "engine/mount.h"
#include "engine/pidfd.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A launcher keeps to a job's deadline itself; one that does not hangs in the kernel.
constexpr std::chrono::seconds kGrace{10};
constexpr std::chrono::seconds kUndoTimeout{30};
// A launcher that dies sooner than this is not started again at once.
constexpr std::chrono::seconds kRestartPause{1};
constexpr int kIdleMs = 20;

// A cold start of what is frozen saves its files first; a disk that grows may be copied.
Job::Kind KindOf(const json::object& request) {
  auto op = GetString(request, "op");
  if (!op) return Job::Kind::kQuick;
  if (*op == "destroy" || *op == "delete_saved") return Job::Kind::kRemoval;
  bool cold = *op == "resume" && !GetBool(request, "memory").value_or(true);
  bool slow = *op == "pause" || *op == "snapshot" || *op == "grow_disk" || cold;
  return slow ? Job::Kind::kSlow : Job::Kind::kQuick;
}

// Who takes turns with whom.
std::pair<Job::Kind, std::string_view> TurnOf(const Job& job) {
  return {job.kind, job.group.empty() ? job.id : job.group};
}

Result<Message> Build(Driver& driver, const std::string& op, Message request, Deadline deadline,
                      int socket, std::string& made) {
  bool memory = GetBool(request.head, "memory").value_or(true);
  TRY_ASSIGN(Spec spec, DecodeSpec(std::move(request)));
  auto sandbox = op == "create" ? driver.Create(spec, deadline, socket)
                                : driver.Resume(spec, memory, deadline, socket);
  if (!sandbox) return tl::unexpected(std::move(sandbox).error());
  if (op == "create") made = spec.id;
  Message answer{{{"instance", EncodeInstance(sandbox->instance)},
                  {"address", sandbox->address},
                  {"egress", EncodeEgress(sandbox->egress)}},
                 "",
                 {}};
  answer.fds.push_back(std::move(sandbox->process));
  answer.fds.push_back(std::move(sandbox->network));
  answer.fds.push_back(std::move(sandbox->disk));
  return answer;
}

Result<Message> Save(Driver& driver, const std::string& op, const json::object& head,
                     Deadline deadline) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  TRY_ASSIGN(bool memory, GetBool(head, "memory"));
  if (op == "pause") {
    TRY_ASSIGN(Saved saved, driver.Pause(id, memory, deadline));
    return Message{{{"saved", EncodeSaved(saved)}}, "", {}};
  }
  TRY_ASSIGN(std::string snapshot_id, GetString(head, "snapshot_id"));
  TRY_ASSIGN(Saved saved, driver.Snapshot(id, snapshot_id, memory, deadline));
  return Message{{{"saved", EncodeSaved(saved)}}, "", {}};
}

Result<Message> GrowDisk(Driver& driver, const json::object& head, Deadline deadline) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  TRY_ASSIGN(int64_t bytes, GetInt(head, "bytes"));
  TRY(driver.GrowDisk(id, bytes, deadline));
  return Message{};
}

Result<Message> Remove(Driver& driver, const std::string& op, const json::object& head,
                       Deadline deadline) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  if (op == "delete_saved") {
    TRY(driver.DeleteSaved(id));
    return Message{};
  }
  TRY_ASSIGN(bool keep_saved, GetBool(head, "keep_saved"));
  TRY(driver.Destroy(id, keep_saved, deadline));
  return Message{};
}

Result<Message> Perform(Driver& driver, Message request, int socket, std::string& made) {
  TRY_ASSIGN(std::string op, GetString(request.head, "op"));
  TRY_ASSIGN(int64_t timeout, GetInt(request.head, "timeout_ms"));
  Deadline deadline = steady_clock::now() + milliseconds(timeout);
  if (op == "create" || op == "resume")
    return Build(driver, op, std::move(request), deadline, socket, made);
  if (op == "pause" || op == "snapshot") return Save(driver, op, request.head, deadline);
  if (op == "grow_disk") return GrowDisk(driver, request.head, deadline);
  return Remove(driver, op, request.head, deadline);
}

// Until a request is there or the engine is gone. A pause may be followed by another at once, so
// nothing is done ahead before some time has passed.
void AwaitRequest(Driver& driver, int socket) {
  pollfd item{socket, POLLIN, 0};
  int wait = kIdleMs;
  while (poll(&item, 1, wait) == 0) wait = driver.PrepareAhead() ? 0 : -1;
}

}  // namespace

int RunLauncher(const Driver& parent, int socket) {
  SetProcessTitle("caisson: launcher");
  LeaveOomProtection();
  // What one launcher mounts for a moment (stage.h) must not be seen by another.
  Status alone = TakeMountNamespace();
  auto driver = alone ? parent.ForLauncher() : tl::unexpected(std::move(alone).error());
  if (!driver) {
    LogError("a launcher cannot start", {{"error", driver.error().message()}});
    return 1;
  }
  for (;;) {
    AwaitRequest(**driver, socket);
    auto request = Receive(socket);
    if (!request) return 0;  // the engine is gone
    // It woke up a driver that was waiting, or came too late.
    if (GetString(request->head, "op") == "cancel") continue;
    std::string made;
    auto answer = Perform(**driver, std::move(*request), socket, made);
    Message error;
    if (!answer) error.head["error"] = EncodeError(answer.error());
    bool sent = Send(socket, answer ? *answer : error).has_value();
    (*driver)->TidyUp();
    if (sent) continue;
    // Nobody will ever know of it.
    if (!made.empty()) (void)(*driver)->Destroy(made, false, steady_clock::now() + kUndoTimeout);
    return 0;
  }
}

LauncherPool::LauncherPool(EventLoop& loop, size_t count, size_t max_queue, Start start)
    : loop_(loop), max_queue_(max_queue), start_(std::move(start)), launchers_(count) {}

Status LauncherPool::StartAll() {
  for (size_t i = 0; i < launchers_.size(); ++i) TRY(StartOne(i));
  return {};
}

Status LauncherPool::StartOne(size_t index) {
  Launcher& launcher = launchers_[index];
  launcher.started_at = steady_clock::now();
  TRY_ASSIGN(SocketPair pair, MakeSocketPair());
  TRY_ASSIGN(Forked process, start_(pair.second.get()));
  launcher.process = std::move(process);
  launcher.socket = std::move(pair.first);
  return loop_.Watch(launcher.socket.get(), EPOLLIN, [this, index] { OnReadable(index); });
}

bool LauncherPool::IsFree(const Launcher& launcher) { return !launcher.job && launcher.socket; }

Status LauncherPool::Submit(Job job, bool urgent) {
  if (!urgent && queue_.size() >= max_queue_)
    return Fail(Code::kResourceExhausted, "{} sandboxes wait to be built already; try again later",
                queue_.size());
  job.kind = KindOf(job.request.head);
  queue_.push_back(std::move(job));
  Dispatch();
  return {};
}

bool LauncherPool::Cancel(const std::string& id) {
  if (std::erase_if(queue_, [&](const Job& job) { return job.id == id; }) > 0) return true;
  for (Launcher& launcher : launchers_)
    if (launcher.job && launcher.job->id == id && launcher.socket)
      (void)Send(launcher.socket.get(), Message{{{"op", "cancel"}}, "", {}});
  return false;
}

// Resumes go to the first, everything else to the last ones: so the first ones have what they need
// at hand (Driver::PrepareAhead), and a resume does not wait while a pause is tidied up.
size_t LauncherPool::FindFree(const Job& job) const {
  if (GetString(job.request.head, "op") == "resume")
    return static_cast<size_t>(std::find_if(launchers_.begin(), launchers_.end(), IsFree) -
                               launchers_.begin());
  return static_cast<size_t>(launchers_.rend() -
                             std::find_if(launchers_.rbegin(), launchers_.rend(), IsFree)) -
         1;
}

std::deque<Job>::iterator LauncherPool::FindNext() {
  std::map<std::pair<Job::Kind, std::string_view>, size_t> under_way;
  size_t slow = 0;
  for (const Launcher& launcher : launchers_) {
    if (!launcher.job) continue;
    ++under_way[TurnOf(*launcher.job)];
    slow += launcher.job->kind == Job::Kind::kSlow;
  }
  const bool may_be_slow = launchers_.size() == 1 || slow + 1 < launchers_.size();
  auto next = queue_.end();
  size_t fewest = 0;
  for (auto it = queue_.begin(); it != queue_.end(); ++it) {
    if (it->kind == Job::Kind::kRemoval) return it;
    if (it->kind == Job::Kind::kSlow && !may_be_slow) continue;
    auto found = under_way.find(TurnOf(*it));
    size_t own = found == under_way.end() ? 0 : found->second;
    if (next != queue_.end() && own >= fewest) continue;
    next = it;
    fewest = own;
  }
  return next;
}

void LauncherPool::Dispatch() {
  while (std::any_of(launchers_.begin(), launchers_.end(), IsFree)) {
    auto next = FindNext();
    if (next == queue_.end()) return;
    const size_t index = FindFree(*next);
    Launcher& launcher = launchers_[index];
    launcher.job = std::make_unique<Job>(std::move(*next));
    queue_.erase(next);
    auto left = std::chrono::ceil<milliseconds>(launcher.job->deadline - steady_clock::now());
    launcher.job->request.head["timeout_ms"] = std::max<int64_t>(left.count(), 1);
    Status sent = Send(launcher.socket.get(), launcher.job->request);
    if (sent) {
      launcher.job->request = {};
      continue;
    }
    Job job = std::move(*launcher.job);
    launcher.job.reset();
    if (sent.error().sys_errno() != EPIPE) {
      job.done(tl::unexpected(std::move(sent).error()), false);
      continue;
    }
    // It died while idle; the job goes to another.
    queue_.push_front(std::move(job));
    return Replace(index);
  }
}

void LauncherPool::OnReadable(size_t index) {
  Launcher& launcher = launchers_[index];
  auto answer = Receive(launcher.socket.get());
  if (!answer) return Replace(index);
  auto job = std::move(launcher.job);
  Dispatch();
  if (!job) return;
  Status status = DecodeStatus(answer->head);
  if (status)
    job->done(std::move(answer), false);
  else
    job->done(tl::unexpected(std::move(status).error()), false);
}

void LauncherPool::Replace(size_t index) {
  Launcher& launcher = launchers_[index];
  auto job = std::move(launcher.job);
  LogError("a launcher died and is replaced",
           {{"pid", launcher.process.pid}, {"sandbox", job ? job->id : ""}});
  loop_.Unwatch(launcher.socket.get());
  SendSignal(launcher.process.process.get(), SIGKILL);
  launcher.process = {};
  launcher.socket.Reset();
  if (steady_clock::now() - launcher.started_at >= kRestartPause) Restart(index);
  if (job) job->done(Fail(Code::kInternal, "the process that worked on this sandbox died"), true);
  Dispatch();
}

void LauncherPool::Restart(size_t index) {
  if (Status started = StartOne(index); !started)
    LogError("a launcher cannot be started", {{"error", started.error().message()}});
}

Deadline LauncherPool::NextDeadline() const {
  Deadline next = steady_clock::now() + std::chrono::minutes(1);
  for (const Job& job : queue_) next = std::min(next, job.deadline);
  for (const Launcher& launcher : launchers_) {
    if (launcher.job) next = std::min(next, launcher.job->deadline + kGrace);
    if (!launcher.socket) next = std::min(next, launcher.started_at + kRestartPause);
  }
  return next;
}

void LauncherPool::Expire() {
  auto now = steady_clock::now();
  std::vector<Job> late;
  for (auto it = queue_.begin(); it != queue_.end();) {
    if (it->deadline > now) {
      ++it;
      continue;
    }
    late.push_back(std::move(*it));
    it = queue_.erase(it);
  }
  for (Job& job : late)
    job.done(Fail(Code::kDeadlineExceeded, "no launcher was free in time"), false);
  for (size_t i = 0; i < launchers_.size(); ++i) {
    Launcher& launcher = launchers_[i];
    if (launcher.job && launcher.job->deadline + kGrace <= now) Replace(i);
    if (!launcher.socket && launcher.started_at + kRestartPause <= now) Restart(i);
  }
  Dispatch();
}

}  // namespace caisson::engine
