#include "api/build_routes.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json.hpp>

#include "api/build_codec.h"
#include "api/stream_seat.h"
#include "api/work_codec.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"
#include "build/archive.h"
#include "build/event.h"
#include "build/state.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using namespace asio::experimental::awaitable_operators;
using work::TextOf;

constexpr std::chrono::milliseconds kLookInterval{250};
constexpr size_t kMaxPicture = 8 << 20;
constexpr int64_t kMaxPerColumn = 200;
constexpr std::string_view kDay = "2026-01-31";

const std::string& Id(const Call& call) { return call.params.find("id")->second; }

// Where a client that lost the connection goes on: after the last line it has.
int64_t FirstLine(const Call& call) {
  auto last = call.exchange.request().headers.Get("Last-Event-ID");
  auto number = last ? ParseInt<int64_t>(*last) : std::nullopt;
  return number ? std::max<int64_t>(*number, -1) + 1 : NumberParameter(call, "from", 0);
}

// A time, or a day: its beginning.
Result<std::optional<Time>> DayOrTime(const Call& call, std::string_view name) {
  std::string text = TextParameter(call, name);
  if (text.empty()) return std::nullopt;
  auto time = ParseTime(text.size() == kDay.size() ? text + "T00:00:00Z" : text);
  if (!time)
    return Fail(Code::kInvalidArgument, "{} must be a day like {} or a time like {}T12:00:00Z",
                name, kDay, kDay);
  return std::optional(*time);
}

std::vector<std::string> States() {
  std::vector<std::string> names;
  for (std::string_view state : build::AllStates()) names.emplace_back(state);
  return names;
}

}  // namespace

Handler BuildRoutes::Bind(Method method) {
  return [this, method](Call& call) -> Answer {
    auto answer = co_await (this->*method)(call);
    if (answer || answer.error().code() != Code::kInvalidArgument) co_return answer;
    co_return ErrorResponse(
        Refusal{.status = 422, .code = "validation_failed", .message = answer.error().message()},
        call.exchange.request_id());
  };
}

// ---- builds ------------------------------------------------------------------------------------

Answer BuildRoutes::Create(Call& call) {
  CO_TRY_ASSIGN(build::NewBuild made, ReadNewBuild(call.body));
  CO_TRY_ASSIGN(auto view, co_await builds_.Create(call.who.user_id, std::move(made)));
  call.target = view.row.id;
  co_return http::Response::Json(201, Encode(view));
}

// Create() in the words of another program.
Answer BuildRoutes::StartGeneration(Call& call) {
  CO_TRY_ASSIGN(build::NewBuild made, ReadNewBuild(call.body));
  CO_TRY_ASSIGN(auto view, co_await builds_.Create(call.who.user_id, std::move(made)));
  call.target = view.row.id;
  co_return http::Response::Json(
      201, json::object{{"job_id", view.row.id},
                        {"status", view.row.state},
                        {"build_version", build::VersionName(view.predicted)}});
}

Answer BuildRoutes::List(Call& call) {
  build::BuildFilter filter{.project = TextParameter(call, "project"),
                            .states = TextParameters(call, "state"),
                            .page = PageOf(call)};
  CO_TRY_ASSIGN(auto listed, co_await builds_.List(call.owner(), filter));
  co_return ListResponse("builds", listed);
}

Answer BuildRoutes::Timeline(Call& call) {
  build::TimelineFilter filter{.project = TextParameter(call, "project"),
                               .text = TextParameter(call, "q"),
                               .types = TextParameters(call, "type"),
                               .per_column = NumberParameter(call, "limit", 50)};
  CO_TRY_ASSIGN(filter.from, DayOrTime(call, "from"));
  CO_TRY_ASSIGN(filter.before, DayOrTime(call, "to"));
  // A day is meant as a whole.
  if (filter.before && TextParameter(call, "to").size() == kDay.size())
    *filter.before += std::chrono::hours(24);
  CO_TRY_ASSIGN(auto timeline, co_await builds_.Timeline(call.owner(), std::move(filter)));
  co_return http::Response::Json(200, Encode(timeline));
}

Answer BuildRoutes::Get(Call& call) {
  CO_TRY_ASSIGN(auto view, co_await builds_.Get(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(view));
}

Answer BuildRoutes::Cancel(Call& call) {
  call.target = Id(call);
  CO_TRY_ASSIGN(auto view,
                co_await builds_.Cancel(call.who.user_id, Id(call), TextOf(call.body, "reason")));
  co_return http::Response::Json(200, Encode(view));
}

Answer BuildRoutes::Confirm(Call& call) {
  call.target = Id(call);
  CO_TRY_ASSIGN(auto view, co_await builds_.Confirm(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(view));
}

Answer BuildRoutes::Rollback(Call& call) {
  call.target = Id(call);
  CO_TRY_ASSIGN(auto view, co_await builds_.Rollback(call.who.user_id, Id(call),
                                                     TextOf(call.body, "version")));
  co_return http::Response::Json(201, Encode(view));
}

Answer BuildRoutes::Delete(Call& call) {
  call.target = Id(call);
  CO_TRY(co_await removals_.Delete(call.who.user_id, Id(call)));
  co_return http::Response::Empty(204);
}

Answer BuildRoutes::Files(Call& call) {
  CO_TRY_ASSIGN(auto files, co_await builds_.GetFiles(call.who.user_id, Id(call)));
  json::object texts, others;
  for (const auto& [path, content] : files) {
    if (build::IsText(content))
      texts[path] = content;
    else
      others[path] = Base64Encode(content);
  }
  co_return http::Response::Json(
      200, json::object{{"files", std::move(texts)}, {"binary_files", std::move(others)}});
}

// File by file: the archive of a large version is never in memory as a whole.
Answer BuildRoutes::Download(Call& call) {
  CO_TRY_ASSIGN(auto view, co_await builds_.Get(call.who.user_id, Id(call)));
  CO_TRY_ASSIGN(auto files, co_await builds_.GetFiles(call.who.user_id, Id(call)));
  if (files.empty()) co_return Fail(Code::kNotFound, "this build has no files");
  const store::BuildRow& row = view.row;
  std::string version = row.number > 0 ? build::VersionName(row.number) : row.id;
  http::ResponseHead head{
      .status = 200,
      .headers = {{"Content-Type", "application/gzip"},
                  {"Content-Disposition",
                   fmt::format("attachment; filename=\"{}-{}.tar.gz\"", row.project, version)}}};
  CO_TRY(co_await call.exchange.StartStream(std::move(head), std::nullopt));
  build::Archive archive(row.completed_at.value_or(row.enqueued_at));
  for (const auto& [path, content] : files)
    if (std::string piece = archive.Add(row.project + "/" + path, content); !piece.empty())
      CO_TRY(co_await call.exchange.Write(piece));
  CO_TRY(co_await call.exchange.FinishStream(archive.Finish()));
  co_return http::Response::Empty(200);
}

Answer BuildRoutes::Readiness(Call& call) {
  CO_TRY_ASSIGN(auto found, co_await builds_.Assess(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(found));
}

Answer BuildRoutes::ChangeRequest(Call& call) {
  CO_TRY_ASSIGN(auto request, co_await builds_.GetChangeRequest(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(request));
}

Answer BuildRoutes::Docs(Call& call) {
  CO_TRY_ASSIGN(auto view, co_await builds_.Get(call.who.user_id, Id(call)));
  CO_TRY_ASSIGN(auto handbook, co_await builds_.GetHandbook(call.who.user_id, Id(call)));
  json::object body = Encode(handbook);
  body["version"] = build::VersionName(view.row.number);
  body["markdown"] = build::Markdown(view.row.project, handbook);
  co_return http::Response::Json(200, std::move(body));
}

Answer BuildRoutes::DownloadDocs(Call& call) {
  CO_TRY_ASSIGN(auto view, co_await builds_.Get(call.who.user_id, Id(call)));
  CO_TRY_ASSIGN(auto handbook, co_await builds_.GetHandbook(call.who.user_id, Id(call)));
  const store::BuildRow& row = view.row;
  std::string text = build::Markdown(row.project, handbook);
  std::string file =
      fmt::format("attachment; filename=\"{}-{}.md\"", row.project, build::VersionName(row.number));
  http::ResponseHead head{.status = 200,
                          .headers = {{"Content-Type", "text/markdown; charset=utf-8"},
                                      {"Content-Disposition", std::move(file)}}};
  CO_TRY(co_await call.exchange.StartStream(std::move(head), text.size(), text));
  CO_TRY(co_await call.exchange.FinishStream());
  co_return http::Response::Empty(200);
}

Answer BuildRoutes::Diff(Call& call) {
  CO_TRY_ASSIGN(auto differences,
                co_await builds_.Diff(call.who.user_id, Id(call), TextParameter(call, "against")));
  json::array files;
  for (const build::FileDifference& one : differences) files.push_back(Encode(one));
  co_return http::Response::Json(200, json::object{{"files", std::move(files)}});
}

// ---- logs --------------------------------------------------------------------------------------

Answer BuildRoutes::Logs(Call& call) {
  CO_TRY_ASSIGN(auto page, co_await builds_.Log(call.who.user_id, Id(call),
                                                NumberParameter(call, "before_id", -1),
                                                NumberParameter(call, "limit", 100)));
  json::array lines;
  for (const store::BuildLogRow& line : page.lines) lines.push_back(Encode(line));
  json::value oldest = page.lines.empty() ? json::value(nullptr) : page.lines.front().line;
  co_return http::Response::Json(200, json::object{{"lines", std::move(lines)},
                                                   {"has_more", page.has_more},
                                                   {"oldest_id", std::move(oldest)}});
}

Answer BuildRoutes::StreamLogs(Call& call) {
  const std::string user = call.who.user_id;
  CO_TRY(co_await builds_.Get(user, Id(call)));
  auto open = streams_.find(user);
  if (config_.sse_max_per_user > 0 && open != streams_.end() &&
      open->second >= config_.sse_max_per_user)
    co_return Fail(Code::kResourceExhausted,
                   "{} streams of this user are open, which is the most there may be",
                   open->second);
  StreamSeat seat(streams_, user);
  SseStream stream(call.exchange, config_);
  CO_TRY(co_await stream.Start("retry: 2000\n\n"));
  auto ended =
      co_await (Pump(stream, user, Id(call), FirstLine(call)) || call.exchange.ClientGone());
  if (ended.index() == 0 && std::get<0>(ended)) (void)co_await stream.Finish();
  co_return http::Response::Empty(200);
}

// Whatever line there is comes before "done".
Task<Status> BuildRoutes::Pump(SseStream& stream, std::string owner_id, std::string id,
                               int64_t from) {
  std::chrono::milliseconds patience(config_.sse_heartbeat_ms);
  auto last = std::chrono::steady_clock::now();
  for (;;) {
    CO_TRY_ASSIGN(auto part, co_await builds_.FollowLog(owner_id, id, from));
    std::string text;
    for (const store::BuildLogRow& line : part.lines) {
      text += fmt::format("id: {}\n", line.line) + Sse("log", Encode(line));
      from = line.line + 1;
    }
    if (part.over) text += Sse("done", {{"status", part.state}});
    auto now = std::chrono::steady_clock::now();
    if (text.empty() && now - last >= patience) text = Sse("heartbeat", {{"next", from}});
    if (!text.empty()) {
      CO_TRY(co_await stream.Write(text));
      last = now;
    }
    if (part.over) co_return Status();
    if (part.lines.empty()) co_await SleepFor(kLookInterval);
  }
}

// ---- previews ----------------------------------------------------------------------------------

Answer BuildRoutes::CheckPreview(Call& call) {
  std::string origin(call.exchange.request().headers.Value("Origin"));
  if (origin.empty())
    origin = (config_.tls == "off" ? "http://" : "https://") +
             std::string(call.exchange.request().headers.Value("Host"));
  CO_TRY_ASSIGN(auto check, co_await previews_.Check(call.who.user_id, Id(call), origin));
  co_return http::Response::Json(200, Encode(check));
}

Answer BuildRoutes::Viewed(Call& call) {
  call.target = Id(call);
  CO_TRY_ASSIGN(auto view, co_await builds_.MarkViewed(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(view));
}

Answer BuildRoutes::Pause(Call& call) {
  call.target = Id(call);
  CO_TRY_ASSIGN(auto view, co_await previews_.Pause(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(view));
}

Answer BuildRoutes::Resume(Call& call) {
  call.target = Id(call);
  CO_TRY(co_await builds_.Get(call.who.user_id, Id(call)));
  auto view = co_await previews_.Resume(call.who.user_id, Id(call));
  if (view) co_return http::Response::Json(200, Encode(*view));
  bool gone = view.error().code() == Code::kNotFound;
  if (!gone && view.error().code() != Code::kUnavailable)
    co_return tl::unexpected(std::move(view).error());
  // Two reasons that a person has to tell apart: build it again, or try again.
  co_return ErrorResponse(Refusal{.status = 503,
                                  .code = gone ? "sandbox_expired" : "sandbox_unreachable",
                                  .message = view.error().message(),
                                  .retryable = !gone},
                          call.exchange.request_id());
}

Answer BuildRoutes::Extend(Call& call) {
  call.target = Id(call);
  CO_TRY_ASSIGN(auto view, co_await previews_.Extend(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(view));
}

Answer BuildRoutes::Screenshot(Call& call) {
  CO_TRY_ASSIGN(auto view, co_await builds_.Get(call.who.user_id, Id(call)));
  if (view.row.screenshot.empty())
    co_return Fail(Code::kNotFound, "there is no picture of this build");
  auto picture = ReadFile(pictures_ + "/" + view.row.screenshot, kMaxPicture);
  if (!picture) co_return Fail(Code::kNotFound, "there is no picture of this build any more");
  http::ResponseHead head{.status = 200, .headers = {{"Content-Type", "image/png"}}};
  CO_TRY(co_await call.exchange.StartStream(std::move(head), picture->size(), *picture));
  CO_TRY(co_await call.exchange.FinishStream());
  co_return http::Response::Empty(200);
}

// ---- what there is -----------------------------------------------------------------------------

void BuildRoutes::AddOne(Frame& frame, Operation operation, Method method) {
  operation.tag = "builds";
  operation.handler = Bind(method);
  frame.Add(std::move(operation));
}

void BuildRoutes::AddReading(Frame& frame) {
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds",
          .id = "listBuilds",
          .summary = "Builds, newest first",
          .access = Access::kViewer,
          .parameters = WithPage({{.name = "project", .description = "of this project"},
                                  {.name = "state",
                                   .description = "only those in this state",
                                   .values = States(),
                                   .repeated = true},
                                  kAllParameter}),
          .responses = {{200, "BuildList"}}},
         &BuildRoutes::List);
  std::vector<std::string> types(build::kBuildTypes.begin(), build::kBuildTypes.end());
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/timeline",
          .id = "getBuildTimeline",
          .summary = "The history of builds as a board: columns by state, newest first",
          .access = Access::kViewer,
          .parameters = {{.name = "project", .description = "of this project"},
                         {.name = "q",
                          .description = "this text in project, goal, version, framework or error"},
                         {.name = "type",
                          .description = "only of these kinds",
                          .values = std::move(types),
                          .repeated = true},
                         {.name = "from", .description = "asked for from this day or time on"},
                         {.name = "to", .description = "to the end of this day, before this time"},
                         {.name = "limit",
                          .type = "integer",
                          .description = "builds shown of each column",
                          .min = 1,
                          .max = kMaxPerColumn},
                         kAllParameter},
          .responses = {{200, "BuildTimeline"}}},
         &BuildRoutes::Timeline);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}",
          .id = "getBuild",
          .summary = "One build: its state, its preview, why it failed",
          .access = Access::kViewer,
          .responses = {{200, "Build"}}},
         &BuildRoutes::Get);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/files",
          .id = "getBuildFiles",
          .summary = "All files of a version",
          .access = Access::kViewer,
          .responses = {{200, "BuildFiles"}}},
         &BuildRoutes::Files);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/archive",
          .id = "downloadBuild",
          .summary = "All files of a version, as a .tar.gz",
          .access = Access::kViewer,
          .responses = {{200, ""}},
          .stream = "application/gzip"},
         &BuildRoutes::Download);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/readiness",
          .id = "getBuildReadiness",
          .summary = "Whether the version can be deployed, what stands against it, and how",
          .access = Access::kViewer,
          .responses = {{200, "BuildReadiness"}}},
         &BuildRoutes::Readiness);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/change-request",
          .id = "getBuildChangeRequest",
          .summary = "What was asked of a further build, and how the change fits it",
          .access = Access::kViewer,
          .responses = {{200, "BuildChangeRequest"}}},
         &BuildRoutes::ChangeRequest);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/docs",
          .id = "getBuildDocs",
          .summary = "Documentation of a version for those who use it",
          .access = Access::kViewer,
          .responses = {{200, "BuildDocs"}, {409, "Error"}}},
         &BuildRoutes::Docs);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/docs/download",
          .id = "downloadBuildDocs",
          .summary = "Documentation of a version, as a file of Markdown",
          .access = Access::kViewer,
          .responses = {{200, ""}, {409, "Error"}},
          .stream = "text/markdown"},
         &BuildRoutes::DownloadDocs);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/diff",
          .id = "diffBuild",
          .summary = "What is different from another version, or from the one before",
          .access = Access::kViewer,
          .parameters = {{.name = "against", .description = "the id of the other build"}},
          .responses = {{200, "BuildDiff"}}},
         &BuildRoutes::Diff);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/logs",
          .id = "getBuildLogs",
          .summary = "A page of the log, oldest line first",
          .access = Access::kViewer,
          .parameters = {{.name = "before_id",
                          .type = "integer",
                          .description = "only lines before this one"},
                         {.name = "limit", .type = "integer", .min = 1, .max = 500}},
          .responses = {{200, "BuildLogPage"}}},
         &BuildRoutes::Logs);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/logs/stream",
          .id = "streamBuildLogs",
          .summary = "The log from its first line on: events log, heartbeat, done",
          .access = Access::kViewer,
          .parameters = {{.name = "from",
                          .type = "integer",
                          .description = "the first line, when Last-Event-ID does not say"}},
          .responses = {{200, ""}},
          .stream = "text/event-stream"},
         &BuildRoutes::StreamLogs);
}

void BuildRoutes::AddChanging(Frame& frame) {
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds",
          .id = "createBuild",
          .summary = "Builds a project from a goal or from files",
          .request = "NewBuild",
          .takes_files = true,
          .responses = {{201, "Build"}, {409, "Error"}}},
         &BuildRoutes::Create);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/generation/start",
          .id = "startGeneration",
          .summary = "Builds a project, as createBuild does; answers in fewer words",
          .request = "NewBuild",
          .takes_files = true,
          .responses = {{201, "StartedGeneration"}, {409, "Error"}}},
         &BuildRoutes::StartGeneration);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds/{id}/cancel",
          .id = "cancelBuild",
          .summary = "Calls a build off; the version before comes back",
          .request = "BuildCancel",
          .body_optional = true,
          .responses = {{200, "Build"}, {409, "Error"}}},
         &BuildRoutes::Cancel);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds/{id}/confirm",
          .id = "confirmBuild",
          .summary = "Grants another batch of iterations",
          .responses = {{200, "Build"}, {409, "Error"}}},
         &BuildRoutes::Confirm);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds/{id}/rollback",
          .id = "rollbackBuild",
          .summary = "Brings an older version of the project back, as a new build",
          .request = "BuildRollback",
          .responses = {{201, "Build"}, {409, "Error"}}},
         &BuildRoutes::Rollback);
  AddOne(frame,
         {.method = "DELETE",
          .pattern = "/api/v1/builds/{id}",
          .id = "deleteBuild",
          .summary = "Deletes a build that is over: its files, snapshot, preview, picture and log",
          .responses = {{204, ""}, {409, "Error"}}},
         &BuildRoutes::Delete);
}

void BuildRoutes::AddPreviews(Frame& frame) {
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/preview-check",
          .id = "checkBuildPreview",
          .summary = "Whether the preview answers and may be shown in a frame",
          .access = Access::kViewer,
          .responses = {{200, "PreviewCheck"}}},
         &BuildRoutes::CheckPreview);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds/{id}/preview-viewed",
          .id = "viewBuildPreview",
          .summary = "Somebody has looked at the preview",
          .responses = {{200, "Build"}, {409, "Error"}}},
         &BuildRoutes::Viewed);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds/{id}/pause",
          .id = "pauseBuildPreview",
          .summary = "Pauses the sandbox of the preview",
          .responses = {{200, "Build"}, {409, "Error"}}},
         &BuildRoutes::Pause);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds/{id}/resume",
          .id = "resumeBuildPreview",
          .summary = "Brings a paused preview back",
          .responses = {{200, "Build"}, {409, "Error"}, {503, "Error"}}},
         &BuildRoutes::Resume);
  AddOne(frame,
         {.method = "POST",
          .pattern = "/api/v1/builds/{id}/extend",
          .id = "extendBuildPreview",
          .summary = "Shows a preview longer; its server runs on",
          .responses = {{200, "Build"}, {409, "Error"}}},
         &BuildRoutes::Extend);
  AddOne(frame,
         {.method = "GET",
          .pattern = "/api/v1/builds/{id}/screenshot",
          .id = "getBuildScreenshot",
          .summary = "A picture of the preview",
          .access = Access::kViewer,
          .responses = {{200, ""}},
          .stream = "image/png"},
         &BuildRoutes::Screenshot);
  frame.AddAlias("POST", "/api/v1/builds/{id}/snapshot", "/api/v1/builds/{id}/pause");
}

void BuildRoutes::Add(Frame& frame) {
  AddBuildSchemas(frame);
  AddReading(frame);
  AddChanging(frame);
  AddPreviews(frame);
}

}  // namespace caisson::api
