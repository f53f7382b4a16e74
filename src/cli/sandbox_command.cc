#include "cli/sandbox_command.h"

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>

#include "base/encoding.h"
#include "base/file.h"
#include "base/time.h"
#include "cli/api_client.h"
#include "cli/exec.h"
#include "cli/shell.h"
#include "cli/table.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;

constexpr size_t kMaxFile = 1 << 30;  // of a file for `run`; the server has a limit of its own

void Print(std::string_view text) { fwrite(text.data(), 1, text.size(), stdout); }
void PrintJson(const json::value& value) { Print(json::serialize(value) + "\n"); }

// Fields of answers, lenient: a newer or older server may leave some out.
std::string Text(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}
double Number(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  boost::system::error_code ec;
  return value ? value->to_number<double>(ec) : 0;
}
std::vector<json::object> Objects(const json::value& value) {
  std::vector<json::object> objects;
  if (value.is_array())
    for (const json::value& item : value.as_array())
      if (item.is_object()) objects.push_back(item.as_object());
  return objects;
}
json::object AsObject(const json::value& value) {
  return value.is_object() ? value.as_object() : json::object();
}
json::object ToObject(const StringMap& map) {
  json::object object;
  for (const auto& [name, value] : map) object[name] = value;
  return object;
}

std::string Labels(const json::object& sandbox) {
  std::string text;
  const auto* metadata = sandbox.if_contains("metadata");
  if (metadata && metadata->is_object())
    for (const auto& [name, value] : metadata->as_object())
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", std::string_view(name),
                          value.is_string() ? std::string_view(value.as_string()) : "");
  return text;
}

// How far a moment of an answer is from now, without its sign.
std::string Distance(const json::object& sandbox, std::string_view name) {
  auto time = ParseTime(Text(sandbox, name));
  if (!time) return "?";
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*time - Now()).count();
  return FormatDuration(seconds < 0 ? -seconds : seconds);
}

std::string NameOf(const json::object& sandbox) {
  std::string alias = Text(sandbox, "alias");
  return alias.empty() ? Text(sandbox, "templateID") : alias;
}

class Runner {
 public:
  Runner(ApiClient& client, bool as_json) : client_(client), json_(as_json) {}

  Task<Result<int>> Run(CreateSandbox create) {
    CO_TRY_ASSIGN(auto made, co_await Make(create));
    if (json_)
      PrintJson(made.body);
    else
      Print(Text(AsObject(made.body), "sandboxID") + "\n");
    co_return 0;
  }

  Task<Result<int>> Run(ListSandboxes) {
    CO_TRY_ASSIGN(auto listed, co_await ListAll());
    if (json_) {
      PrintJson(json::array(listed.begin(), listed.end()));
      co_return 0;
    }
    std::vector<std::vector<std::string>> rows;
    for (const json::object& sandbox : listed)
      rows.push_back({Text(sandbox, "sandboxID"), NameOf(sandbox), Text(sandbox, "state"),
                      Distance(sandbox, "startedAt"),
                      Text(sandbox, "state") == "paused" ? "-" : Distance(sandbox, "endAt"),
                      Labels(sandbox)});
    if (rows.empty())
      Print("There are no sandboxes. Make one with: caisson sandbox create\n");
    else
      Print(FormatTable({"ID", "TEMPLATE", "STATE", "AGE", "ENDS IN", "METADATA"}, rows));
    co_return 0;
  }

  Task<Result<int>> Run(ShowSandbox show) {
    CO_TRY_ASSIGN(json::object sandbox, co_await Get(show.id));
    if (json_) {
      PrintJson(sandbox);
      co_return 0;
    }
    std::vector<std::vector<std::string>> rows = {
        {Text(sandbox, "sandboxID")},
        {NameOf(sandbox)},
        {Text(sandbox, "state")},
        {fmt::format("{} ({} ago)", Text(sandbox, "startedAt"), Distance(sandbox, "startedAt"))},
        {Text(sandbox, "state") == "paused"
             ? fmt::format("paused {} ago", Distance(sandbox, "endAt"))
             : fmt::format("{} (in {})", Text(sandbox, "endAt"), Distance(sandbox, "endAt"))},
        {fmt::format("{} CPUs, {} MB memory, {} MB disk", Number(sandbox, "cpuCount"),
                     Number(sandbox, "memoryMB"), Number(sandbox, "diskSizeMB"))},
        {Labels(sandbox)},
        {HostOf(sandbox, "PORT")}};
    constexpr std::array kNames = {"sandbox", "template", "state",    "started",
                                   "ends",    "size",     "metadata", "previews"};
    for (size_t i = 0; i < rows.size(); ++i)
      Print(fmt::format("{:10}{}\n", kNames[i], Printable(rows[i][0])));
    co_return 0;
  }

  Task<Result<int>> Run(ExecInSandbox exec) { co_return co_await Exec(client_, std::move(exec)); }

  Task<Result<int>> Run(ShellInSandbox shell) {
    co_return co_await Shell(client_, std::move(shell));
  }

  // Ends the sandbox whatever became of the command; should this program be killed, its time ends.
  Task<Result<int>> Run(RunInSandbox run) {
    CO_TRY_ASSIGN(auto made, co_await Make(run.create));
    run.exec.id = Text(AsObject(made.body), "sandboxID");
    Result<int> status = co_await FillAndExec(run);
    auto ended = co_await client_.Call("DELETE", "/sandboxes/" + PercentEncode(run.exec.id));
    if (!ended && ended.error().code() != Code::kNotFound)
      fmt::print(stderr, "caisson: the sandbox {} was not ended: {}\n", run.exec.id,
                 ended.error().message());
    co_return status;
  }

  Task<Result<int>> Run(KillSandboxes kill) {
    if (kill.all) {
      CO_TRY_ASSIGN(auto listed, co_await ListAll());
      for (const json::object& sandbox : listed) kill.ids.push_back(Text(sandbox, "sandboxID"));
    }
    int status = 0;
    for (const std::string& id : kill.ids) {
      auto killed = co_await client_.Call("DELETE", "/sandboxes/" + PercentEncode(id));
      if (killed) {
        if (!json_) Print(id + "\n");
        continue;
      }
      // With --all, one that ended by itself in the meantime is what was wanted.
      if (kill.all && killed.error().code() == Code::kNotFound) continue;
      fmt::print(stderr, "caisson: {}: {}\n", Printable(id), killed.error().message());
      status = 1;
    }
    co_return status;
  }

  Task<Result<int>> Run(ShowLogs show) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", fmt::format("/sandboxes/{}/logs",
                                                                        PercentEncode(show.id))));
    json::object logs = AsObject(answer.body);
    if (json_) {
      PrintJson(answer.body);
      co_return 0;
    }
    for (const json::object& entry : Objects(logs["logEntries"]))
      Print(fmt::format("{}  {:5}  {}\n", Text(entry, "timestamp"), Text(entry, "level"),
                        Printable(Text(entry, "message"))));
    co_return 0;
  }

  Task<Result<int>> Run(ShowTimeline show) {
    json::array all;
    int64_t after = 0;
    do {
      CO_TRY_ASSIGN(auto page,
                    co_await client_.Call(
                        "GET", fmt::format("/api/v1/sandboxes/{}/timeline?limit=1000&after={}",
                                           PercentEncode(show.id), after)));
      json::object body = AsObject(page.body);
      for (json::object& event : Objects(body["events"])) all.push_back(std::move(event));
      after = static_cast<int64_t>(Number(body, "next"));
    } while (after > 0);
    if (json_) {
      PrintJson(all);
      co_return 0;
    }
    for (const json::object& event : Objects(all))
      Print(fmt::format("{}  {:5}  {:18}  {}\n", Text(event, "at"), Text(event, "level"),
                        Printable(Text(event, "type")), Printable(Text(event, "message"))));
    co_return 0;
  }

  Task<Result<int>> Run(SaveDiagnostics save) {
    CO_TRY_ASSIGN(auto answer,
                  co_await client_.Call("GET", fmt::format("/api/v1/sandboxes/{}/diagnostics",
                                                           PercentEncode(save.id))));
    if (save.file.empty())
      PrintJson(answer.body);
    else
      CO_TRY(WriteFileAtomic(save.file, json::serialize(answer.body) + "\n", 0600));
    co_return 0;
  }

  Task<Result<int>> Run(ShowMetrics show) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", fmt::format("/sandboxes/{}/metrics",
                                                                        PercentEncode(show.id))));
    if (json_) {
      PrintJson(answer.body);
      co_return 0;
    }
    auto bytes = [](const json::object& sample, std::string_view name) {
      return FormatBytes(static_cast<int64_t>(Number(sample, name)));
    };
    std::vector<std::vector<std::string>> rows;
    for (const json::object& sample : Objects(answer.body))
      rows.push_back(
          {Text(sample, "timestamp"), fmt::format("{:.1f} %", Number(sample, "cpuUsedPct")),
           bytes(sample, "memUsed") + " of " + bytes(sample, "memTotal"), bytes(sample, "memCache"),
           bytes(sample, "diskUsed") + " of " + bytes(sample, "diskTotal")});
    Print(FormatTable({"TIME", "CPU", "MEMORY", "CACHE", "DISK"}, rows));
    co_return 0;
  }

  Task<Result<int>> Run(ShowUrl show) {
    CO_TRY_ASSIGN(json::object sandbox, co_await Get(show.id));
    std::string url = HostOf(sandbox, std::to_string(show.port));
    if (json_)
      PrintJson(json::object{{"url", url}});
    else
      Print(url + "\n");
    co_return 0;
  }

  Task<Result<int>> Run(PauseSandbox pause) {
    CO_TRY(co_await client_.Call("POST", PathOf(pause.id, "pause"),
                                 json::object{{"memory", pause.memory}}));
    co_return PrintName(pause.id, "sandboxID");
  }

  Task<Result<int>> Run(ResumeSandbox resume) {
    json::object body{{"timeout", resume.timeout_s}, {"memory", resume.memory}};
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", PathOf(resume.id, "connect"), body));
    if (json_) PrintJson(answer.body);
    co_return json_ ? 0 : PrintName(resume.id, "sandboxID");
  }

  Task<Result<int>> Run(ForkSandbox fork) {
    json::object body{{"timeout", fork.timeout_s}, {"count", fork.count}};
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", PathOf(fork.id, "fork"), body));
    if (json_) PrintJson(answer.body);
    int status = 0;
    for (json::object& one : Objects(answer.body)) {
      if (one.contains("sandbox")) {
        if (!json_) Print(Text(AsObject(one["sandbox"]), "sandboxID") + "\n");
        continue;
      }
      fmt::print(stderr, "caisson: {}\n", Printable(Text(AsObject(one["error"]), "message")));
      status = 1;
    }
    co_return status;
  }

  Task<Result<int>> Run(MakeSnapshot snapshot) {
    json::object body;
    if (!snapshot.name.empty()) body["name"] = snapshot.name;
    CO_TRY_ASSIGN(auto made, co_await client_.Call("POST", PathOf(snapshot.id, "snapshots"), body));
    if (json_) PrintJson(made.body);
    co_return json_ ? 0 : PrintName(Text(AsObject(made.body), "snapshotID"), "snapshotID");
  }

  Task<Result<int>> Run(ListSnapshots list) {
    std::string filter =
        list.sandbox_id.empty() ? "" : "&sandboxID=" + PercentEncode(list.sandbox_id);
    CO_TRY_ASSIGN(auto snapshots, co_await AllPages("/snapshots?limit=100" + filter));
    if (json_) {
      PrintJson(json::array(snapshots.begin(), snapshots.end()));
      co_return 0;
    }
    for (const json::object& one : snapshots) Print(Printable(Text(one, "snapshotID")) + "\n");
    if (snapshots.empty())
      Print("There are no snapshots. Make one with: caisson sandbox snapshot ID\n");
    co_return 0;
  }

  Task<Result<int>> Run(DeleteSnapshots remove) {
    for (const std::string& id : remove.ids) {
      CO_TRY(co_await client_.Call("DELETE", "/templates/" + PercentEncode(id)));
      if (!json_) Print(id + "\n");
    }
    co_return 0;
  }

  Task<Result<int>> Run(DrainServer drain) {
    if (drain.end) {
      CO_TRY(co_await client_.Call("DELETE", "/api/v1/drain"));
      co_return 0;
    }
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", "/api/v1/drain"));
    json::object drained = AsObject(answer.body);
    auto failed = Objects(drained["failed"]);
    if (json_)
      PrintJson(answer.body);
    else
      Print(fmt::format("{} sandboxes paused, {} could not be paused\n", Number(drained, "paused"),
                        failed.size()));
    for (const json::object& one : failed)
      fmt::print(stderr, "caisson: {}: {}\n", Text(one, "sandboxID"),
                 Printable(Text(one, "message")));
    co_return failed.empty() ? 0 : 1;
  }

 private:
  static std::string PathOf(const std::string& id, std::string_view action) {
    return fmt::format("/sandboxes/{}/{}", PercentEncode(id), action);
  }
  int PrintName(const std::string& name, std::string_view field) const {
    if (json_)
      PrintJson(json::object{{field, name}});
    else
      Print(Printable(name) + "\n");
    return 0;
  }

  Task<Result<ApiClient::Answer>> Make(const CreateSandbox& create) {
    json::object body{{"templateID", create.template_name},
                      {"timeout", create.timeout_s},
                      {"metadata", ToObject(create.metadata)},
                      {"envVars", ToObject(create.env)},
                      {"allow_internet_access", create.internet},
                      {"autoPause", create.auto_pause},
                      {"autoResume", {{"enabled", create.auto_resume}}}};
    co_return co_await client_.Call("POST", "/v2/sandboxes", body);
  }

  Task<Result<int>> FillAndExec(const RunInSandbox& run) {
    for (const std::string& file : run.files) {
      size_t colon = file.find(':');
      std::string local = file.substr(0, colon);
      std::string path =
          colon == file.npos ? local.substr(local.rfind('/') + 1) : file.substr(colon + 1);
      CO_TRY_ASSIGN(std::string content, ReadFile(local, kMaxFile));
      CO_TRY(co_await client_.Put(fmt::format("/api/v1/sandboxes/{}/files?path={}",
                                              PercentEncode(run.exec.id), PercentEncode(path)),
                                  std::move(content)));
    }
    co_return co_await Exec(client_, run.exec);
  }

  Task<Result<json::object>> Get(std::string id) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/sandboxes/" + PercentEncode(id)));
    co_return AsObject(answer.body);
  }

  Task<Result<std::vector<json::object>>> ListAll() { return AllPages("/v2/sandboxes?limit=100"); }

  // Newest first. `path` has a query.
  Task<Result<std::vector<json::object>>> AllPages(std::string path) {
    std::vector<json::object> all;
    std::string token;
    do {
      std::string query = token.empty() ? "" : "&nextToken=" + PercentEncode(token);
      CO_TRY_ASSIGN(auto page, co_await client_.Call("GET", path + query));
      for (json::object& one : Objects(page.body)) all.push_back(std::move(one));
      token = page.next_token;
    } while (!token.empty());
    co_return all;
  }

  std::string HostOf(const json::object& sandbox, const std::string& port) const {
    std::string scheme = client_.url().substr(0, client_.url().find("://"));
    return fmt::format("{}://{}-{}.{}", scheme, port, Text(sandbox, "sandboxID"),
                       Text(sandbox, "domain"));
  }

  ApiClient& client_;
  bool json_;
};

Task<void> RunAction(ApiClient& client, const SandboxCommand& command, Result<int>& result) {
  Runner runner(client, command.json);
  result =
      co_await std::visit([&](const auto& action) { return runner.Run(action); }, command.action);
}

}  // namespace

int RunSandboxCommand(const SandboxCommand& command) {
  auto client = ApiClient::Make(command.server);
  Result<int> result = 0;
  if (client) {
    asio::io_context loop(1);
    bool done = false;
    asio::co_spawn(loop, RunAction(*client, command, result), [&](std::exception_ptr thrown) {
      if (thrown) result = Fail(Code::kInternal, "this command failed in an unexpected way");
      done = true;
    });
    while (!done) loop.run_one();
    fflush(stdout);
    // A thread may still be waiting for input (exec); nothing is left to clean up.
    if (result) _exit(*result);
  } else {
    result = tl::unexpected(client.error());
  }
  fmt::print(stderr, "caisson: {}\n", Printable(result.error().message()));
  fflush(stderr);
  bool runs = std::holds_alternative<ExecInSandbox>(command.action) ||
              std::holds_alternative<ShellInSandbox>(command.action) ||
              std::holds_alternative<RunInSandbox>(command.action);
  _exit(runs ? kExecFailed : 1);
}

}  // namespace caisson::cli
