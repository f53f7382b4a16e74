#include "cli/build_command.h"

#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/answers.h"
#include "cli/event_stream.h"
#include "cli/table.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr std::string_view kBuilds = "/api/v1/builds";
constexpr size_t kMaxFile = 1 << 20;
// What tools make; the server makes it again.
const std::set<std::string> kLeftOut = {".git", "node_modules", ".venv", "__pycache__"};

Result<json::object> ReadDirectory(const std::string& directory) {
  json::object files;
  std::error_code ec;
  fs::recursive_directory_iterator it(directory, ec), end;
  if (ec) return Fail(Code::kInvalidArgument, "{}: {}", directory, ec.message());
  for (; it != end; it.increment(ec)) {
    if (ec) return Fail(Code::kInvalidArgument, "{}: {}", directory, ec.message());
    if (kLeftOut.contains(it->path().filename())) {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file(ec)) continue;
    TRY_ASSIGN(std::string content, ReadFile(it->path(), kMaxFile));
    std::string path = fs::relative(it->path(), directory, ec);
    if (ToUtf8(content) != content || content.find('\0') != std::string::npos)
      files[path] = json::object{{"new_content_base64", Base64Encode(content)}};
    else
      files[path] = std::move(content);
  }
  return files;
}

class Runner {
 public:
  Runner(ApiClient& client, bool as_json) : client_(client), json_(as_json) {}

  Task<Result<int>> Run(CreateBuild create) {
    json::object body{{"project", create.project}};
    auto add = [&](std::string_view name, const std::string& text) {
      if (!text.empty()) body[name] = text;
    };
    add("goal", create.goal);
    add("runner", create.runner);
    add("agent_id", create.agent);
    add("parent_id", create.parent);
    if (!create.directory.empty()) {
      CO_TRY_ASSIGN(body["files"], ReadDirectory(create.directory));
    }
    json::object env;
    for (const auto& [name, value] : create.env) env[name] = value;
    if (!env.empty()) body["env"] = std::move(env);
    CO_TRY_ASSIGN(auto made, co_await client_.Call("POST", std::string(kBuilds), body));
    if (!create.watch) co_return Made(made.body);
    co_return co_await Watch(Text(made.body, "id"));
  }

  Task<Result<int>> Run(ListBuilds list) {
    std::string query = "?limit=200";
    if (!list.project.empty()) query += "&project=" + PercentEncode(list.project);
    if (!list.state.empty()) query += "&state=" + PercentEncode(list.state);
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", std::string(kBuilds) + query));
    if (json_) {
      PrintJson(answer.body);
      co_return 0;
    }
    std::vector<std::vector<std::string>> rows;
    for (const json::value& one : List(answer.body, "builds"))
      rows.push_back({Text(one, "id"), Text(one, "project"), Text(one, "build_version"),
                      Text(one, "state"), Text(one, "preview_url")});
    Print(rows.empty() ? "There are no builds. Make one with: caisson build create\n"
                       : FormatTable({"ID", "PROJECT", "VERSION", "STATE", "PREVIEW"}, rows));
    co_return 0;
  }

  Task<Result<int>> Run(ShowBuild show) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", PathOf(show.id)));
    if (json_)
      PrintJson(answer.body);
    else
      Show(answer.body);
    co_return 0;
  }

  Task<Result<int>> Run(ShowBuildLog log) {
    if (log.follow) co_return co_await Watch(log.id);
    std::string text, before;
    for (;;) {
      CO_TRY_ASSIGN(auto page,
                    co_await client_.Call("GET", PathOf(log.id) + "/logs?limit=500" + before));
      std::string part;
      for (const json::value& line : List(page.body, "lines")) part += LineText(line);
      text.insert(0, part);
      const json::object& object = page.body.as_object();
      if (!object.contains("has_more") || !object.at("has_more").as_bool()) break;
      before = "&before_id=" + json::serialize(object.at("oldest_id"));
    }
    Print(text);
    co_return 0;
  }

  Task<Result<int>> Run(RollBackBuild back) {
    CO_TRY_ASSIGN(auto made, co_await client_.Call("POST", PathOf(back.id) + "/rollback",
                                                   json::object{{"version", back.version}}));
    co_return Made(made.body);
  }

  Task<Result<int>> Run(DiffBuild diff) {
    std::string query = diff.against.empty() ? "" : "?against=" + PercentEncode(diff.against);
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", PathOf(diff.id) + "/diff" + query));
    if (json_) PrintJson(answer.body);
    if (!json_)
      for (const json::value& file : List(answer.body, "files"))
        Print(fmt::format("{} {}\n{}", Text(file, "change"), Printable(Text(file, "path")),
                          Text(file, "patch")));
    co_return 0;
  }

  Task<Result<int>> Run(DownloadBuild download) {
    CO_TRY_ASSIGN(std::string archive, co_await client_.Get(PathOf(download.id) + "/archive"));
    if (download.file == "-")
      Print(archive);
    else
      CO_TRY(WriteFileAtomic(download.file, archive, 0644));
    co_return 0;
  }

  Task<Result<int>> Run(CancelBuild cancel) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", PathOf(cancel.id) + "/cancel"));
    co_return Made(answer.body);
  }

  Task<Result<int>> Run(DeleteBuild gone) {
    CO_TRY(co_await client_.Call("DELETE", PathOf(gone.id)));
    co_return 0;
  }

 private:
  static std::string PathOf(const std::string& id) {
    return std::string(kBuilds) + "/" + PercentEncode(id);
  }

  // The id of what was made or changed.
  int Made(const json::value& body) {
    if (json_)
      PrintJson(body);
    else
      Print(Text(body, "id") + "\n");
    return 0;
  }
  static void Show(const json::value& build) {
    for (const char* name :
         {"id", "project", "build_version", "stage_label", "framework", "preview_url",
          "preview_state", "sandbox_expires_at", "error_summary", "debug_id", "goal"})
      if (std::string text = Text(build, name); !text.empty())
        Print(fmt::format("{:20}{}\n", name, Printable(text)));
  }
  std::string LineText(const json::value& line) const {
    if (json_) return json::serialize(line) + "\n";
    const char* mark = Text(line, "source") == "system" ? "" : "  | ";
    return fmt::format("{}{}\n", mark, Printable(Text(line, "text")));
  }

  // The log to its end, then what became of it: 0 if it is ready.
  Task<Result<int>> Watch(std::string id) {
    EventStreamParser parser;
    std::string status;
    Status streamed =
        co_await client_.Stream(PathOf(id) + "/logs/stream", {}, [&](std::string_view piece) {
          for (const StreamEvent& event : parser.Feed(piece)) {
            boost::system::error_code ec;
            json::value data = json::parse(event.data, ec);
            if (!ec && event.type == "log") Print(LineText(data));
            if (!ec && event.type == "done") status = Text(data, "status");
          }
          fflush(stdout);
          return status.empty();
        });
    if (status.empty() && !streamed) co_return tl::unexpected(std::move(streamed).error());
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", PathOf(id)));
    if (json_)
      PrintJson(answer.body);
    else
      Show(answer.body);
    co_return Text(answer.body, "state") == "ready" ? 0 : 1;
  }

  ApiClient& client_;
  bool json_;
};

}  // namespace

int RunBuildCommand(const BuildCommand& command) {
  return RunClient(command.server, [&command](ApiClient& client) -> Task<Result<int>> {
    Runner runner(client, command.json);
    co_return co_await std::visit([&](const auto& action) { return runner.Run(action); },
                                  command.action);
  });
}

}  // namespace caisson::cli
