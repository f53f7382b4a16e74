// All that is known of a sandbox, for those who have to find out what happened to it.
#include <boost/json.hpp>

#include "base/log.h"
#include "sandbox/envd_call.h"
#include "sandbox/manager_impl.h"

namespace caisson::sandbox {
namespace {

namespace json = boost::json;

constexpr size_t kMaxEvents = 1000;
constexpr size_t kMaxSamples = 120;
constexpr std::chrono::milliseconds kAskTimeout{3'000};

// SECURITY: a bundle is meant to be handed on. Variables and arguments of commands often hold
// secrets, so of each process only these fields are kept.
std::string WithoutSecrets(const std::string& answer) {
  json::array processes;
  boost::system::error_code ec;
  json::value value = json::parse(answer, ec);
  const json::value* list =
      !ec && value.is_object() ? value.get_object().if_contains("processes") : nullptr;
  if (!list || !list->is_array()) return "[]";
  for (const json::value& item : list->get_array()) {
    if (!item.is_object()) continue;
    json::object kept;
    for (const char* name : {"pid", "tag"})
      if (const json::value* field = item.get_object().if_contains(name)) kept[name] = *field;
    const json::value* config = item.get_object().if_contains("config");
    if (config && config->is_object())
      for (const char* name : {"cmd", "cwd"})
        if (const json::value* field = config->get_object().if_contains(name)) kept[name] = *field;
    processes.push_back(std::move(kept));
  }
  return json::serialize(processes);
}

}  // namespace

Task<Result<Detail>> Manager::Impl::Inspect(std::string key_id, std::string id) {
  Detail detail;
  if (auto record = FindOwned(key_id, id); record && (*record)->running) {
    detail.info = MakeInfo(**record);
    detail.state = (*record)->row.state;
    if (!(*record)->history.empty()) detail.last = (*record)->history.back();
    co_return detail;
  }
  CO_TRY_ASSIGN(auto row, co_await store_.GetSandbox(id));
  if (!row || row->key_id != key_id)
    co_return Fail(Code::kNotFound, "sandbox '{}' does not exist", id);
  detail.state = row->state;
  detail.reason = row->reason;
  detail.ended_at = row->ended_at;
  detail.info = MakeInfo(*MakeRecord(std::move(*row), secret_));
  if (detail.state == "paused") {
    detail.info.state = State::kPaused;
    CO_TRY_ASSIGN(detail.saved, co_await engine_.GetSaved(id));
  }
  co_return detail;
}

Task<Result<Diagnosis>> Manager::Impl::Diagnose(std::string key_id, std::string id) {
  Diagnosis diagnosis;
  CO_TRY_ASSIGN(diagnosis.detail, co_await Inspect(key_id, id));
  CO_TRY_ASSIGN(diagnosis.events,
                co_await store_.ListEvents(id, {.newest_first = true, .limit = kMaxEvents}));
  std::reverse(diagnosis.events.begin(), diagnosis.events.end());
  if (auto capabilities = co_await engine_.GetCapabilities())
    diagnosis.capabilities = std::move(*capabilities);
  auto record = registry_.Find(id);
  if (!record) co_return diagnosis;
  size_t skip = record->history.size() - std::min(record->history.size(), kMaxSamples);
  diagnosis.samples.assign(record->history.begin() + static_cast<ptrdiff_t>(skip),
                           record->history.end());
  auto processes =
      co_await WithDeadline<std::string>(kAskTimeout, "asking envd", ListProcesses(record));
  if (processes)
    diagnosis.processes_json = std::move(*processes);
  else
    diagnosis.processes_error = processes.error().message();
  co_return diagnosis;
}

Task<Result<std::string>> Manager::Impl::ListProcesses(std::shared_ptr<Record> record) {
  CO_TRY_ASSIGN(UniqueFd socket, co_await sockets_.Take(record));
  http::RequestHead request{.method = "POST", .target = "/process.Process/List"};
  if (!record->route.inside_token.empty())
    request.headers.Set("X-Access-Token", record->route.inside_token);
  CO_TRY_ASSIGN(auto answer, co_await CallEnvd(std::move(socket), std::move(request), "{}"));
  if (answer.status != 200)
    co_return Fail(Code::kUnavailable, "envd answered with status {}", answer.status);
  co_return WithoutSecrets(answer.body);
}

Task<Result<StorageUse>> Manager::Impl::Storage() {
  StorageUse use;
  registry_.ForEach([&](const Record& record) {
    if (!record.running) return false;
    ++use.running.count;
    if (!record.history.empty())
      use.running.disk_bytes += record.history.back().usage.disk_used_bytes;
    return false;
  });
  CO_TRY_ASSIGN(auto rows, co_await store_.ListLiveSandboxes());
  CO_TRY_ASSIGN(auto saved, co_await engine_.ListSaved());
  for (const engine::Saved& one : saved) {
    bool paused = std::any_of(rows.begin(), rows.end(), [&](const store::SandboxRow& row) {
      return row.id == one.id && row.state == "paused";
    });
    StorageUse::Part& part = paused ? use.paused : use.snapshots;
    ++part.count;
    part.memory_bytes += one.memory_bytes;
    part.disk_bytes += one.disk_bytes;
  }
  co_return use;
}

StorageUse Manager::Impl::SavedUse() const {
  StorageUse use;
  auto add = [](StorageUse::Part& part, int64_t memory, int64_t disk) {
    ++part.count;
    part.memory_bytes += memory;
    part.disk_bytes += disk;
  };
  for (const auto& [id, record] : paused_)
    add(use.paused, record->row.saved_memory_bytes, record->row.saved_disk_bytes);
  for (const auto& [id, row] : snapshots_) add(use.snapshots, row.memory_bytes, row.disk_bytes);
  return use;
}

Task<void> Manager::Impl::WriteEvent(store::SandboxEvent event) {
  std::string id = event.sandbox_id;
  Status stored = co_await store_.AppendEvent(std::move(event));
  if (!stored)
    LogError("an event could not be recorded",
             {{"sandbox", id}, {"error", stored.error().message()}});
}

}  // namespace caisson::sandbox
