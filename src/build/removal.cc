#include "build/removal.h"

#include <filesystem>

#include "base/log.h"
#include "build/build_flow.h"
#include "build/builds.h"
#include "build/event.h"
#include "build/log_archive.h"
#include "build/state.h"

namespace caisson::build {
namespace {

using store::BuildRow;
using store::Select;
using store::Transaction;

constexpr int64_t kMaxVersions = 10'000;  // looked at in one round

Select<BuildRow> Unfinished() {
  std::vector<std::string> states;
  for (std::string_view state : AllStates())
    if (!IsTerminal(state)) states.emplace_back(state);
  return Select<BuildRow>().In(&BuildRow::state, states);
}

Status CheckUnneeded(Transaction& tx, const BuildRow& row) {
  if (!IsTerminal(row.state))
    return Fail(Code::kFailedPrecondition, "the build is {}; cancel it first", row.state);
  TRY_ASSIGN(auto run, tx.Get<store::RunRow>(row.run_id));
  if (run && !run->finished_at)
    return Fail(Code::kFailedPrecondition, "the build is being finished; try again");
  TRY_ASSIGN(int64_t needed, tx.Count(Unfinished().Eq(&BuildRow::parent_id, row.id)));
  if (needed == 0 && !row.sandbox_id.empty()) {
    TRY_ASSIGN(needed, tx.Count(Unfinished().Eq(&BuildRow::sandbox_id, row.sandbox_id)));
  }
  if (needed > 0)
    return Fail(Code::kFailedPrecondition, "a build that is not over goes on from this one");
  return {};
}

// Whether its sandbox shows another version, or somebody is at work there.
Result<bool> IsSandboxNeeded(Transaction& tx, const BuildRow& row) {
  TRY_ASSIGN(auto others, tx.List(Select<BuildRow>()
                                      .Eq(&BuildRow::sandbox_id, row.sandbox_id)
                                      .NotEq(&BuildRow::id, row.id)));
  return std::ranges::any_of(
      others, [](const BuildRow& one) { return one.viewing_until || !IsTerminal(one.state); });
}

// Versions that a project has beyond the newest `keep`, without those that somebody can look at.
Result<std::vector<BuildRow>> OldVersions(Transaction& tx, int64_t keep) {
  TRY_ASSIGN(auto rows, tx.List(Select<BuildRow>()
                                    .Eq(&BuildRow::state, "ready")
                                    .Eq(&BuildRow::removal, "")
                                    .Order(&BuildRow::owner_id)
                                    .Order(&BuildRow::project)
                                    .Order(&BuildRow::number, true)
                                    .Limit(kMaxVersions)));
  std::vector<BuildRow> old;
  std::pair<std::string, std::string> project;
  int64_t count = 0;
  for (BuildRow& row : rows) {
    std::pair<std::string, std::string> its(row.owner_id, row.project);
    count = its == project ? count + 1 : 1;
    project = std::move(its);
    if (count <= keep || !CheckUnneeded(tx, row)) continue;
    TRY_ASSIGN(Preview preview, PreviewOf(tx, row));
    if (!preview.running) old.push_back(std::move(row));
  }
  return old;
}

Status Forget(Transaction& tx, const std::string& id) {
  TRY(tx.Delete(Select<store::BuildFileRow>().Eq(&store::BuildFileRow::build_id, id)));
  TRY(tx.Delete(Select<store::BuildLogRow>().Eq(&store::BuildLogRow::build_id, id)));
  TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(id, "build"));
  row.goal = row.sandbox_id = row.preview_url = row.snapshot_id = row.screenshot = "";
  row.error_message = row.error_summary = row.start_command = "";
  row.options = "{}";
  row.removal = "done";
  return tx.Update(row);
}

}  // namespace

Status Removals::Mark(Transaction& tx, BuildRow row) const {
  row.removal = "asked";
  row.viewing_until.reset();
  TRY(tx.Update(row));
  TRY(platform_.log.Emit(tx, About(row, "build.deleted", {{"project", row.project}})));
  return {};
}

Task<Status> Removals::Delete(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildRow row,
                co_await platform_.store.Write([=, this](Transaction& tx) -> Result<BuildRow> {
                  TRY_ASSIGN(BuildRow found, NeedBuild(tx, owner_id, id));
                  TRY(CheckUnneeded(tx, found));
                  TRY(Mark(tx, found));
                  return found;
                }));
  // It is deleted whatever happens now: what is left goes later.
  if (Status done = co_await Remove(std::move(row)); !done)
    LogWarn("a deleted build has left something behind",
            {{"build_id", id}, {"error", done.error().message()}});
  co_return Status();
}

Task<Status> Removals::Remove(BuildRow row) {
  CO_TRY_ASSIGN(bool needed, co_await platform_.store.Read(
                                 [row](Transaction& tx) { return IsSandboxNeeded(tx, row); }));
  if (!needed && !row.sandbox_id.empty())
    CO_TRY(co_await workbench_.Destroy(PlaceOf(row), "its build was deleted"));
  CO_TRY(co_await workbench_.DropSnapshot(PlaceOf(row)));
  std::error_code ec;
  if (!pictures_.empty() && !row.screenshot.empty())
    std::filesystem::remove(pictures_ + "/" + row.screenshot, ec);
  RemoveArchivedLog(LogArchiveOf(platform_.config), row.id);
  co_return co_await platform_.store.Write(
      [id = row.id](Transaction& tx) { return Forget(tx, id); });
}

Task<Status> Removals::DeleteOldVersions() {
  int64_t keep = platform_.config.build_keep_versions;
  if (keep <= 0) co_return Status();
  CO_TRY(co_await platform_.store.Write([this, keep](Transaction& tx) -> Status {
    TRY_ASSIGN(auto old, OldVersions(tx, keep));
    for (BuildRow& row : old) TRY(Mark(tx, std::move(row)));
    return {};
  }));
  co_return Status();
}

Task<Status> Removals::Care() {
  CO_TRY(co_await DeleteOldVersions());
  CO_TRY_ASSIGN(auto asked, co_await platform_.store.Read([](Transaction& tx) {
    return tx.List(Select<BuildRow>().Eq(&BuildRow::removal, "asked").Limit(kMaxVersions));
  }));
  for (BuildRow& row : asked)
    if (Status done = co_await Remove(row); !done)
      LogWarn("a deleted build has left something behind",
              {{"build_id", row.id}, {"error", done.error().message()}});
  co_return Status();
}

}  // namespace caisson::build
