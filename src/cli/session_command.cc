#include "cli/session_command.h"

#include "base/encoding.h"
#include "cli/answers.h"
#include "cli/table.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;

// So often the server is asked for an answer that is being written.
constexpr std::chrono::milliseconds kLook{300};

std::string PathOf(const std::string& id) { return "/api/v1/sessions/" + PercentEncode(id); }

bool HasEnded(const json::value& message) {
  std::string state = Text(message, "state");
  return state != "queued" && state != "running";
}

// A message as people read it: who, when, what.
std::string Shown(const json::value& message) {
  std::string text =
      fmt::format("{} ({}{}):\n", Text(message, "role"), Age(message, "created_at"),
                  Text(message, "state") == "done" ? "" : ", " + Text(message, "state"));
  text += Printable(Text(message, "content")) + "\n";
  if (std::string error = Text(message, "error"); !error.empty())
    text += "! " + Printable(error) + "\n";
  return text + "\n";
}

class Runner {
 public:
  Runner(ApiClient& client, bool as_json) : client_(client), json_(as_json) {}

  Task<Result<int>> Run(CreateSession create) {
    json::object body;
    if (!create.title.empty()) body["title"] = create.title;
    if (!create.repo.empty()) body["repo_url"] = create.repo;
    if (!create.base.empty()) body["base_branch"] = create.base;
    if (!create.model.empty()) body["model"] = create.model;
    if (!create.agent.empty()) {
      CO_TRY_ASSIGN(std::string agent, co_await FindAgent(client_, create.agent));
      body["agent_id"] = agent;
    }
    CO_TRY_ASSIGN(auto made, co_await client_.Call("POST", "/api/v1/sessions", body));
    Tell(made.body, Text(made.body, "id") + "\n");
    co_return 0;
  }

  Task<Result<int>> Run(ListSessions list) {
    std::string query = "?limit=200";
    if (!list.status.empty()) query += "&status=" + PercentEncode(list.status);
    if (!list.text.empty()) query += "&text=" + PercentEncode(list.text);
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/api/v1/sessions" + query));
    Rows rows;
    for (const json::value& one : List(answer.body, "sessions"))
      rows.push_back({Text(one, "id"), Text(one, "status"), Age(one, "last_used_at"),
                      std::to_string(Number(one, "queued")), Text(one, "title")});
    Tell(answer.body, rows.empty()
                          ? "There are no sessions. Begin one with: caisson session create\n"
                          : FormatTable({"ID", "STATUS", "USED", "WAITING", "TITLE"}, rows));
    co_return 0;
  }

  Task<Result<int>> Run(SendMessage send) {
    json::object body{{"text", send.text}, {"mode", send.plan ? "plan" : "build"}};
    CO_TRY_ASSIGN(auto sent, co_await client_.Call("POST", PathOf(send.id) + "/messages", body));
    json::value answer = sent.body.at("answer");
    if (!send.wait) {
      Tell(sent.body, Text(answer, "id") + "\n");
      co_return 0;
    }
    CO_TRY_ASSIGN(answer, co_await Wait(send.id, answer));
    std::string error = Text(answer, "error");
    Tell(answer, Printable(Text(answer, "content")) + "\n" +
                     (error.empty() ? "" : "! " + Printable(error) + "\n"));
    co_return Text(answer, "state") == "done" ? 0 : 1;
  }

  Task<Result<int>> Run(StopAnswer stop) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", PathOf(stop.id) + "/stop",
                                                     json::object{{"all", stop.all}}));
    Tell(answer.body, Text(answer.body, "id") + "\n");
    co_return 0;
  }

  Task<Result<int>> Run(ShowHistory show) {
    CO_TRY_ASSIGN(auto answer,
                  co_await client_.Call(
                      "GET", fmt::format("{}/messages?limit={}", PathOf(show.id), show.limit)));
    std::string text;
    for (const json::value& message : List(answer.body, "messages")) text += Shown(message);
    Tell(answer.body, text);
    co_return 0;
  }

  Task<Result<int>> Run(PauseSession pause) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", PathOf(pause.id) + "/sandbox/pause"));
    Tell(answer.body, Text(answer.body, "sandboxId") + "\n");
    co_return 0;
  }

  Task<Result<int>> Run(DeleteSessions remove) {
    for (const std::string& id : remove.ids) {
      CO_TRY(co_await client_.Call("DELETE", PathOf(id)));
      if (!json_) Print(id + "\n");
    }
    co_return 0;
  }

 private:
  void Tell(const json::value& body, const std::string& text) {
    if (json_)
      PrintJson(body);
    else
      Print(text);
  }

  // The answer at its end. Whoever runs the agent ends it at its time.
  Task<Result<json::value>> Wait(std::string id, json::value answer) {
    while (!HasEnded(answer)) {
      co_await SleepFor(kLook);
      std::string page =
          fmt::format("{}/messages?limit=1&before={}", PathOf(id), Number(answer, "seq") + 1);
      CO_TRY_ASSIGN(auto now, co_await client_.Call("GET", page));
      json::array messages = List(now.body, "messages");
      if (messages.empty()) co_return Fail(Code::kNotFound, "the message is gone");
      answer = messages.front();
    }
    co_return answer;
  }

  ApiClient& client_;
  bool json_;
};

}  // namespace

int RunSessionCommand(const SessionCommand& command) {
  return RunClient(command.server, [&command](ApiClient& client) -> Task<Result<int>> {
    Runner runner(client, command.json);
    co_return co_await std::visit([&](const auto& action) { return runner.Run(action); },
                                  command.action);
  });
}

}  // namespace caisson::cli
