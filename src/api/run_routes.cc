#include "api/run_routes.h"

#include "api/work_codec.h"
#include "work/json_fields.h"
#include "work/paging.h"

namespace caisson::api {
namespace {

using store::RunRow;
using store::Select;
using store::StepRow;
using store::Transaction;
using work::ParseObject;

constexpr std::string_view kStep = R"({"type":"object","properties":{
  "name":{"type":"string"},
  "state":{"type":"string","enum":["ready","running","waiting","done","failed","canceled"]},
  "attempt":{"type":"integer"},"max_attempts":{"type":"integer"},"retries":{"type":"integer"},
  "result":{"type":"object"},"error_class":{"type":"string"},"error":{"type":"string"},
  "next_attempt_at":{"type":["string","null"],"format":"date-time"},
  "wait_key":{"type":"string"},"wait_until":{"type":["string","null"],"format":"date-time"},
  "started_at":{"type":["string","null"],"format":"date-time"},
  "finished_at":{"type":["string","null"],"format":"date-time"},
  "duration_ms":{"type":["integer","null"]}}})";

constexpr std::string_view kRun = R"({"type":"object","properties":{
  "id":{"type":"string"},"owner_id":{"type":"string"},"definition":{"type":"string"},"version":{"type":"integer"},
  "task_id":{"type":["string","null"]},"execution_id":{"type":"string"},
  "state":{"type":"string","enum":["queued","running","waiting","succeeded","failed","canceled",
    "dead"]},
  "step":{"type":"string"},"input":{"type":"object"},"result":{"type":"object"},
  "error_class":{"type":"string","enum":["","transient","persistent","user_action","fatal"]},
  "error":{"type":"string"},"priority":{"type":"integer"},"cancel_reason":{"type":"string"},
  "cancel_at":{"type":["string","null"],"format":"date-time"},
  "created_at":{"type":"string","format":"date-time"},
  "started_at":{"type":["string","null"],"format":"date-time"},
  "finished_at":{"type":["string","null"],"format":"date-time"},
  "queue_expires_at":{"type":["string","null"],"format":"date-time",
    "description":"it is given up if it has not begun by then; null once it has, or if it may wait for ever"},
  "queued_ms":{"type":["integer","null"]},"duration_ms":{"type":["integer","null"]},
  "steps":{"type":"array","items":{"$ref":"#/components/schemas/Step"}}}})";

const std::vector<std::string> kStates = {"queued", "running",  "waiting", "succeeded",
                                          "failed", "canceled", "dead"};

json::value OrNull(const std::optional<Time>& time) {
  return time ? json::value(FormatTime(*time)) : json::value(nullptr);
}

// So far, if there is no end yet; null before the beginning.
json::value DurationMs(const std::optional<Time>& from, const std::optional<Time>& to) {
  if (!from) return nullptr;
  auto duration = std::max(to.value_or(Now()) - *from, Time::duration::zero());
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

json::object EncodeStep(const StepRow& step) {
  bool later = step.state == "ready" && step.run_at > Now();
  return {{"name", step.name},
          {"state", step.state},
          {"attempt", step.attempt},
          {"max_attempts", step.max_attempts},
          {"retries", std::max<int64_t>(step.attempt - 1, 0)},
          {"result", ParseObject(step.result)},
          {"error_class", step.error_class},
          {"error", step.error},
          {"next_attempt_at", later ? OrNull(step.run_at) : json::value(nullptr)},
          {"wait_key", step.state == "waiting" ? step.wait_key : ""},
          {"wait_until", step.state == "waiting" ? OrNull(step.wait_until) : json::value(nullptr)},
          {"started_at", OrNull(step.started_at)},
          {"finished_at", OrNull(step.finished_at)},
          {"duration_ms", DurationMs(step.started_at, step.finished_at)}};
}

json::object EncodeRun(const RunRow& run) {
  return {
      {"id", run.id},
      {"owner_id", run.owner_id},
      {"definition", run.definition},
      {"version", run.version},
      {"task_id", run.task_id ? json::value(*run.task_id) : json::value(nullptr)},
      {"execution_id", run.execution_id},
      {"state", run.state},
      {"step", run.step},
      {"input", ParseObject(run.input)},
      {"result", ParseObject(run.result)},
      {"error_class", run.error_class},
      {"error", run.error},
      {"priority", run.priority},
      {"cancel_reason", run.cancel_reason},
      {"cancel_at", OrNull(run.cancel_at)},
      {"created_at", FormatTime(run.created_at)},
      {"started_at", OrNull(run.started_at)},
      {"finished_at", OrNull(run.finished_at)},
      {"queue_expires_at", OrNull(run.queue_expires_at)},
      {"queued_ms", DurationMs(run.created_at, run.started_at ? run.started_at : run.finished_at)},
      {"duration_ms", DurationMs(run.started_at, run.finished_at)}};
}

// SECURITY: somebody else's run is one that does not exist.
Result<RunRow> NeedOwn(Transaction& tx, const std::string& id, const std::string& user_id) {
  TRY_ASSIGN(auto run, tx.Get<RunRow>(id));
  if (!run || run->owner_id != user_id) return Fail(Code::kNotFound, "There is no run {}.", id);
  return std::move(*run);
}

Result<json::object> Describe(Transaction& tx, const std::string& id, const std::string& user_id) {
  TRY_ASSIGN(RunRow run, NeedOwn(tx, id, user_id));
  json::object object = EncodeRun(run);
  TRY_ASSIGN(auto rows, tx.List(Select<StepRow>().Eq(&StepRow::run_id, id).Order(&StepRow::seq)));
  json::array steps;
  for (const StepRow& row : rows) steps.push_back(EncodeStep(row));
  object["steps"] = std::move(steps);
  return object;
}

// SECURITY: signals are by key, and keys are of all users. Only what this run waits for, or may
// wait for by its own name, can be sent through its route.
Status CheckKey(Transaction& tx, const RunRow& run, const std::string& key) {
  if (key.starts_with("run:" + run.id + ":")) return {};
  TRY_ASSIGN(auto step, tx.First(Select<StepRow>()
                                     .Eq(&StepRow::run_id, run.id)
                                     .Eq(&StepRow::state, "waiting")
                                     .Eq(&StepRow::wait_key, key)));
  if (!step) return Fail(Code::kFailedPrecondition, "The run does not wait for '{}'.", key);
  return {};
}

}  // namespace

Handler RunRoutes::Bind(Method method) {
  return [this, method](Call& call) { return (this->*method)(call); };
}

Answer RunRoutes::List(Call& call) {
  Select<RunRow> select;
  if (std::string owner = call.owner(); !owner.empty()) select.Eq(&RunRow::owner_id, owner);
  if (auto states = TextParameters(call, "state"); !states.empty())
    select.In(&RunRow::state, states);
  if (auto task = TextParameter(call, "task_id"); !task.empty()) select.Eq(&RunRow::task_id, task);
  if (auto name = TextParameter(call, "definition"); !name.empty())
    select.Eq(&RunRow::definition, name);
  work::Page page = PageOf(call);
  CO_TRY_ASSIGN(auto listed,
                co_await store_.Read([=](Transaction& tx) -> Result<work::Listed<RunRow>> {
                  auto ordered = select;
                  ordered.Order(&RunRow::created_at, true).Order(&RunRow::id);
                  return work::ListPage(tx, ordered, page);
                }));
  json::array items;
  for (const RunRow& run : listed.items) items.push_back(EncodeRun(run));
  co_return http::Response::Json(200,
                                 json::object{{"runs", std::move(items)}, {"total", listed.total}});
}

Answer RunRoutes::Get(Call& call) {
  CO_TRY_ASSIGN(auto run,
                co_await store_.Read([id = call.params.at("id"), user = call.who.user_id](
                                         Transaction& tx) { return Describe(tx, id, user); }));
  co_return http::Response::Json(200, run);
}

Answer RunRoutes::Change(Call& call, std::function<Status(Transaction&, const RunRow&)> change) {
  std::string id = call.params.at("id"), user = call.who.user_id;
  call.target = id;
  CO_TRY_ASSIGN(auto run, co_await store_.Write([=](Transaction& tx) -> Result<json::object> {
    TRY_ASSIGN(RunRow row, NeedOwn(tx, id, user));
    TRY(change(tx, row));
    return Describe(tx, id, user);
  }));
  flow_.Wake();
  co_return http::Response::Json(200, run);
}

Answer RunRoutes::Retry(Call& call) {
  std::string step = work::TextOf(call.body, "step");
  return Change(call, [this, step](Transaction& tx, const RunRow& run) {
    return flow_.Redrive(tx, run.id, step);
  });
}

Answer RunRoutes::Cancel(Call& call) {
  std::string reason = work::TextOf(call.body, "reason");
  return Change(call, [this, reason](Transaction& tx, const RunRow& run) -> Status {
    TRY_ASSIGN(bool asked, flow_.Cancel(tx, run.id, reason));
    if (!asked && !run.cancel_at)
      return Fail(Code::kFailedPrecondition, "The run has ended already: it is {}.", run.state);
    return {};
  });
}

Answer RunRoutes::Signal(Call& call) {
  std::string key = work::TextOf(call.body, "key");
  const json::value* value = call.body.if_contains("data");
  json::object data = value && value->is_object() ? value->get_object() : json::object();
  return Change(call, [this, key, data](Transaction& tx, const RunRow& run) -> Status {
    std::string wanted = key.empty() ? flow::Engine::UserKey(run.id) : key;
    TRY(CheckKey(tx, run, wanted));
    if (run.finished_at)
      return Fail(Code::kFailedPrecondition, "The run has ended already: it is {}.", run.state);
    TRY(flow_.Signal(tx, wanted, data));
    return {};
  });
}

void RunRoutes::Add(Frame& frame) {
  frame.AddSchema("Step", kStep);
  frame.AddSchema("Run", kRun);
  frame.AddSchema("RunList", ListSchema("runs", "Run"));
  frame.AddSchema("RunRetry", R"({"type":"object","properties":{
    "step":{"type":"string","maxLength":200}}})");
  frame.AddSchema("RunCancel", R"({"type":"object","properties":{
    "reason":{"type":"string","maxLength":1000}}})");
  frame.AddSchema("RunSignal", R"({"type":"object","properties":{
    "key":{"type":"string","maxLength":500},"data":{"type":"object"}}})");
  frame.Add({.method = "GET",
             .pattern = "/api/v1/runs",
             .tag = "runs",
             .id = "listRuns",
             .summary = "Runs, newest first",
             .access = Access::kViewer,
             .parameters = WithPage({{.name = "state",
                                      .description = "only those in this state",
                                      .values = kStates,
                                      .repeated = true},
                                     {.name = "task_id", .description = "of this task"},
                                     {.name = "definition", .description = "of this workflow"},
                                     kAllParameter}),
             .responses = {{200, "RunList"}},
             .handler = Bind(&RunRoutes::List)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/runs/{id}",
             .tag = "runs",
             .id = "getRun",
             .summary = "One run with its steps",
             .access = Access::kViewer,
             .responses = {{200, "Run"}},
             .handler = Bind(&RunRoutes::Get)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/runs/{id}/retry",
             .tag = "runs",
             .id = "retryRun",
             .summary = "A dead or failed run goes on, where it stopped or at a step",
             .request = "RunRetry",
             .body_optional = true,
             .responses = {{200, "Run"}, {409, "Error"}},
             .handler = Bind(&RunRoutes::Retry)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/runs/{id}/cancel",
             .tag = "runs",
             .id = "cancelRun",
             .summary = "Asks a run to stop; what must be cleaned up still is",
             .request = "RunCancel",
             .body_optional = true,
             .responses = {{200, "Run"}, {409, "Error"}},
             .handler = Bind(&RunRoutes::Cancel)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/runs/{id}/signal",
             .tag = "runs",
             .id = "signalRun",
             .summary = "Answers a run that waits, by default for its user",
             .request = "RunSignal",
             .body_optional = true,
             .responses = {{200, "Run"}, {409, "Error"}},
             .handler = Bind(&RunRoutes::Signal)});
}

}  // namespace caisson::api
