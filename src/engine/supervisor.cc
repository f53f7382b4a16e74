#include "engine/supervisor.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "base/log.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kRemovalTimeout{60};
constexpr int kRemovalAttempts = 3;

size_t LauncherCount(const Config& config) {
  if (config.launchers > 0) return static_cast<size_t>(config.launchers);
  // One that is free for what is quick while the others save (launcher.h).
  return static_cast<size_t>(std::clamp<long>(sysconf(_SC_NPROCESSORS_ONLN), 1, 8) + 1);
}

tl::unexpected<Error> NoSuchSandbox(std::string_view id) {
  return Fail(Code::kNotFound, "there is no sandbox '{}'", id);
}

}  // namespace

Supervisor::Supervisor(const Config& config, Driver& driver, EventLoop& loop, int server, int lock)
    : config_(config),
      driver_(driver),
      loop_(loop),
      server_(server),
      launchers_(loop, LauncherCount(config), static_cast<size_t>(config.launcher_queue),
                 [&driver, lock](int socket) {
                   return ForkProcess({socket, lock}, [&] { return RunLauncher(driver, socket); });
                 }),
      cpu_balance_(milliseconds(config.busy_after_ms)),
      write_balance_(milliseconds(config.busy_after_ms)),
      make_room_at_(config.busy_after_ms > 0 ? steady_clock::now()
                                             : steady_clock::time_point::max()),
      disk_guard_(config.hold_free_disk_mb << 20, config.min_free_disk_mb << 20) {}

Status Supervisor::Start(std::vector<Sandbox> sandboxes) {
  TRY(driver_.WatchNetwork(loop_, [this](Blocked blocked) {
    Post({{{"event", "blocked"}, {"blocked", EncodeBlocked(blocked)}}, "", {}});
  }));
  for (Sandbox& sandbox : sandboxes) {
    std::string id = sandbox.instance.id;
    Entry& entry = entries_[id];
    entry.state = sandbox.why_frozen.empty() ? Entry::State::kRunning : Entry::State::kFrozen;
    entry.sandbox = std::move(sandbox);
    if (entry.sandbox.unsettled) unsettled_.insert(id);
    driver_.Started(entry.sandbox);
    Ease(entry);
    TRY(loop_.Watch(entry.sandbox.process.get(), EPOLLIN, [this, id] { OnEnded(id); }));
  }
  WatchServer();
  return launchers_.StartAll();
}

void Supervisor::Run() {
  while (!server_gone_) {
    auto deadline = std::min({launchers_.NextDeadline(), make_room_at_, disk_guard_.next()});
    loop_.RunOnce(unsettled_.empty() ? deadline : std::min(deadline, settle_at_));
    launchers_.Expire();
    SettleRest();
    if (steady_clock::now() >= make_room_at_) MakeRoom();
    if (steady_clock::now() >= disk_guard_.next()) GuardDisk();
  }
}

void Supervisor::MakeRoom() {
  const auto now = steady_clock::now();
  make_room_at_ = now + milliseconds(config_.busy_after_ms) / 2;
  if (NobodyWorks(now)) {
    Apply(cpu_balance_.Rest(), write_balance_.Rest());
    return;
  }
  bool waits_known = true;
  std::map<std::string, int64_t> wanted, written;
  for (const auto& [id, entry] : entries_) {
    if (entry.state != Entry::State::kRunning || entry.saving) continue;
    auto work = driver_.MeasureWork(entry.sandbox);
    if (!work) continue;  // it has just ended
    waits_known = waits_known && work->waited_ns.has_value();
    wanted[id] = work->cpu_ns + work->waited_ns.value_or(0);
    written[id] = work->written_bytes;
  }
  size_t active = 0;
  auto cpu_share = [&](const Balance::Rates& rates) {
    active = CountActive(rates);
    return CpuShare(rates, static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), waits_known);
  };
  auto write_share = [&](const Balance::Rates&) {
    // Alone it disturbs nobody. Half of the limit: one that is held to it must not seem to rest.
    const int64_t rate = config_.busy_write_mbps << 20;
    return active > 1 && rate > 0 ? static_cast<double>(rate) / 2
                                  : std::numeric_limits<double>::infinity();
  };
  auto computing = cpu_balance_.Update(wanted, now, cpu_share);  // counts who is active
  Apply(computing, write_balance_.Update(written, now, write_share));
}

// A thousand sandboxes that rest cost one look, not a thousand.
bool Supervisor::NobodyWorks(steady_clock::time_point now) {
  auto cpu = driver_.CpuTimeOfAll();
  if (!cpu) return false;
  const auto used = static_cast<double>(*cpu - std::exchange(cpu_of_all_, *cpu));
  const auto passed = std::chrono::duration<double>(now - std::exchange(looked_at_, now));
  return used < kCpuIdle * passed.count();
}

void Supervisor::Apply(const std::vector<Balance::Change>& computing,
                       const std::vector<Balance::Change>& writing) {
  for (const auto& [id, busy] : computing)
    if (auto it = entries_.find(id); it != entries_.end())
      (void)driver_.StandBehind(it->second.sandbox, busy);
  for (const auto& [id, busy] : writing)
    if (auto it = entries_.find(id); it != entries_.end() && it->second.slowed_to == 0)
      (void)driver_.LimitWrites(it->second.sandbox, busy ? config_.busy_write_mbps << 20 : 0);
}

void Supervisor::GuardDisk() {
  const auto now = steady_clock::now();
  free_disk_ = driver_.FreeDisk().value_or(free_disk_);
  if (!disk_guard_.IsNear(free_disk_, now)) return;
  std::map<std::string, int64_t> taken;
  for (auto& [id, entry] : entries_)
    if (entry.state == Entry::State::kRunning)
      taken[id] = entry.disk_taken = driver_.DiskTaken(entry.sandbox).value_or(entry.disk_taken);
  disk_guard_.Update(free_disk_, taken, now);
  for (auto& [id, entry] : entries_) {
    if (entry.state != Entry::State::kRunning) continue;
    auto pace = disk_guard_.PaceOf(id);
    if (int64_t rate = DiskGuard::WritesAt(pace); rate != entry.slowed_to) {
      entry.slowed_to = rate;
      (void)driver_.LimitWrites(entry.sandbox, rate);
    }
    // Whoever saves it freezes and thaws it, too.
    bool hold = pace == DiskGuard::Pace::kHeld;
    if (hold != entry.held && !entry.saving && !unsettled_.contains(id)) Hold(entry, hold);
  }
}

void Supervisor::Hold(Entry& entry, bool hold) {
  const std::string& id = entry.sandbox.instance.id;
  const int64_t free_mb = free_disk_ >> 20;
  if (Status done = driver_.SetFrozen(entry.sandbox, hold); !done)
    return LogError("a sandbox can neither be held nor let go for the host's disk",
                    {{"sandbox", id}, {"error", done.error().message()}});
  entry.held = hold;
  LogWarn(hold ? "a sandbox stands still: the host's disk is nearly full"
               : "a sandbox that stood still for the host's disk goes on",
          {{"sandbox", id}, {"free_mb", free_mb}});
  Post({{{"event", "held"}, {"id", id}, {"held", hold}, {"free_mb", free_mb}}, "", {}});
}

void Supervisor::Ease(const Entry& entry) {
  (void)driver_.StandBehind(entry.sandbox, false);
  if (entry.slowed_to == 0) (void)driver_.LimitWrites(entry.sandbox, 0);
}

void Supervisor::WatchServer() {
  bool behind = !outgoing_.empty();
  behind_ = behind;
  Status watched = loop_.Watch(server_, behind ? EPOLLOUT : EPOLLIN, [this, behind] {
    if (behind)
      Flush();
    else
      OnServerReadable();
  });
  if (!watched) server_gone_ = true;
}

void Supervisor::OnServerReadable() {
  auto request = Receive(server_);
  if (request) return Handle(std::move(*request));
  int error = request.error().sys_errno();
  if (error == EAGAIN) return;
  if (request.error().code() != Code::kUnavailable)
    LogError("the server sent what is not a request", {{"error", request.error().message()}});
  server_gone_ = true;
}

void Supervisor::Handle(Message request) {
  auto call = GetInt(request.head, "call");
  auto op = GetString(request.head, "op");
  if (!call || !op) return LogError("a request without a number or a name");
  bool later = false;
  auto answer = Answer(*call, *op, request, later);
  if (!later || !answer) Reply(*call, std::move(answer));
}

Result<Message> Supervisor::Answer(Call call, const std::string& op, Message& request,
                                   bool& later) {
  if (op == "dial") return Dial(request.head);
  if (op == "listen") return Listen(request.head);
  if (op == "measure") return Measure(request.head);
  if (op == "list") return List(request.head);
  if (op == "set_egress") return SetEgress(request.head);
  if (op == "capabilities")
    return Message{{{"capabilities", EncodeCapabilities(driver_.capabilities())}}, "", {}};
  if (op == "get_saved") return GetSaved(request.head);
  if (op == "list_saved") return ListSaved(request.head);
  if (op == "set_limits") return SetLimits(request.head);
  later = true;
  if (op == "create") {
    TRY(Create(call, std::move(request), milliseconds(config_.create_timeout_ms)));
  } else if (op == "resume") {
    TRY(Resume(call, std::move(request)));
  } else if (op == "pause" || op == "snapshot") {
    TRY(Save(call, std::move(request), kSaveAttempts));
  } else if (op == "delete_saved") {
    TRY(DeleteSaved(call, std::move(request)));
  } else if (op == "grow_disk") {
    TRY(GrowDisk(call, std::move(request)));
  } else if (op == "destroy") {
    TRY_ASSIGN(std::string id, GetString(request.head, "id"));
    Destroy(call, id);
  } else {
    return Fail(Code::kUnimplemented, "the engine knows no '{}'", op);
  }
  return Message{};
}

Status Supervisor::Create(Call call, Message request, milliseconds longest) {
  TRY_ASSIGN(std::string id, GetString(request.head, "id"));
  TRY_ASSIGN(int64_t timeout, GetInt(request.head, "timeout_ms"));
  timeout = std::clamp<int64_t>(timeout, 1, longest.count());
  if (entries_.contains(id))
    return Fail(Code::kAlreadyExists, "a sandbox with the id '{}' exists already", id);
  Entry& entry = entries_[id];
  entry.creator = call;
  entry.group = GetString(request.head, "group").value_or("");
  Job job{id, entry.group, std::move(request), steady_clock::now() + milliseconds(timeout),
          [this, id](Result<Message> answer, bool died) { OnBuilt(id, std::move(answer), died); }};
  Status submitted = launchers_.Submit(std::move(job), false);
  if (!submitted) entries_.erase(id);
  return submitted;
}

void Supervisor::OnBuilt(const std::string& id, Result<Message> answer, bool died) {
  Entry& entry = entries_.at(id);
  Status built;
  if (answer)
    built = Register(entry, std::move(*answer));
  else
    built = tl::unexpected(std::move(answer).error());
  if (built && entry.unwanted) {
    built = Fail(Code::kCanceled, "sandbox '{}' was destroyed before it was ready", id);
    died = true;
  }
  if (built)
    return Reply(entry.creator,
                 Message{{{"instance", EncodeInstance(entry.sandbox.instance)}}, "", {}});
  // A launcher that reports a failure has cleaned up; a dead one has not.
  entry.failure = std::move(built).error();
  if (died) return BeginRemoval(id, entry);
  OnRemoved(id, {});
}

Status Supervisor::Register(Entry& entry, Message answer) {
  const json::value* instance = answer.head.if_contains("instance");
  if (!instance || answer.fds.size() != 3)
    return Fail(Code::kInternal, "a launcher's answer is incomplete");
  TRY_ASSIGN(Instance decoded, DecodeInstance(*instance));
  TRY_ASSIGN(int64_t address, GetInt(answer.head, "address"));
  TRY_ASSIGN(Egress egress, DecodeEgress(answer.head["egress"]));
  std::string id = decoded.id;
  entry.sandbox = {
      std::move(decoded),       std::move(answer.fds[0]),       std::move(answer.fds[1]),
      std::move(answer.fds[2]), static_cast<uint32_t>(address), std::move(egress)};
  entry.state = Entry::State::kRunning;
  entry.slowed_to = 0;
  driver_.Started(entry.sandbox);
  return loop_.Watch(entry.sandbox.process.get(), EPOLLIN, [this, id] { OnEnded(id); });
}

void Supervisor::Destroy(Call call, const std::string& id) {
  auto it = entries_.find(id);
  // Also an id we do not know may have left something on disk.
  if (it == entries_.end()) it = entries_.try_emplace(id).first;
  Entry& entry = it->second;
  entry.destroyers.push_back(call);
  if (entry.state == Entry::State::kRemoving) return;
  entry.keep_saved = false;
  bool building = entry.state == Entry::State::kBuilding && entry.creator;
  if (!building && !entry.saving) return BeginRemoval(id, entry);
  entry.unwanted = true;
  if (entry.saving) return driver_.Kill(entry.sandbox, true);  // whoever works on it sees its end
  if (!launchers_.Cancel(id)) return;                          // OnBuilt() goes on
  entry.failure = Error(Code::kCanceled, "the sandbox was destroyed before it was built");
  OnRemoved(id, {});
}

void Supervisor::BeginRemoval(const std::string& id, Entry& entry) {
  if (entry.sandbox.process) {
    driver_.Kill(entry.sandbox, entry.keep_saved);
    driver_.Ended(entry.sandbox);
    loop_.Unwatch(entry.sandbox.process.get());
  }
  // Our descriptors would keep its network and its disk alive.
  entry.sandbox = {};
  entry.state = Entry::State::kRemoving;
  SubmitRemoval(id, entry.keep_saved, kRemovalAttempts);
}

void Supervisor::SubmitRemoval(const std::string& id, bool keep_saved, int attempts) {
  Job job{id, entries_.at(id).group,
          Message{{{"op", "destroy"}, {"id", id}, {"keep_saved", keep_saved}}, "", {}},
          steady_clock::now() + kRemovalTimeout,
          [this, id, keep_saved, attempts](Result<Message> answer, bool died) {
            // Removing can be done twice, so a launcher's death does not end it.
            if (died && attempts > 1) return SubmitRemoval(id, keep_saved, attempts - 1);
            Status removed;
            if (!answer) removed = tl::unexpected(std::move(answer).error());
            OnRemoved(id, std::move(removed));
          }};
  (void)launchers_.Submit(std::move(job), true);
}

void Supervisor::OnRemoved(const std::string& id, Status removed) {
  auto node = entries_.extract(id);
  Entry& entry = node.mapped();
  if (!removed)
    LogError("a sandbox could not be removed completely",
             {{"sandbox", id}, {"error", removed.error().message()}});
  if (entry.creator && entry.failure)
    Reply(entry.creator, tl::unexpected(*std::move(entry.failure)));
  for (Call call : entry.destroyers) {
    if (removed)
      Reply(call, Message{});
    else
      Reply(call, tl::unexpected(removed.error()));
  }
}

void Supervisor::OnEnded(const std::string& id) {
  Entry& entry = entries_.at(id);
  if (entry.saving) {  // pausing ends it; OnSaved() knows
    entry.ended = true;
    return loop_.Unwatch(entry.sandbox.process.get());
  }
  ExitReason reason = driver_.WhyEnded(entry.sandbox);
  LogInfo("a sandbox ended by itself", {{"sandbox", id}, {"reason", ExitReasonName(reason)}});
  Post({{{"event", "exit"}, {"id", id}, {"reason", ExitReasonName(reason)}}, "", {}});
  BeginRemoval(id, entry);
}

Result<Message> Supervisor::Dial(const json::object& head) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  TRY_ASSIGN(int64_t count, GetInt(head, "count"));
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.state != Entry::State::kRunning) return NoSuchSandbox(id);
  if (count < 1 || count > static_cast<int64_t>(kMaxFdsPerMessage))
    return Fail(Code::kInvalidArgument, "between 1 and {} sockets at a time", kMaxFdsPerMessage);
  TRY_ASSIGN(auto sockets, driver_.Dial(it->second.sandbox, static_cast<size_t>(count)));
  return Message{{}, "", std::move(sockets)};
}

Result<Message> Supervisor::Listen(const json::object& head) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  TRY_ASSIGN(int64_t port, GetInt(head, "port"));
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.state != Entry::State::kRunning) return NoSuchSandbox(id);
  if (port < 1 || port > UINT16_MAX)
    return Fail(Code::kInvalidArgument, "{} is not the number of a port", port);
  TRY_ASSIGN(UniqueFd socket, driver_.Listen(it->second.sandbox, static_cast<uint16_t>(port)));
  Message answer;
  answer.fds.push_back(std::move(socket));
  return answer;
}

Result<Message> Supervisor::SetEgress(const json::object& head) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  const json::value* given = head.if_contains("egress");
  TRY_ASSIGN(Egress egress, DecodeEgress(given ? *given : json::value()));
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.state != Entry::State::kRunning) return NoSuchSandbox(id);
  if (it->second.saving) return Fail(Code::kAborted, "sandbox '{}' is being saved; try again", id);
  TRY(driver_.SetEgress(it->second.sandbox, egress));
  it->second.sandbox.egress = std::move(egress);
  return Message{};
}

Result<Message> Supervisor::Measure(const json::object& head) {
  TRY_ASSIGN(auto ids, GetStrings(head, "ids"));
  if (ids.size() > kMaxIdsPerMessage) return Fail(Code::kInvalidArgument, "too many ids at once");
  json::object usages;
  for (const std::string& id : ids) {
    auto it = entries_.find(id);
    if (it == entries_.end() || it->second.state != Entry::State::kRunning) continue;
    if (auto usage = driver_.Measure(it->second.sandbox)) usages[id] = EncodeUsage(*usage);
  }
  return Message{{{"usages", std::move(usages)}}, "", {}};
}

Result<Message> Supervisor::List(const json::object& head) {
  TRY_ASSIGN(std::string after, GetString(head, "after"));
  json::array instances;
  auto it = entries_.upper_bound(after);
  for (; it != entries_.end() && instances.size() < kMaxInstancesPerMessage; ++it)
    if (it->second.state == Entry::State::kRunning)
      instances.push_back(EncodeInstance(it->second.sandbox.instance));
  return Message{{{"items", std::move(instances)}, {"more", it != entries_.end()}}, "", {}};
}

void Supervisor::Reply(Call call, Result<Message> answer) {
  Message message;
  if (answer)
    message = std::move(*answer);
  else
    message.head["error"] = EncodeError(answer.error());
  message.head["call"] = call;
  Post(std::move(message));
}

void Supervisor::Post(Message message) {
  outgoing_.push_back(std::move(message));
  if (outgoing_.size() == 1) Flush();
}

void Supervisor::Flush() {
  while (!outgoing_.empty()) {
    Status sent = Send(server_, outgoing_.front());
    if (!sent && sent.error().sys_errno() == EAGAIN) break;
    if (!sent) LogError("an answer was lost", {{"error", sent.error().message()}});
    outgoing_.pop_front();
  }
  if (behind_ == outgoing_.empty()) WatchServer();
}

}  // namespace caisson::engine
