// Snapshots: immutable copies of running sandboxes, from which others are made.
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

constexpr size_t kMaxName = 128;
constexpr std::string_view kDefaultTag = "default";

struct NameAndTag {
  std::string name;
  std::string tag;
};

// "name", "name:tag"; names do not care about case.
NameAndTag SplitName(std::string_view text) {
  text = Trim(text);
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {ToLower(text), std::string(kDefaultTag)};
  return {ToLower(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

bool IsMadeOf(std::string_view text, std::string_view extra) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return isalnum(c) || extra.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

Result<NameAndTag> ParseName(std::string_view text) {
  NameAndTag parsed = SplitName(text);
  bool good = !parsed.name.empty() && parsed.name.size() <= kMaxName &&
              IsMadeOf(parsed.name, "-_./") && !parsed.name.starts_with('/') &&
              !parsed.name.ends_with('/') && parsed.name.find('/') == parsed.name.rfind('/') &&
              !parsed.tag.empty() && parsed.tag.size() <= kMaxName && IsMadeOf(parsed.tag, "-_.");
  if (!good)
    return Fail(Code::kInvalidArgument,
                "the name of a snapshot must be 1 to {} letters, digits, '-', '_' or '.', with at "
                "most one '/' and, after a ':', a tag of the same characters",
                kMaxName);
  return parsed;
}

}  // namespace

Task<Result<store::SnapshotRow>> Manager::Impl::MakeSnapshot(std::string key_id, std::string id,
                                                             SnapshotOptions options) {
  CO_TRY(FindOwned(key_id, id));
  NameAndTag parsed{"", std::string(kDefaultTag)};
  if (!options.name.empty()) {
    CO_TRY_ASSIGN(parsed, ParseName(options.name));
    if (templates_.Find(parsed.name))
      co_return Fail(Code::kInvalidArgument,
                     "'{}' is the name of a template of this server; choose another", parsed.name);
  }
  auto make = options.once && !options.name.empty() ? &Impl::SnapshotOnce : &Impl::SnapshotNow;
  co_return co_await Shield(operations_, "snapshot",
                            (this->*make)(std::move(key_id), std::move(id), std::move(parsed.name),
                                          std::move(parsed.tag), options.memory));
}

Task<Result<store::SnapshotRow>> Manager::Impl::SnapshotOnce(std::string key_id, std::string id,
                                                             std::string name, std::string tag,
                                                             bool memory) {
  // The attempt before may still be at work for somebody who waits no longer.
  std::string full = name + ":" + tag;
  CO_TRY_ASSIGN(Turns::Turn turn,
                co_await turns_.Take(key_id + "/" + full, "is being copied to a snapshot"));
  if (const store::SnapshotRow* made = FindSnapshot(key_id, full)) co_return *made;
  co_return co_await SnapshotNow(std::move(key_id), std::move(id), std::move(name), std::move(tag),
                                 memory);
}

Task<Result<store::SnapshotRow>> Manager::Impl::SnapshotNow(std::string key_id, std::string id,
                                                            std::string name, std::string tag,
                                                            bool memory) {
  int64_t own = std::count_if(snapshots_.begin(), snapshots_.end(),
                              [&](const auto& one) { return one.second.key_id == key_id; });
  if (config_.max_snapshots_per_key > 0 && own >= config_.max_snapshots_per_key)
    co_return Fail(Code::kResourceExhausted,
                   "this API key already has {} snapshots, as many as it may; delete one", own);
  CO_TRY_ASSIGN(store::SnapshotRow row,
                co_await CopyRunning(id, "is being copied to a snapshot", memory));
  row.name = std::move(name);
  row.tag = std::move(tag);
  Status stored = co_await store_.InsertSnapshot(
      row, MakeEvent(id, "snapshot_created", fmt::format("Snapshot {} made", SnapshotName(row)),
                     {{"snapshot", row.id},
                      {"name", SnapshotName(row)},
                      {"tier", row.tier},
                      {"memory_bytes", std::to_string(row.memory_bytes)},
                      {"disk_bytes", std::to_string(row.disk_bytes)}}));
  if (!stored) {
    LogError("a snapshot could not be recorded and is deleted again",
             {{"snapshot", row.id}, {"error", stored.error().message()}});
    (void)co_await engine_.DeleteSaved(row.id);  // else the next start finds it
    co_return Fail(Code::kUnavailable,
                   "the snapshot could not be recorded in the server's database");
  }
  if (!row.name.empty())
    for (auto& [other, one] : snapshots_)
      if (one.key_id == row.key_id && one.name == row.name && one.tag == row.tag) {
        one.name.clear();
        one.tag = kDefaultTag;
      }
  snapshots_.emplace(row.id, row);
  LogInfo("snapshot made", {{"sandbox", id}, {"snapshot", row.id}, {"tier", row.tier}});
  co_return row;
}

Task<Result<store::SnapshotRow>> Manager::Impl::CopyRunning(std::string id, std::string doing,
                                                            bool memory) {
  CO_TRY_ASSIGN(Turns::Turn turn, co_await turns_.Take(id, std::move(doing)));
  auto record = registry_.Find(id);
  if (!record) co_return tl::unexpected(NotRunning(id).error());
  const store::SandboxRow& from = record->row;
  store::SnapshotRow row{.id = RandomId("s", 20),
                         .key_id = from.key_id,
                         .sandbox_id = id,
                         .template_id = from.template_id,
                         .alias = from.alias,
                         .env = from.env,
                         .secure = from.secure,
                         .cpus = from.cpus,
                         .memory_mb = from.memory_mb,
                         .disk_mb = from.disk_mb,
                         .pids = from.pids,
                         .open_files = from.open_files,
                         .output_kbps = from.output_kbps};
  auto saved = co_await engine_.Snapshot(id, row.id, memory, save_timeout_);
  if (!saved) {
    // A late success would be a snapshot that nobody knows.
    if (Status deleted = co_await engine_.DeleteSaved(row.id); !deleted)
      LogWarn("a failed snapshot could not be removed; the next start tries again",
              {{"snapshot", row.id}, {"error", deleted.error().message()}});
    co_return tl::unexpected(SaveFailure(id, "copied", saved.error()));
  }
  row.tier = TierName(saved->tier);
  row.memory_bytes = saved->memory_bytes;
  row.disk_bytes = saved->disk_bytes;
  row.created_at = std::chrono::floor<std::chrono::microseconds>(Now());
  co_return row;
}

std::vector<store::SnapshotRow> Manager::Impl::ListSnapshots(const SnapshotFilter& filter) const {
  std::vector<store::SnapshotRow> found;
  NameAndTag wanted = SplitName(filter.name);
  bool any_tag = filter.name.find(':') == std::string::npos;
  for (const auto& [id, row] : snapshots_)
    if (row.key_id == filter.key_id &&
        (filter.sandbox_id.empty() || row.sandbox_id == filter.sandbox_id) &&
        (filter.name.empty() ||
         ((row.name == wanted.name || id == wanted.name) && (any_tag || row.tag == wanted.tag))))
      found.push_back(row);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.created_at != b.created_at ? a.created_at > b.created_at : a.id < b.id;
  });
  return found;
}

const store::SnapshotRow* Manager::Impl::FindSnapshot(const std::string& key_id,
                                                      std::string_view name) const {
  NameAndTag wanted = SplitName(name);
  // SECURITY: a snapshot of another key looks exactly like one that does not exist.
  for (const auto& [id, row] : snapshots_)
    if (row.key_id == key_id && ((row.name == wanted.name && row.tag == wanted.tag) ||
                                 (id == wanted.name && wanted.tag == kDefaultTag)))
      return &row;
  return nullptr;
}

Task<Status> Manager::Impl::DeleteSnapshot(std::string key_id, std::string name) {
  const store::SnapshotRow* row = FindSnapshot(key_id, name);
  if (!row) co_return Fail(Code::kNotFound, "template or snapshot '{}' not found", name);
  std::string id = row->id;
  co_return co_await Shield(operations_, "delete snapshot", DeleteSnapshotNow(std::move(id)));
}

Task<Status> Manager::Impl::DeleteSnapshotNow(std::string id) {
  // The row goes first: what the engine then still has is deleted at the next start.
  auto row = snapshots_.extract(id);
  if (Status deleted = co_await store_.DeleteSnapshot(id); !deleted) {
    LogError("a snapshot could not be deleted",
             {{"snapshot", id}, {"error", deleted.error().message()}});
    if (!row.empty()) snapshots_.insert(std::move(row));
    co_return Fail(Code::kUnavailable, "the snapshot could not be deleted now; try again later");
  }
  if (Status deleted = co_await engine_.DeleteSaved(id); !deleted)
    LogError("the files of a snapshot could not be deleted; the next start tries again",
             {{"snapshot", id}, {"error", deleted.error().message()}});
  co_return Status();
}

}  // namespace caisson::sandbox
