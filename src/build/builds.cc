#include "build/builds.h"

#include <boost/json/serialize.hpp>

#include "base/id.h"
#include "build/build_flow.h"
#include "build/event.h"
#include "build/log_archive.h"
#include "build/state.h"
#include "store/sandbox_rows.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

using store::BuildRow;
using store::Select;
using store::Transaction;

constexpr int64_t kStreamLines = 500;
constexpr size_t kMaxSecrets = 50;     // that are told of one version
constexpr int64_t kMaxVersions = 200;  // in a changelog

// The newest version that is ready, of the same project.
Result<std::optional<BuildRow>> NewestOf(Transaction& tx, const BuildRow& row) {
  return tx.First(Select<BuildRow>()
                      .Eq(&BuildRow::owner_id, row.owner_id)
                      .Eq(&BuildRow::project, row.project)
                      .Eq(&BuildRow::state, "ready")
                      .Eq(&BuildRow::removal, "")
                      .Order(&BuildRow::number, true));
}

Result<int64_t> PredictNumber(Transaction& tx, const BuildRow& row) {
  if (IsTerminal(row.state)) return row.number;
  TRY_ASSIGN(int64_t last, LastNumber(tx, row));
  return last + 1;
}

// How many versions it goes on from, one after the other.
Result<int64_t> CountAncestors(Transaction& tx, BuildRow row) {
  int64_t count = 0;
  while (!row.parent_id.empty()) {
    ++count;
    TRY_ASSIGN(auto parent, tx.Get<BuildRow>(row.parent_id));
    if (!parent) break;
    row = std::move(*parent);
  }
  return count;
}

Status CheckParent(const BuildRow& parent, const BuildRow& row, const Tier& tier) {
  if (parent.project != row.project)
    return Fail(Code::kInvalidArgument, "the build to go on from is of the project {}",
                parent.project);
  if (parent.state != "ready")
    return Fail(Code::kFailedPrecondition, "the build to go on from is {}, not ready",
                parent.state);
  if (tier.iterations > 0 && parent.iterations_used >= tier.iterations)
    return Fail(Code::kFailedPrecondition,
                "{} iterations were made without anybody's confirmation, which is all that the "
                "tier {} allows; confirm the build first",
                parent.iterations_used, tier.name);
  return {};
}

}  // namespace

Result<Preview> PreviewOf(Transaction& tx, const BuildRow& row) {
  if (row.state == "failed") return Preview{.state = "error"};
  if (row.state != "ready") return Preview{.state = "loading"};
  TRY_ASSIGN(auto sandbox, tx.Get<store::WorkSandboxRow>(row.sandbox_id));
  // Without a window another version is shown in its place.
  if (!sandbox || sandbox->destroyed_at || !row.viewing_until) return Preview{.state = "expired"};
  const std::string& status = sandbox->status;
  Preview preview{.state = "error",
                  .running = status == "running",
                  .paused = status == "paused" || status == "pausing"};
  if (preview.running) preview.state = "active";
  if (preview.paused) preview.state = "paused";
  if (status == "resuming") preview.state = "resuming";
  if (row.preview_note == "resume_failed" || (preview.running && !row.preview_note.empty()))
    preview.state = row.preview_note;
  return preview;
}

Result<BuildRow> NeedBuild(Transaction& tx, const std::string& owner_id, const std::string& id) {
  TRY_ASSIGN(auto row, tx.Get<BuildRow>(id));
  // SECURITY: someone else's looks like one that does not exist.
  if (!row || !row->removal.empty() || (!owner_id.empty() && row->owner_id != owner_id))
    return Fail(Code::kNotFound, "there is no build {}", id);
  return std::move(*row);
}

Result<BuildView> Builds::ViewOf(Transaction& tx, BuildRow row) const {
  BuildView view;
  TRY_ASSIGN(view.turn, queue_.TurnOf(tx, row));
  TRY_ASSIGN(view.usage, queue_.UsageOf(tx, row.owner_id));
  TRY_ASSIGN(Tier tier, queue_.TierOf(tx, row.owner_id));
  view.iterations = tier.iterations;
  TRY_ASSIGN(view.predicted, PredictNumber(tx, row));
  TRY_ASSIGN(view.preview, PreviewOf(tx, row));
  view.row = std::move(row);
  return view;
}

void Builds::Watch(BuildView& view) const {
  if (view.row.state != "ready" || view.preview.state == "expired") return;
  auto [first, last] = attentions_.equal_range(view.row.id);
  for (; first != last; ++first)
    if (view.preview.state != "resuming") view.preview.state = first->second;
}

// ---- making ------------------------------------------------------------------------------------

Result<BuildRow> Builds::Insert(Transaction& tx, BuildRow row, const NewBuild& build) {
  Files files;
  if (!row.parent_id.empty()) {
    TRY_ASSIGN(BuildRow parent, NeedBuild(tx, row.owner_id, row.parent_id));
    TRY_ASSIGN(Tier tier, queue_.TierOf(tx, row.owner_id));
    TRY(CheckParent(parent, row, tier));
    row.iterations_used = parent.iterations_used + 1;
    if (build.files) {
      TRY_ASSIGN(files, FilesOf(tx, parent.id));
    }
  }
  TRY(queue_.Enter(tx, row));
  if (build.files) {
    TRY_ASSIGN(files, Apply(std::move(files), *build.files));
    TRY(CheckFiles(files, platform_.config));
    TRY(StoreFiles(tx, row.id, files));
  }
  TRY(queue_.Advance(tx));
  TRY_ASSIGN(row, tx.Need<BuildRow>(row.id, "build"));
  TRY(platform_.log.Emit(tx, About(row, "build_updated", BuildData(row))));
  return row;
}

Task<Result<BuildView>> Builds::Create(std::string owner_id, NewBuild build) {
  BuildRow row{.id = RandomUuid(),
               .owner_id = owner_id,
               .project = build.project,
               .correlation_id = RandomUuid(),
               .runner = build.runner,
               .goal = build.goal,
               .options = json::serialize(build.options),
               .parent_id = build.parent_id,
               .enqueued_at = Now()};
  if (row.runner.empty()) row.runner = build.files ? "files" : platform_.config.build_runner;
  if ((row.runner == "files") != build.files.has_value())
    co_return Fail(Code::kInvalidArgument, "files are for the runner files, a goal for the others");
  if (row.runner == "command" && work::TextOf(build.options, "agent_id").empty())
    co_return Fail(Code::kInvalidArgument,
                   "the runner command needs an agent: name one by agent_id");
  co_return co_await Start(owner_id, [this, row, build](Transaction& tx) -> Result<BuildView> {
    TRY_ASSIGN(BuildRow stored, Insert(tx, row, build));
    return ViewOf(tx, std::move(stored));
  });
}

Task<Result<BuildView>> Builds::Start(std::string owner_id,
                                      std::function<Result<BuildView>(Transaction&)> job) {
  CO_TRY(starts_.Take(owner_id));
  auto made = co_await platform_.store.Write(std::move(job));
  if (made)
    platform_.flow.Wake();
  else
    starts_.GiveBack(owner_id);
  co_return made;
}

Task<Result<BuildView>> Builds::Rollback(std::string owner_id, std::string id,
                                         std::string version) {
  auto number = ParseVersion(version);
  if (!number) co_return Fail(Code::kInvalidArgument, "'{}' is no version: build_v0_1", version);
  co_return co_await Start(owner_id, [=, this](Transaction& tx) -> Result<BuildView> {
    TRY_ASSIGN(BuildRow asked, NeedBuild(tx, owner_id, id));
    TRY_ASSIGN(auto target, tx.First(Select<BuildRow>()
                                         .Eq(&BuildRow::owner_id, asked.owner_id)
                                         .Eq(&BuildRow::project, asked.project)
                                         .Eq(&BuildRow::number, *number)
                                         .Eq(&BuildRow::removal, "")));
    if (!target)
      return Fail(Code::kNotFound, "the project {} has no version {}", asked.project, version);
    TRY_ASSIGN(auto newest, NewestOf(tx, asked));
    json::object options = work::ParseObject(target->options);
    options["restores"] = target->id;
    options["snapshot"] = target->snapshot_id;
    options["start_command"] = target->start_command;
    options["port"] = target->port;
    BuildRow row{.id = RandomUuid(),
                 .owner_id = asked.owner_id,
                 .project = asked.project,
                 .correlation_id = RandomUuid(),
                 .runner = "files",
                 .goal = "Back to " + version,
                 .options = json::serialize(options),
                 .parent_id = newest->id,
                 .iterations_used = newest->iterations_used,
                 .enqueued_at = Now()};
    TRY_ASSIGN(Files files, FilesOf(tx, target->id));
    TRY(queue_.Enter(tx, row));
    TRY(StoreFiles(tx, row.id, files));
    TRY(queue_.Advance(tx));
    TRY_ASSIGN(row, tx.Need<BuildRow>(row.id, "build"));
    TRY(platform_.log.Emit(tx, About(row, "build_updated", BuildData(row))));
    return ViewOf(tx, std::move(row));
  });
}

// ---- looking -----------------------------------------------------------------------------------

Task<Result<BuildView>> Builds::Get(std::string owner_id, std::string id) {
  auto view = co_await platform_.store.Read([=, this](Transaction& tx) -> Result<BuildView> {
    TRY_ASSIGN(BuildRow row, NeedBuild(tx, owner_id, id));
    return ViewOf(tx, std::move(row));
  });
  if (view) Watch(*view);
  co_return view;
}

Task<Result<work::Listed<BuildView>>> Builds::List(std::string owner_id, BuildFilter filter) {
  auto all =
      co_await platform_.store.Read([=, this](Transaction& tx) -> Result<work::Listed<BuildView>> {
        auto select = Select<BuildRow>().Eq(&BuildRow::removal, "");
        if (!owner_id.empty()) select.Eq(&BuildRow::owner_id, owner_id);
        if (!filter.project.empty()) select.Eq(&BuildRow::project, filter.project);
        if (!filter.states.empty()) select.In(&BuildRow::state, filter.states);
        work::Listed<BuildView> listed;
        TRY_ASSIGN(listed.total, tx.Count(select));
        select.Order(&BuildRow::enqueued_at, true).Order(&BuildRow::id);
        TRY_ASSIGN(auto rows, tx.List(select.Limit(filter.page.limit).Offset(filter.page.offset)));
        for (BuildRow& row : rows) {
          TRY_ASSIGN(BuildView view, ViewOf(tx, std::move(row)));
          listed.items.push_back(std::move(view));
        }
        return listed;
      });
  if (all) std::ranges::for_each(all->items, [this](BuildView& view) { Watch(view); });
  co_return all;
}

Task<Result<std::vector<Builds::TimelinePart>>> Builds::Timeline(std::string owner_id,
                                                                 TimelineFilter filter) {
  using Parts = std::vector<TimelinePart>;
  auto all = co_await platform_.store.Read([=, this](Transaction& tx) -> Result<Parts> {
    TRY_ASSIGN(auto columns, ReadTimeline(tx, owner_id, filter));
    Parts parts;
    for (TimelineColumn& column : columns) {
      TimelinePart& part = parts.emplace_back();
      for (BuildRow& row : std::exchange(column.rows, {})) {
        TRY_ASSIGN(BuildView view, ViewOf(tx, std::move(row)));
        part.builds.push_back(std::move(view));
      }
      part.column = std::move(column);
    }
    return parts;
  });
  if (all)
    for (TimelinePart& part : *all)
      std::ranges::for_each(part.builds, [this](BuildView& view) { Watch(view); });
  co_return all;
}

Task<Result<Files>> Builds::GetFiles(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<Files> {
    TRY(NeedBuild(tx, owner_id, id));
    return FilesOf(tx, id);
  });
}

Task<Result<std::vector<FileDifference>>> Builds::Diff(std::string owner_id, std::string id,
                                                       std::string against) {
  struct Both {
    Files before, after;
  };
  CO_TRY_ASSIGN(Both both, co_await platform_.store.Read([=](Transaction& tx) -> Result<Both> {
    TRY_ASSIGN(BuildRow row, NeedBuild(tx, owner_id, id));
    std::string other = against.empty() ? row.parent_id : against;
    Both found;
    if (!other.empty()) {
      TRY_ASSIGN(BuildRow before, NeedBuild(tx, owner_id, other));
      if (before.project != row.project)
        return Fail(Code::kInvalidArgument, "the two builds are of different projects");
      TRY_ASSIGN(found.before, FilesOf(tx, other));
    }
    TRY_ASSIGN(found.after, FilesOf(tx, id));
    return found;
  }));
  co_return Compare(both.before, both.after);
}

Task<Result<Readiness>> Builds::Assess(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildView view, co_await Get(owner_id, id));
  CO_TRY_ASSIGN(Files files, co_await GetFiles(owner_id, id));
  Readiness found = Judge(view.row, files);
  size_t left = kMaxSecrets;
  for (const auto& [path, content] : files) {
    for (Issue& issue : FindSecrets(path, content, left)) {
      found.blocking.push_back(std::move(issue));
      --left;
    }
    if (left == 0) break;
    // A large version takes a while: others come in between.
    co_await SleepFor(std::chrono::milliseconds(0));
  }
  co_return found;
}

Task<Result<ChangeRequest>> Builds::GetChangeRequest(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildView view, co_await Get(owner_id, id));
  const BuildRow& build = view.row;
  if (build.parent_id.empty())
    co_return Fail(Code::kNotFound, "build {} changes nothing: it is a first one", id);
  ChangeRequest request{.build_id = build.id,
                        .parent_id = build.parent_id,
                        .change_description = build.goal,
                        .tier_limit = view.iterations};
  CO_TRY_ASSIGN(request.iteration_number, co_await platform_.store.Read([build](Transaction& tx) {
    return CountAncestors(tx, build);
  }));
  CO_TRY_ASSIGN(Files files, co_await GetFiles(owner_id, id));
  if (files.empty()) co_return request;  // they are not written yet
  CO_TRY_ASSIGN(auto changes, co_await Diff(owner_id, id, ""));
  Judge(request, changes);
  co_return request;
}

Task<Result<Handbook>> Builds::GetHandbook(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildView view, co_await Get(owner_id, id));
  CO_TRY_ASSIGN(Files files, co_await GetFiles(owner_id, id));
  if (view.row.number == 0)
    co_return Fail(Code::kFailedPrecondition, "build {} is {}; only a version has a handbook", id,
                   view.row.state);
  std::erase_if(files, [](const auto& file) { return !IsText(file.second); });
  CO_TRY_ASSIGN(auto versions, co_await platform_.store.Read([row = view.row](Transaction& tx) {
    return tx.List(Select<BuildRow>()
                       .Eq(&BuildRow::owner_id, row.owner_id)
                       .Eq(&BuildRow::project, row.project)
                       .Eq(&BuildRow::removal, "")
                       .Greater(&BuildRow::number, 0)
                       .Less(&BuildRow::number, row.number + 1)
                       .Order(&BuildRow::number, /*descending=*/true)
                       .Limit(kMaxVersions));
  }));
  co_return WriteHandbook(view.row, files, Judge(view.row, files).path, versions);
}

Task<Result<LogPage>> Builds::Log(std::string owner_id, std::string id, int64_t before,
                                  int64_t limit) {
  std::string archive = LogArchiveOf(platform_.config);
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<LogPage> {
    TRY(NeedBuild(tx, owner_id, id));
    return LinesBefore(tx, archive, id, before, limit);
  });
}

Task<Result<Builds::LogPart>> Builds::FollowLog(std::string owner_id, std::string id,
                                                int64_t from) {
  std::string archive = LogArchiveOf(platform_.config);
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<LogPart> {
    TRY_ASSIGN(BuildRow row, NeedBuild(tx, owner_id, id));
    LogPart part{.state = row.state};
    TRY_ASSIGN(auto run, tx.Get<store::RunRow>(row.run_id));
    part.over = IsTerminal(row.state) && (!run || run->finished_at);
    TRY_ASSIGN(part.lines, LinesFrom(tx, archive, id, from, kStreamLines));
    part.over = part.over && static_cast<int64_t>(part.lines.size()) < kStreamLines;
    return part;
  });
}

// ---- changing ----------------------------------------------------------------------------------

Task<Result<BuildView>> Builds::Change(std::string owner_id, std::string id,
                                       std::function<Status(Transaction&, BuildRow&)> change) {
  auto changed = co_await platform_.store.Write([=, this](Transaction& tx) -> Result<BuildView> {
    TRY_ASSIGN(BuildRow row, NeedBuild(tx, owner_id, id));
    TRY(change(tx, row));
    TRY_ASSIGN(row, tx.Need<BuildRow>(id, "build"));
    return ViewOf(tx, std::move(row));
  });
  if (changed) platform_.flow.Wake();
  co_return changed;
}

Task<Result<BuildView>> Builds::Cancel(std::string owner_id, std::string id, std::string reason) {
  if (reason.empty()) reason = "it was called off";
  return Change(owner_id, id, [=, this](Transaction& tx, BuildRow& row) -> Status {
    if (IsTerminal(row.state))
      return Fail(Code::kFailedPrecondition, "the build is over: it is {}", row.state);
    if (row.run_id.empty())
      return EndBuild(tx, platform_.log, row, "canceled", reason, "The build was canceled.");
    TRY(platform_.flow.Cancel(tx, row.run_id, reason));
    return {};
  });
}

Task<Result<BuildView>> Builds::Confirm(std::string owner_id, std::string id) {
  return Change(owner_id, id, [](Transaction& tx, BuildRow& row) -> Status {
    if (row.state != "ready")
      return Fail(Code::kFailedPrecondition, "only a build that is ready can be confirmed");
    row.iterations_used = 0;
    return tx.Update(row);
  });
}

Task<Result<BuildView>> Builds::MarkViewed(std::string owner_id, std::string id) {
  return Change(owner_id, id, [](Transaction& tx, BuildRow& row) -> Status {
    if (row.state != "ready")
      return Fail(Code::kFailedPrecondition, "the build has no preview yet: it is {}", row.state);
    if (row.viewed_at) return {};
    row.viewed_at = Now();
    return tx.Update(row);
  });
}

}  // namespace caisson::build
