#include "build/previews.h"

#include "base/id.h"
#include "base/log.h"
#include "build/event.h"
#include "build/log_archive.h"
#include "build/state.h"
#include "store/sandbox_rows.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

using std::chrono::seconds;
using store::BuildRow;
using store::Select;
using store::Transaction;

constexpr std::chrono::milliseconds kCareInterval{1'000};
constexpr std::chrono::milliseconds kRetryPause{5'000};
constexpr int kResumeTries = 2;
constexpr int kRoundsPerCleaning = 60;
constexpr int64_t kMaxSandboxes = 10'000;  // of one round

// Builds whose window is about to end or has ended, and whose sandbox still runs.
struct Window {
  BuildRow build;
  bool told = false;  // that it ends
};
bool WasTold(const store::EventRow& event, const BuildRow& row) {
  return work::TextOf(work::ParseObject(event.data), "ends_at") == FormatTime(*row.viewing_until);
}
// From the sandboxes that run: they are few, and builds are kept.
Result<std::vector<Window>> EndingWindows(Transaction& tx, Time soon, const std::string& node) {
  std::vector<std::string> mine = {"", node};  // other servers look after theirs
  TRY_ASSIGN(auto running, tx.List(Select<store::WorkSandboxRow>()
                                       .Eq(&store::WorkSandboxRow::status, "running")
                                       .Eq(&store::WorkSandboxRow::holder_kind, "build")
                                       .In(&store::WorkSandboxRow::node, mine)
                                       .IsNull(&store::WorkSandboxRow::destroyed_at)
                                       .Limit(kMaxSandboxes)));
  std::vector<Window> windows;
  for (const store::WorkSandboxRow& sandbox : running) {
    TRY_ASSIGN(auto builds, tx.List(Select<BuildRow>().Eq(&BuildRow::sandbox_id, sandbox.id)));
    // Somebody works on the next version in it.
    if (std::ranges::any_of(builds, [](const BuildRow& one) { return !IsTerminal(one.state); }))
      continue;
    for (BuildRow& row : builds) {
      if (row.state != "ready" || !row.viewing_until || *row.viewing_until >= soon) continue;
      TRY_ASSIGN(auto event, tx.First(Select<store::EventRow>()
                                          .Eq(&store::EventRow::build_id, row.id)
                                          .Eq(&store::EventRow::type, "sandbox_expiring")
                                          .Order(&store::EventRow::id, true)));
      bool told = event && WasTold(*event, row);
      windows.push_back({std::move(row), told});
    }
  }
  return windows;
}

}  // namespace

Previews::Previews(asio::any_io_executor executor, work::Platform platform, Workbench& workbench,
                   Builds& builds, BuildFlow& flow, BuildQueue& queue, BuildLogs& logs,
                   Removals& removals)
    : platform_(platform),
      workbench_(workbench),
      builds_(builds),
      flow_(flow),
      queue_(queue),
      logs_(logs),
      removals_(removals),
      tasks_(executor) {}

void Previews::Start() { tasks_.Spawn("care for builds", KeepCaring(*this)); }
Task<void> Previews::Stop() { co_await tasks_.Stop(); }

Task<Result<BuildRow>> Previews::NeedReady(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildRow row, co_await platform_.store.Read(
                                  [=](Transaction& tx) { return NeedBuild(tx, owner_id, id); }));
  if (row.state != "ready")
    co_return Fail(Code::kInvalidArgument, "the build has no preview: it is {}", row.state);
  co_return row;
}

Task<Result<PreviewCheck>> Previews::Check(std::string owner_id, std::string id,
                                           std::string page_origin) {
  CO_TRY_ASSIGN(BuildView view, co_await builds_.Get(owner_id, id));
  PreviewCheck check{.state = view.preview.state, .preview_url = view.row.preview_url};
  check.embedding = {.embeddable = false, .reason = "unreachable"};
  if (!view.preview.running) co_return check;
  Attention attention(builds_.attentions(), id, "checking");
  auto head = co_await workbench_.Fetch(view.row.preview_url);
  if (!head || head->status >= 500) {
    check.state = "error";
    co_return check;
  }
  check.embedding = CheckEmbedding(head->headers, view.row.preview_url, page_origin);
  check.state = check.embedding.embeddable ? "active" : "blocked";
  std::string note = check.embedding.embeddable ? "" : "blocked";
  if (note != view.row.preview_note) CO_TRY(co_await Note(id, note));
  co_return check;
}

Task<Result<BuildView>> Previews::Pause(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildRow row, co_await NeedReady(owner_id, id));
  CO_TRY(co_await workbench_.Pause(PlaceOf(row)));
  CO_TRY(co_await Note(id, ""));
  co_return co_await builds_.Get(owner_id, id);
}

Task<Status> Previews::Note(std::string id, std::string note) {
  co_return co_await platform_.store.Write([id, note](Transaction& tx) -> Status {
    TRY(tx.Set(Select<BuildRow>().Eq(&BuildRow::id, id),
               {store::Assign(&BuildRow::preview_note, note)}));
    return {};
  });
}

Task<Status> Previews::ResumeOnce(BuildRow row) {
  CO_TRY(co_await workbench_.Wake(PlaceOf(row)));
  CO_TRY_ASSIGN(auto log, co_await logs_.Open(row.id, "ready", ""));
  co_return co_await flow_.Restart(std::move(row), *log);
}

Task<Result<BuildView>> Previews::Resume(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildRow row, co_await NeedReady(owner_id, id));
  if (!row.viewing_until)
    co_return Fail(Code::kNotFound, "another version took the place of this one; roll back to it");
  std::optional<Attention> attention(std::in_place, builds_.attentions(), id, "resuming");
  Status done = co_await ResumeOnce(row);
  for (int tries = 1; !done && tries < kResumeTries; ++tries) {
    if (done.error().code() == Code::kNotFound) break;
    co_await SleepFor(kRetryPause);
    done = co_await ResumeOnce(row);
  }
  attention.reset();
  if (!done && done.error().code() == Code::kNotFound)
    co_return Fail(Code::kNotFound, "the sandbox of this preview is gone; build it again");
  if (!done) CO_TRY(co_await Note(id, "resume_failed"));
  if (!done)
    co_return Fail(Code::kUnavailable, "the preview does not come back: {}",
                   done.error().message());
  co_return co_await builds_.Get(owner_id, id);
}

Task<Result<BuildView>> Previews::Extend(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(BuildRow row, co_await NeedReady(owner_id, id));
  CO_TRY_ASSIGN(BuildView view, co_await builds_.Get(owner_id, id));
  if (!view.preview.running)
    co_return Fail(Code::kFailedPrecondition, "the preview is {}; it can be resumed",
                   view.preview.state);
  // The sandbox has to live as long; one that runs is not touched otherwise.
  CO_TRY(co_await workbench_.Wake(PlaceOf(row)));
  CO_TRY(co_await platform_.store.Write([this, id](Transaction& tx) -> Status {
    TRY_ASSIGN(BuildRow now, tx.Need<BuildRow>(id, "build"));
    if (!now.viewing_until)
      return Fail(Code::kFailedPrecondition, "another version took the place of this one");
    now.viewing_until = Now() + seconds(platform_.config.build_viewing_s);
    TRY(tx.Update(now));
    TRY(platform_.log.Emit(tx, About(now, "build_updated", BuildData(now))));
    return {};
  }));
  co_return co_await builds_.Get(owner_id, id);
}

// ---- looking after -----------------------------------------------------------------------------

Task<void> Previews::KeepCaring(Previews& previews) {
  for (;;) {
    co_await SleepFor(kCareInterval);
    if (Status done = co_await previews.Care(); !done)
      LogWarn("builds could not be looked after", {{"error", done.error().message()}});
  }
}

Task<Status> Previews::Care() {
  CO_TRY_ASSIGN(int64_t waiting, co_await platform_.store.Read([](Transaction& tx) {
    return tx.Count(Select<BuildRow>()
                        .In(&BuildRow::state, std::vector<std::string>{"queued", "scheduled"})
                        .Eq(&BuildRow::run_id, ""));
  }));
  if (waiting > 0) {
    CO_TRY(co_await platform_.store.Write([this](Transaction& tx) { return queue_.Advance(tx); }));
    platform_.flow.Wake();
  }
  CO_TRY(co_await CareForWindows());
  if (rounds_++ % kRoundsPerCleaning != 0) co_return Status();
  CO_TRY(co_await CleanLogs());
  co_return co_await removals_.Care();
}

Task<Status> Previews::CleanLogs() {
  const Config& config = platform_.config;
  if (config.build_log_hours <= 0) co_return Status();
  CO_TRY(co_await DeleteOldLogs(platform_.store, Now() - std::chrono::hours(config.build_log_hours),
                                LogArchiveOf(config)));
  co_return Status();
}

Task<Status> Previews::CareForWindows() {
  Time soon = Now() + seconds(platform_.config.build_viewing_warning_s);
  CO_TRY_ASSIGN(auto windows, co_await platform_.store.Read([this, soon](Transaction& tx) {
    return EndingWindows(tx, soon, platform_.store.node());
  }));
  for (Window& window : windows) {
    if (!window.told) CO_TRY(co_await Warn(window.build));
    if (*window.build.viewing_until < Now()) CO_TRY(co_await EndWindow(std::move(window.build)));
  }
  co_return Status();
}

Task<Status> Previews::Warn(BuildRow row) {
  auto left = std::chrono::duration_cast<seconds>(*row.viewing_until - Now()).count();
  CO_TRY(co_await platform_.store.Write([this, row, left](Transaction& tx) {
    return platform_.log.Emit(tx, About(row, "sandbox_expiring",
                                        {{"ends_at", FormatTime(*row.viewing_until)},
                                         {"seconds_left", std::max<int64_t>(left, 0)}}));
  }));
  co_return Status();
}

Task<Status> Previews::EndWindow(BuildRow row) {
  const std::string& what = platform_.config.build_after_viewing;
  if (what == "keep") co_return Status();
  if (what == "kill")
    co_return co_await workbench_.Destroy(PlaceOf(row), "the time for viewing is over");
  // One that cannot be paused lives until its own end.
  if (Status paused = co_await workbench_.Pause(PlaceOf(row)); !paused)
    LogWarn("a preview could not be paused",
            {{"build_id", row.id}, {"error", paused.error().message()}});
  co_return Status();
}

}  // namespace caisson::build
