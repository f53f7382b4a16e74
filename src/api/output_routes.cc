#include "api/output_routes.h"

#include <boost/json.hpp>

#include "api/work_codec.h"
#include "events/output_search.h"
#include "sdk/utf8_decoder.h"
#include "store/sandbox_rows.h"
#include "store/session_rows.h"
#include "store/work_rows.h"

namespace caisson::api {
namespace {

constexpr size_t kMaxWanted = 200;  // bytes of what is searched for
constexpr int64_t kMaxHits = 1'000;
constexpr size_t kShownBytes = 200;  // of a line that was found
// A person waits for it, and the caller can go on from `next`.
constexpr std::chrono::milliseconds kSearchPatience{2'000};

const Parameter kStream{
    .name = "stream", .description = "only what was printed there", .values = {"stdout", "stderr"}};

json::object Encode(const events::OutputLine& line) {
  return {{"event_id", line.event},
          {"line", line.place},
          {"stream", line.is_stderr ? "stderr" : "stdout"},
          {"text", sdk::CutUtf8(line.text, kShownBytes)}};
}

}  // namespace

template <class Row>
Task<Result<events::Filter>> OutputRoutes::FilterOf(
    const Call& call, std::string_view what, std::vector<std::string> events::Filter::* ids) {
  std::string id = call.params.at("id");
  CO_TRY_ASSIGN(auto row, co_await store_.Read([id](store::Transaction& transaction) {
    return transaction.Get<Row>(id);
  }));
  if (!row || (!call.who.admin() && row->owner_id != call.who.user_id))
    co_return Fail(Code::kNotFound, "there is no {} {}", what, id);
  events::Filter filter{.owner_id = row->owner_id};
  filter.*ids = {id};
  co_return filter;
}

Task<Result<events::Filter>> OutputRoutes::OfTask(const Call& call) {
  return FilterOf<store::TaskRow>(call, "task", &events::Filter::task_ids);
}

Task<Result<events::Filter>> OutputRoutes::OfSession(const Call& call) {
  return FilterOf<store::SessionRow>(call, "session", &events::Filter::session_ids);
}

Task<Result<events::Filter>> OutputRoutes::OfSandbox(const Call& call) {
  return FilterOf<store::WorkSandboxRow>(call, "sandbox", &events::Filter::sandbox_ids);
}

Answer OutputRoutes::Search(Call& call, Find find) {
  CO_TRY_ASSIGN(auto filter, co_await (this->*find)(call));
  std::string text = TextParameter(call, "q");
  if (text.empty() || text.size() > kMaxWanted || text.find('\n') != text.npos)
    co_return ErrorResponse(
        Refusal{
            .status = 422,
            .code = "validation_failed",
            .message = fmt::format("q must be a text of 1 to {} bytes on one line", kMaxWanted)},
        call.exchange.request_id());
  events::OutputQuery query{.filter = std::move(filter),
                            .text = std::move(text),
                            .stream = TextParameter(call, "stream"),
                            .after = NumberParameter(call, "after", 0),
                            .limit = static_cast<size_t>(NumberParameter(call, "limit", kMaxHits)),
                            .patience = kSearchPatience};
  CO_TRY_ASSIGN(auto found, co_await events::FindOutput(reader_, std::move(query)));
  json::array hits;
  for (const events::OutputLine& line : found.lines) hits.push_back(Encode(line));
  json::object body{{"hits", std::move(hits)}, {"searched", found.looked_at}};
  if (found.next) body["next"] = *found.next;
  co_return http::Response::Json(200, body);
}

// Part by part: the output of a long task is never in memory as a whole.
Answer OutputRoutes::Download(Call& call, Find find) {
  CO_TRY_ASSIGN(auto filter, co_await (this->*find)(call));
  std::string stream = TextParameter(call, "stream");
  http::ResponseHead head;
  head.headers = call.headers;
  head.headers.Set("Content-Type", "text/plain; charset=utf-8");
  // SECURITY: what a program printed is never shown as a page of this server.
  head.headers.Set("Content-Disposition",
                   fmt::format("attachment; filename=\"output-{}.txt\"", call.params.at("id")));
  head.headers.Set("X-Content-Type-Options", "nosniff");
  CO_TRY(co_await call.exchange.StartStream(std::move(head), std::nullopt));
  events::OutputWalk walk(reader_, std::move(filter), 0);
  for (bool over = false; !over;) {
    auto text = std::make_shared<std::string>();
    CO_TRY_ASSIGN(auto part, co_await walk.Next([text, stream](const events::OutputLine& line) {
      if (stream.empty() || line.is_stderr == (stream == "stderr"))
        *text += line.text + (line.ends ? "\n" : "");
      return true;
    }));
    if (!text->empty()) CO_TRY(co_await call.exchange.Write(*text));
    over = part.over;
  }
  CO_TRY(co_await call.exchange.FinishStream());
  co_return http::Response::Empty(200);
}

void OutputRoutes::AddFor(Frame& frame, std::string_view pattern, std::string_view search_pattern,
                          std::string_view id, std::string_view search_id, Find find) {
  frame.Add({.method = "GET",
             .pattern = pattern,
             .tag = "events",
             .id = id,
             .summary = "Everything that commands printed, as one text without colours",
             .access = Access::kViewer,
             .parameters = {kStream},
             .responses = {{200, ""}},
             .stream = "text/plain",
             .handler = [this, find](Call& call) { return Download(call, find); }});
  frame.Add({.method = "GET",
             .pattern = search_pattern,
             .tag = "events",
             .id = search_id,
             .summary = "The lines of output that hold a text, upper and lower case alike",
             .access = Access::kViewer,
             .parameters = {{.name = "q", .description = "what is searched for"},
                            kStream,
                            {.name = "after",
                             .type = "integer",
                             .description = "only in what was printed after this event"},
                            {.name = "limit",
                             .type = "integer",
                             .description = "the search stops behind the event in which so many "
                                            "lines are found",
                             .min = 1,
                             .max = kMaxHits}},
             .responses = {{200, "OutputHits"}},
             .handler = [this, find](Call& call) { return Search(call, find); }});
}

void OutputRoutes::Add(Frame& frame) {
  frame.AddSchema("OutputHits", R"({"type":"object","required":["hits","searched"],"properties":{
    "hits":{"type":"array","items":{"type":"object","required":["event_id","line","stream","text"],
      "properties":{"event_id":{"type":"integer","description":"the event in which the line begins"},
        "line":{"type":"integer","description":"how many lines end in that event before it"},
        "stream":{"type":"string","enum":["stdout","stderr"]},
        "text":{"type":"string","description":"its beginning"}}}},
    "searched":{"type":"integer","description":"how many lines were looked at"},
    "next":{"type":"integer",
      "description":"there may be more: give it as `after` to search on"}}})");
  AddFor(frame, "/api/v1/tasks/{id}/output", "/api/v1/tasks/{id}/output/search",
         "downloadTaskOutput", "searchTaskOutput", &OutputRoutes::OfTask);
  AddFor(frame, "/api/v1/sessions/{id}/output", "/api/v1/sessions/{id}/output/search",
         "downloadSessionOutput", "searchSessionOutput", &OutputRoutes::OfSession);
  AddFor(frame, "/api/v1/sandboxes/{id}/output", "/api/v1/sandboxes/{id}/output/search",
         "downloadSandboxOutput", "searchSandboxOutput", &OutputRoutes::OfSandbox);
}

}  // namespace caisson::api
