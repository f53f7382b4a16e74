#include "cli/task_watch.h"

#include <boost/json.hpp>
#include <cstdio>

#include "base/encoding.h"
#include "base/text.h"
#include "cli/event_stream.h"
#include "cli/table.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;

// So often a server that is away is asked again, with growing waits.
constexpr int kAttempts = 30;
constexpr std::chrono::milliseconds kMaxWait{5'000};

std::string Text(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::string Percent(const json::object& event) {
  const json::value* value = event.if_contains("percent");
  return value && value->is_int64() ? fmt::format("[{:>3} %]", value->as_int64()) : "       ";
}

// Each line of what others wrote, with a mark before it.
std::string Marked(std::string_view mark, std::string_view text) {
  std::string lines;
  if (Trim(text).empty()) return lines;
  for (std::string_view line : Split(Trim(text), '\n'))
    lines += fmt::format("{} {}\n", mark, Printable(line));
  return lines;
}

std::string StepText(const json::object& event) {
  std::string state = Text(event, "state"), step = Text(event, "step");
  if (state == "running")
    return fmt::format("{} {:<13} {}\n", Percent(event), Printable(step),
                       Printable(Text(event, "message")));
  if (state == "done") return "";
  if (state == "waiting")
    return fmt::format("        {:<13} waits; see caisson run show\n", Printable(step));
  if (state == "ready" && Text(event, "message").empty()) return "";
  return fmt::format("        {:<13} {}: {}\n", Printable(step), Printable(state),
                     Printable(Text(event, "message")));
}

std::string EndText(const json::object& event) {
  std::string status = Text(event, "status"), url = Text(event, "pull_request_url");
  std::string text = fmt::format("[100 %] {}\n", Printable(status));
  text += Marked("       ", Text(event, "summary"));
  if (status != "succeeded") text += Marked("       ", Text(event, "error"));
  if (!url.empty()) text += fmt::format("        {}\n", Printable(url));
  return text;
}

// What is seen so far.
struct Watched {
  bool as_json = false;
  std::string last_id = "0";
  std::optional<int> status;
};

void Take(Watched& watched, const StreamEvent& event) {
  boost::system::error_code ec;
  json::value data = json::parse(event.data, ec);
  if (ec || !data.is_object() || event.id.empty()) return;
  watched.last_id = event.id;
  if (watched.as_json)
    fmt::print("{}\n", json::serialize(data));
  else
    fmt::print("{}", EventText(data.as_object()));
  fflush(stdout);
  if (event.type == "execution_completed")
    watched.status = Text(data.as_object(), "status") == "succeeded" ? 0 : 1;
}

}  // namespace

std::string EventText(const json::object& event) {
  std::string type = Text(event, "type");
  if (type == "execution_step") return StepText(event);
  if (type == "command_output") return Marked("  |", Text(event, "output"));
  if (type == "error") return Marked("  !", Text(event, "message"));
  if (type == "approval_requested")
    return fmt::format("        a person has to agree: {}\n", Printable(Text(event, "title")));
  if (type == "pr_created")
    return fmt::format("        pull request: {}\n", Printable(Text(event, "pr_url")));
  if (type == "execution_completed") return EndText(event);
  return "";
}

Task<Result<int>> WatchExecution(ApiClient& client, std::string execution_id, bool as_json) {
  Watched watched{.as_json = as_json};
  std::string path = "/api/v1/events?execution_id=" + PercentEncode(execution_id);
  std::chrono::milliseconds wait{200};
  Status last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    EventStreamParser parser;
    std::string before = watched.last_id;
    last = co_await client.Stream(path, {{"Last-Event-ID", watched.last_id}},
                                  [&](std::string_view piece) {
                                    for (const StreamEvent& event : parser.Feed(piece))
                                      if (!watched.status) Take(watched, event);
                                    return !watched.status.has_value();
                                  });
    if (watched.status) co_return *watched.status;
    if (!last && last.error().code() != Code::kUnavailable) break;
    if (before != watched.last_id) {
      attempt = 0;
      wait = std::chrono::milliseconds(200);
    }
    co_await SleepFor(wait);
    wait = std::min(wait * 2, kMaxWait);
  }
  if (!last) co_return tl::unexpected(last.error());
  co_return Fail(Code::kUnavailable, "the stream of events ended before the work did");
}

}  // namespace caisson::cli
