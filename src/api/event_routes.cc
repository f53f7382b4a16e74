#include "api/event_routes.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json.hpp>
#include <charconv>

#include "api/stream_seat.h"
#include "events/types.h"
#include "store/build_rows.h"
#include "store/work_rows.h"

namespace caisson::api {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr int64_t kReplay = 10;  // shown first to a stream that does not say where to begin
constexpr int64_t kMaxPage = 1000;
constexpr int64_t kMaxBatchMs = 10'000;

// For clients that lost the connection.
constexpr std::string_view kRetry = "retry: 2000\n";

std::string SseOf(const events::Event& event) {
  return Sse(event.type, EncodeLogEvent(event), event.id);
}

std::vector<std::string> All(const http::Query& query, std::string_view name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : query.all())
    if (key == name && !value.empty()) values.push_back(value);
  return values;
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<Parameter> Filters() {
  std::vector<Parameter> list;
  for (std::string_view name : {"agent_id", "squad_id", "task_id", "execution_id", "run_id",
                                "sandbox_id", "session_id", "build_id", "type"})
    list.push_back({.name = name, .description = "only of these", .repeated = true});
  list.push_back({.name = "after", .type = "integer", .description = "only after this id"});
  list.push_back({.name = "since",
                  .description =
                      "only from this time on, for example 2026-01-31T12:00:00Z; `after` "
                      "and Last-Event-ID win"});
  return list;
}

std::vector<Parameter> StreamParameters() {
  std::vector<Parameter> list = Filters();
  list.push_back({.name = "replay",
                  .type = "integer",
                  .description = "how many of the newest are shown first (10) when neither `after` "
                                 "nor Last-Event-ID says where to begin",
                  .max = kMaxPage});
  list.push_back({.name = "batch_ms",
                  .type = "integer",
                  .description = "what happens within so long is sent together; 0: at once",
                  .max = kMaxBatchMs});
  return list;
}

}  // namespace

json::object EncodeLogEvent(const events::Event& event) {
  boost::system::error_code ec;
  json::value data = json::parse(event.data, ec);
  json::object body = ec || !data.is_object() ? json::object() : data.get_object();
  body["id"] = event.id;
  body["type"] = event.type;
  body["timestamp"] = FormatTime(event.at);
  auto about = [&](std::string_view name, const std::string& id) {
    if (!id.empty()) body[name] = id;
  };
  about("agent_id", event.agent_id);
  about("squad_id", event.squad_id);
  about("task_id", event.task_id);
  about("execution_id", event.execution_id);
  about("run_id", event.run_id);
  about("sandbox_id", event.sandbox_id);
  about("session_id", event.session_id);
  about("build_id", event.build_id);
  return body;
}

json::object EncodeEventPage(std::vector<events::Event> events, size_t limit) {
  bool more = events.size() > limit;
  if (more) events.pop_back();
  json::array list;
  for (const events::Event& event : events) list.push_back(EncodeLogEvent(event));
  json::object page{{"events", std::move(list)}};
  if (more) page["next"] = events.back().id;
  return page;
}

void EventRoutes::Add(Frame& frame) {
  frame.AddSchema("EventPage", R"({"type":"object","required":["events"],"properties":{
    "events":{"type":"array","items":{"type":"object","additionalProperties":true,
      "required":["id","type","timestamp"],
      "properties":{"id":{"type":"integer"},"type":{"type":"string"},
        "timestamp":{"type":"string","format":"date-time"}}}},
    "next":{"type":"integer","description":"give it as `after` to get the next page"},
    "previous":{"type":"integer","description":"give it as `before` to get the page before"}}})");
  frame.AddSchema("EventTypes", R"({"type":"object","additionalProperties":{"type":"object"}})");
  frame.AddSchema("StreamStats", R"({"type":"object","required":["total_connections","streams",
    "last_id"],"properties":{"total_connections":{"type":"integer"},"last_id":{"type":"integer"},
    "dropped":{"type":"integer"},
    "streams":{"type":"object","additionalProperties":{"type":"integer"}}}})");
  auto add = [&](std::string_view pattern, std::string_view id, std::string_view summary,
                 Answer (EventRoutes::*method)(Call&), std::vector<Parameter> parameters,
                 std::string_view stream, std::string_view schema, Access access) {
    frame.Add({.method = "GET",
               .pattern = pattern,
               .tag = "events",
               .id = id,
               .summary = summary,
               .access = access,
               .parameters = std::move(parameters),
               .responses = {{200, schema}},
               .stream = stream,
               .handler = [this, method](Call& call) { return (this->*method)(call); }});
  };
  constexpr std::string_view kSse = "text/event-stream";
  add("/api/v1/events", "streamEvents", "Live events, with replay by Last-Event-ID",
      &EventRoutes::StreamAll, StreamParameters(), kSse, "", Access::kViewer);
  add(
      "/api/v1/events/history", "listEvents", "The event log by pages, oldest first",
      &EventRoutes::List,
      [] {
        std::vector<Parameter> list = Filters();
        list.push_back({.name = "not_type", .description = "none of these", .repeated = true});
        list.push_back({.name = "before",
                        .type = "integer",
                        .description = "only before this id: without `after` and `since` the "
                                       "newest of them"});
        list.push_back({.name = "limit", .type = "integer", .min = 1, .max = kMaxPage});
        return list;
      }(),
      "", "EventPage", Access::kViewer);
  add("/api/v1/events/types", "listEventTypes", "The JSON schema of every type of event",
      &EventRoutes::ListTypes, {}, "", "EventTypes", Access::kViewer);
  add("/api/v1/sse/execution/{id}", "streamExecution", "Live events of one execution",
      &EventRoutes::StreamExecution, StreamParameters(), kSse, "", Access::kViewer);
  add("/api/v1/sse/squad/{id}", "streamSquad", "Live events of one squad",
      &EventRoutes::StreamSquad, StreamParameters(), kSse, "", Access::kViewer);
  add("/api/v1/builds/{id}/events/stream", "streamBuildEvents", "Live events of one build",
      &EventRoutes::StreamBuild, StreamParameters(), kSse, "", Access::kViewer);
  add("/api/v1/sse/stats", "streamStats", "How many streams are open", &EventRoutes::Stats, {}, "",
      "StreamStats", Access::kAdmin);
  frame.AddAlias("GET", "/api/v1/sse", "/api/v1/events");
}

events::Filter EventRoutes::FilterOf(const Call& call) {
  const http::Query& query = call.query;
  // SECURITY: everybody sees their own events only; an administrator sees all.
  return {.owner_id = call.who.admin() ? "" : call.who.user_id,
          .agent_ids = All(query, "agent_id"),
          .squad_ids = All(query, "squad_id"),
          .task_ids = All(query, "task_id"),
          .execution_ids = All(query, "execution_id"),
          .run_ids = All(query, "run_id"),
          .sandbox_ids = All(query, "sandbox_id"),
          .session_ids = All(query, "session_id"),
          .build_ids = All(query, "build_id"),
          .types = All(query, "type")};
}

Answer EventRoutes::StreamAll(Call& call) {
  events::Filter filter = FilterOf(call);
  co_return co_await Stream(call, std::move(filter));
}

template <class Row>
Answer EventRoutes::StreamOf(Call& call, std::string_view what,
                             std::vector<std::string> events::Filter::* ids) {
  events::Filter filter = FilterOf(call);
  std::string id = call.params.at("id");
  CO_TRY_ASSIGN(auto row, co_await store_.Read([id](store::Transaction& transaction) {
    return transaction.Get<Row>(id);
  }));
  if (!row || (!call.who.admin() && row->owner_id != call.who.user_id))
    co_return Fail(Code::kNotFound, "there is no {} {}", what, id);
  filter.*ids = {id};
  co_return co_await Stream(call, std::move(filter));
}

Answer EventRoutes::StreamExecution(Call& call) {
  return StreamOf<store::ExecutionRow>(call, "execution", &events::Filter::execution_ids);
}

Answer EventRoutes::StreamSquad(Call& call) {
  return StreamOf<store::SquadRow>(call, "squad", &events::Filter::squad_ids);
}

Answer EventRoutes::StreamBuild(Call& call) {
  return StreamOf<store::BuildRow>(call, "build", &events::Filter::build_ids);
}

Task<Result<std::unique_ptr<events::Subscription>>> EventRoutes::Begin(const Call& call,
                                                                       const events::Filter& filter,
                                                                       std::string& text) {
  std::optional<int64_t> after;
  if (auto given = call.query.Get("after")) after = Number(*given);
  if (auto last = call.exchange.request().headers.Get("Last-Event-ID"); last && !last->empty()) {
    after = Number(*last);
    if (!after) co_return Fail(Code::kInvalidArgument, "Last-Event-ID must be a number");
  }
  if (!after) {
    CO_TRY_ASSIGN(after, co_await Since(call));
  }
  if (!after) {
    int64_t replay = kReplay;
    if (auto given = call.query.Get("replay")) replay = Number(*given).value_or(kReplay);
    CO_TRY_ASSIGN(auto subscription, co_await log_.Follow(filter, std::nullopt));
    // What arrives from here on comes by the subscription.
    CO_TRY_ASSIGN(auto events, co_await log_.Recent(filter, static_cast<size_t>(replay)));
    for (const events::Event& event : events)
      if (event.id <= subscription->position()) text += SseOf(event);
    co_return subscription;
  }
  auto subscription = co_await log_.Follow(filter, after);
  if (subscription || subscription.error().code() != Code::kOutOfRange) co_return subscription;
  // What it missed is gone: it is told so, and gets all there is.
  CO_TRY_ASSIGN(auto whole, co_await log_.Follow(filter, 0));
  CO_TRY_ASSIGN(auto first, co_await log_.After({}, 0, 1));
  text += Sse("reset", {{"reason", subscription.error().message()},
                        {"oldest", first.empty() ? 0 : first.front().id}});
  co_return whole;
}

Task<Result<std::optional<int64_t>>> EventRoutes::Since(const Call& call) {
  auto given = call.query.Get("since");
  if (!given) co_return std::nullopt;
  auto time = ParseTime(*given);
  if (!time)
    co_return Fail(Code::kInvalidArgument, "since must be a time such as 2026-01-31T12:00:00Z");
  co_return co_await store_.Read([from = *time](
                                     store::Transaction& read) -> Result<std::optional<int64_t>> {
    auto later = store::Select<events::Event>().Greater(&events::Event::at,
                                                        from - std::chrono::nanoseconds(1));
    TRY_ASSIGN(auto first, read.First(later.Order(&events::Event::at).Order(&events::Event::id)));
    if (first) return first->id - 1;
    TRY_ASSIGN(auto last,
               read.First(store::Select<events::Event>().Order(&events::Event::id, true)));
    return last ? last->id : 0;
  });
}

Answer EventRoutes::Stream(Call& call, events::Filter filter) {
  const std::string user = call.who.user_id;
  if (auto open = streams_.find(user); config_.sse_max_per_user > 0 && open != streams_.end() &&
                                       open->second >= config_.sse_max_per_user)
    co_return Fail(Code::kResourceExhausted,
                   "{} streams of this user are open, which is the most there may be",
                   open->second);
  StreamSeat seat(streams_, user);
  std::string text(kRetry);
  std::string replayed;
  CO_TRY_ASSIGN(auto subscription, co_await Begin(call, filter, replayed));
  text += Sse("connected", {{"position", subscription->position()}}) + replayed;
  SseStream stream(call.exchange, config_);
  CO_TRY(co_await stream.Start(text));
  // A client that goes away is noticed at once, so that its place is free for the next.
  std::chrono::milliseconds gather(Number(call.query.Get("batch_ms").value_or("0")).value_or(0));
  auto ended = co_await (Pump(stream, *subscription, gather) || call.exchange.ClientGone());
  if (ended.index() == 0 && std::get<0>(ended)) (void)co_await stream.Finish();
  co_return http::Response::Empty(200);
}

void EventRoutes::EndStreams() {
  is_over_ = true;
  over_.Notify();
}

Task<void> EventRoutes::UntilOver() {
  while (!is_over_) co_await over_.Wait(std::chrono::hours(1));
}

Task<Status> EventRoutes::Pump(SseStream& stream, events::Subscription& subscription,
                               std::chrono::milliseconds gather) {
  std::chrono::milliseconds patience(config_.sse_heartbeat_ms);
  for (;;) {
    auto next = co_await (subscription.Next(patience) || UntilOver());
    if (next.index() == 1) co_return Status();
    auto& batch = std::get<0>(next);
    if (!batch) co_return Status();
    std::string text;
    if (batch->missed > 0) text += Sse("overflow", {{"missed", batch->missed}});
    for (const events::Event& event : batch->events) text += SseOf(event);
    if (text.empty()) text = Sse("heartbeat", {{"position", subscription.position()}});
    CO_TRY(co_await stream.Write(text));
    // What happens meanwhile is one write.
    if (gather.count() > 0) co_await SleepFor(gather);
  }
}

Answer EventRoutes::List(Call& call) {
  CO_TRY_ASSIGN(auto since, co_await Since(call));
  std::optional<int64_t> after = since, before;
  if (auto given = call.query.Get("after")) after = Number(*given).value_or(0);
  if (auto given = call.query.Get("before")) before = Number(*given);
  auto limit = static_cast<size_t>(Number(call.query.Get("limit").value_or("100")).value_or(100));
  // One more than asked for tells whether there are more.
  events::PageQuery query{.filter = FilterOf(call),
                          .not_types = All(call.query, "not_type"),
                          .after = after.value_or(0),
                          .before = before.value_or(INT64_MAX),
                          .limit = limit + 1,
                          .newest = before && !after};
  bool newest = query.newest;
  CO_TRY_ASSIGN(auto events, co_await reader_.Page(std::move(query)));
  if (!newest) co_return http::Response::Json(200, EncodeEventPage(std::move(events), limit));
  bool more = events.size() > limit;
  if (more) events.erase(events.begin());
  json::object page = EncodeEventPage(std::move(events), limit);
  if (more) page["previous"] = page["events"].as_array().front().as_object()["id"];
  co_return http::Response::Json(200, page);
}

Answer EventRoutes::Stats(Call&) {
  events::Log::Numbers numbers = log_.numbers();
  json::object streams;
  int64_t total = 0;
  for (const auto& [user, count] : streams_) {
    streams[user] = count;
    total += count;
  }
  co_return http::Response::Json(200, json::object{{"total_connections", total},
                                                   {"streams", std::move(streams)},
                                                   {"last_id", numbers.last_id},
                                                   {"dropped", numbers.dropped}});
}

Answer EventRoutes::ListTypes(Call&) {
  json::object types;
  for (const events::Type& type : events::Types()) types[type.name] = events::SchemaOf(type);
  co_return http::Response::Json(200, types);
}

}  // namespace caisson::api
