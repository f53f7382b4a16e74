// The part of the supervisor that pauses, resumes and copies sandboxes.
#include <boost/json.hpp>

#include "base/log.h"
#include "engine/supervisor.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kDeleteTimeout{60};
constexpr milliseconds kSettleInterval{200};

// Nobody talks to a frozen sandbox, and a cold start needs its disk.
void LetGo(Sandbox& sandbox) {
  sandbox.network.Reset();
  sandbox.disk.Reset();
}

Saved WhatIsFrozen(const Sandbox& sandbox) {
  return {.id = sandbox.instance.id,
          .tier = Tier::kFrozen,
          .why_frozen = sandbox.why_frozen,
          .at = sandbox.instance.created_at};
}

}  // namespace

// `attempts`: a launcher that dies leaves the sandbox frozen; the next one finishes its work.
Status Supervisor::Save(Call call, Message request, int attempts) {
  TRY_ASSIGN(std::string id, GetString(request.head, "id"));
  TRY_ASSIGN(int64_t timeout, GetInt(request.head, "timeout_ms"));
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.state != Entry::State::kRunning)
    return Fail(Code::kNotFound, "there is no running sandbox '{}'", id);
  Entry& entry = it->second;
  if (entry.held)
    return Fail(Code::kResourceExhausted,
                "sandbox '{}' stands still until the host's disk has room", id);
  if (entry.saving && attempts == kSaveAttempts)
    return Fail(Code::kAborted, "sandbox '{}' is being saved already", id);
  timeout = std::clamp<int64_t>(timeout, 1, config_.save_timeout_ms);
  json::object again = request.head;
  Job job{id, entry.group, std::move(request), steady_clock::now() + milliseconds(timeout),
          [this, call, id, attempts, again](Result<Message> answer, bool died) {
            if (died && attempts > 1 && !entries_.at(id).unwanted)
              if (Save(call, Message{again, "", {}}, attempts - 1)) return;
            OnSaved(call, id, std::move(answer));
          }};
  TRY(launchers_.Submit(std::move(job), false));
  Ease(entry);  // what it has not written yet must be on the disk soon
  entry.saving = true;
  return {};
}

void Supervisor::OnSaved(Call call, const std::string& id, Result<Message> answer) {
  Entry& entry = entries_.at(id);
  entry.saving = false;
  if (!answer) {
    // A launcher that failed has thawed it; one that died twice has not.
    Status settled = driver_.Settle(entry.sandbox);
    if (!settled && settled.error().code() == Code::kDeadlineExceeded)
      unsettled_.insert(id);
    else if (!settled)
      LogError("a sandbox is neither saved nor running",
               {{"sandbox", id}, {"error", settled.error().message()}});
    Reply(call, tl::unexpected(std::move(answer).error()));
    CatchUp(id, entry);
    return;
  }
  const json::value* value = answer->head.if_contains("saved");
  auto saved = DecodeSaved(value ? *value : json::value());
  bool paused = saved && saved->id == id;
  if (paused && saved->tier == Tier::kFrozen) {
    entry.state = Entry::State::kFrozen;
    entry.sandbox.why_frozen = saved->why_frozen;
    LetGo(entry.sandbox);
  }
  Reply(call, std::move(answer));
  if (!paused || saved->tier == Tier::kFrozen) {
    CatchUp(id, entry);
    return;
  }
  if (entry.unwanted) return BeginRemoval(id, entry);
  driver_.Ended(entry.sandbox);
  loop_.Unwatch(entry.sandbox.process.get());
  entries_.erase(id);
}

void Supervisor::SettleRest() {
  auto now = steady_clock::now();
  if (unsettled_.empty() || now < settle_at_) return;
  settle_at_ = now + kSettleInterval;
  std::erase_if(unsettled_, [this](const std::string& id) {
    auto it = entries_.find(id);
    if (it == entries_.end() || it->second.state != Entry::State::kRunning) return true;
    if (it->second.saving) return false;  // a launcher waits until it is free
    Status settled = driver_.Settle(it->second.sandbox);
    if (!settled && settled.error().code() == Code::kDeadlineExceeded) return false;
    if (!settled)
      LogError("a sandbox is neither saved nor running",
               {{"sandbox", id}, {"error", settled.error().message()}});
    return true;
  });
}

bool Supervisor::CatchUp(const std::string& id, Entry& entry) {
  if (entry.unwanted) {
    BeginRemoval(id, entry);
    return false;
  }
  if (!entry.ended) return true;
  OnEnded(id);
  return false;
}

Status Supervisor::Resume(Call call, Message request) {
  TRY_ASSIGN(std::string id, GetString(request.head, "id"));
  milliseconds longest(config_.save_timeout_ms);
  auto it = entries_.find(id);
  if (it == entries_.end()) {
    TRY(Create(call, std::move(request), longest));
    entries_.at(id).keep_saved = true;
    return {};
  }
  Entry& entry = it->second;
  if (entry.state != Entry::State::kFrozen || entry.saving)
    return Fail(Code::kFailedPrecondition, "sandbox '{}' is not paused", id);
  TRY_ASSIGN(int64_t timeout, GetInt(request.head, "timeout_ms"));
  timeout = std::clamp<int64_t>(timeout, 1, longest.count());
  LetGo(entry.sandbox);
  entry.keep_saved = true;  // a cold start saves its files and ends its processes before it begins
  Job job{
      id, entry.group, std::move(request), steady_clock::now() + milliseconds(timeout),
      [this, call, id](Result<Message> answer, bool) { OnThawed(call, id, std::move(answer)); }};
  TRY(launchers_.Submit(std::move(job), false));
  entry.saving = true;
  return {};
}

void Supervisor::OnThawed(Call call, const std::string& id, Result<Message> answer) {
  Entry& entry = entries_.at(id);
  entry.saving = false;
  if (answer) {
    // A cold start made a new process of it; a thawed one is the same.
    if (!entry.ended) loop_.Unwatch(entry.sandbox.process.get());
    entry.ended = false;
    entry.keep_saved = false;
    driver_.Ended(entry.sandbox);
    Status registered = Register(entry, std::move(*answer));
    if (registered)
      Reply(call, Message{{{"instance", EncodeInstance(entry.sandbox.instance)}}, "", {}});
    else
      Reply(call, tl::unexpected(std::move(registered).error()));
  } else {
    Reply(call, tl::unexpected(std::move(answer).error()));
  }
  CatchUp(id, entry);
}

Status Supervisor::DeleteSaved(Call call, Message request) {
  TRY_ASSIGN(std::string id, GetString(request.head, "id"));
  Job job{id, "", std::move(request), steady_clock::now() + kDeleteTimeout,
          [this, call](Result<Message> answer, bool) { Reply(call, std::move(answer)); }};
  return launchers_.Submit(std::move(job), true);
}

Status Supervisor::GrowDisk(Call call, Message request) {
  TRY_ASSIGN(std::string id, GetString(request.head, "id"));
  TRY_ASSIGN(int64_t timeout, GetInt(request.head, "timeout_ms"));
  if (entries_.contains(id))
    return Fail(Code::kFailedPrecondition, "the disk of sandbox '{}' is in use", id);
  timeout = std::clamp<int64_t>(timeout, 1, config_.save_timeout_ms);
  Job job{id, "", std::move(request), steady_clock::now() + milliseconds(timeout),
          [this, call](Result<Message> answer, bool) { Reply(call, std::move(answer)); }};
  return launchers_.Submit(std::move(job), false);
}

Result<Message> Supervisor::GetSaved(const json::object& head) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  auto it = entries_.find(id);
  std::optional<Saved> saved;
  if (it != entries_.end() && it->second.state == Entry::State::kFrozen)
    saved = WhatIsFrozen(it->second.sandbox);
  else
    saved = driver_.GetSaved(id);
  return Message{{{"saved", saved ? json::value(EncodeSaved(*saved)) : json::value()}}, "", {}};
}

Result<Message> Supervisor::ListSaved(const json::object& head) {
  TRY_ASSIGN(std::string after, GetString(head, "after"));
  std::map<std::string, Saved> all;
  for (Saved& saved : driver_.ListSaved()) all[saved.id] = std::move(saved);
  for (const auto& [id, entry] : entries_)
    if (entry.state == Entry::State::kFrozen) all[id] = WhatIsFrozen(entry.sandbox);
  json::array items;
  auto it = all.upper_bound(after);
  for (; it != all.end() && items.size() < kMaxInstancesPerMessage; ++it)
    items.push_back(EncodeSaved(it->second));
  return Message{{{"items", std::move(items)}, {"more", it != all.end()}}, "", {}};
}

Result<Message> Supervisor::SetLimits(const json::object& head) {
  TRY_ASSIGN(std::string id, GetString(head, "id"));
  const json::value* value = head.if_contains("limits");
  TRY_ASSIGN(Limits limits, DecodeLimits(value ? *value : json::value()));
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.state != Entry::State::kRunning || it->second.saving)
    return Fail(Code::kNotFound, "there is no running sandbox '{}'", id);
  TRY(driver_.SetLimits(it->second.sandbox, limits));
  return Message{};
}

}  // namespace caisson::engine
