#include "work/loop_tools.h"

#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "work/json_fields.h"
#include "work/loop_plan.h"
#include "work/loop_text.h"

namespace caisson::work {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxFile = 4 << 20;
constexpr size_t kMaxOutput = 256 << 10;
constexpr size_t kMaxFound = 4 << 20;
constexpr size_t kMaxArguments = 1 << 20;
constexpr int kNoBrowser = 3;  // of the script

constexpr std::string_view kDefinitions = R"json([
{"name":"read_file","description":"Reads a text file. Long files: use offset and limit.",
 "parameters":{"type":"object","required":["path"],"properties":{
  "path":{"type":"string"},"offset":{"type":"integer","description":"first line, from 1"},
  "limit":{"type":"integer","description":"number of lines"}}}},
{"name":"write_file","description":"Writes a whole file. Folders are made.",
 "parameters":{"type":"object","required":["path","content"],"properties":{
  "path":{"type":"string"},"content":{"type":"string"}}}},
{"name":"edit_file","description":"Replaces old by new; old must occur exactly once.",
 "parameters":{"type":"object","required":["path","old","new"],"properties":{
  "path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"}}}},
{"name":"bash","description":"Runs a shell command in the working directory.",
 "parameters":{"type":"object","required":["command"],"properties":{
  "command":{"type":"string"},
  "timeout_s":{"type":"integer","description":"for one that takes long"}}}},
{"name":"grep","description":"Lines that match an extended regular expression.",
 "parameters":{"type":"object","required":["pattern"],"properties":{
  "pattern":{"type":"string"},"path":{"type":"string"}}}},
{"name":"glob","description":"Files whose path matches; ** stands for any folders.",
 "parameters":{"type":"object","required":["pattern"],"properties":{
  "pattern":{"type":"string"}}}},
{"name":"take_screenshot","description":"A picture of a web page as a file in /tmp.",
 "parameters":{"type":"object","required":["url"],"properties":{"url":{"type":"string"}}}},
{"name":"narrate","description":"Tells the user in one sentence what you do and why.",
 "parameters":{"type":"object","required":["message"],"properties":{
  "message":{"type":"string"}}}},
{"name":"update_plan","description":"Tells the user your whole plan and how far each step is.",
 "parameters":{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object",
  "required":["title","status"],"properties":{"title":{"type":"string"},
   "status":{"type":"string","enum":["pending","in_progress","completed","failed"]},
   "files_to_modify":{"type":"array","items":{"type":"string"}}}}}}}}
])json";

constexpr std::string_view kShell = R"sh(
command -v bash >/dev/null 2>&1 && exec bash -c "$1"
exec sh -c "$1"
)sh";

// $1: where to, $2: the page.
constexpr std::string_view kShoot = R"sh(
for one in chromium chromium-browser google-chrome; do
  command -v $one >/dev/null 2>&1 && browser=$one && break
done
[ -n "$browser" ] || exit 3
exec "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
  --window-size=1280,800 --timeout=10000 --screenshot="$1" "$2"
)sh";

ToolOutcome Wrong(std::string type, std::string message) {
  return {.text = "error: " + message, .error_type = std::move(type), .error = std::move(message)};
}

// Lost connections are for the caller; everything else is for the model.
bool IsLost(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kCanceled;
}

Result<ToolOutcome> Told(std::string type, const Error& error) {
  if (IsLost(error)) return tl::unexpected(error);
  return Wrong(std::move(type), error.message());
}

// stderr is never cut, beyond what is taken from a command at all.
ToolOutcome OutcomeOf(const sdk::CommandResult& result) {
  if (result.timed_out)
    return Wrong("timeout", fmt::format("the command was ended after its time\nstdout:\n{}\n"
                                        "stderr:\n{}",
                                        CutResult(result.stdout_text), result.stderr_text));
  ToolOutcome outcome{.text =
                          fmt::format("exit_code: {}\nstdout:\n{}\nstderr:\n{}", result.exit_code,
                                      CutResult(result.stdout_text), result.stderr_text)};
  if (result.exit_code == 0) return outcome;
  outcome.error_type = "exit";
  outcome.error = result.stderr_text.empty() ? CutResult(result.stdout_text) : result.stderr_text;
  return outcome;
}

Status CheckFields(const std::string& name, const json::object& input) {
  for (const json::value& tool : ToolDefinitions()) {
    const json::object& function = ObjectIn(tool.as_object(), "function");
    if (TextOf(function, "name") != name) continue;
    for (const std::string& field : TextsOf(ObjectIn(function, "parameters"), "required"))
      if (const json::value* value = input.if_contains(field); !value || !value->is_string())
        return Fail(Code::kInvalidArgument, "{} needs the text '{}'", name, field);
    return {};
  }
  return Fail(Code::kInvalidArgument, "there is no tool '{}'", name);
}

}  // namespace

const json::array& ToolDefinitions() {
  static const json::array kTools = [] {
    json::array tools;
    const json::value all = json::parse(kDefinitions);
    for (const json::value& function : all.as_array())
      tools.push_back({{"type", "function"}, {"function", function}});
    return tools;
  }();
  return kTools;
}

Result<std::string> ReplaceOnce(std::string_view text, std::string_view old_text,
                                std::string_view new_text) {
  if (old_text.empty()) return Fail(Code::kInvalidArgument, "old is empty");
  size_t at = text.find(old_text);
  if (at == text.npos)
    return Fail(Code::kInvalidArgument, "old does not occur in the file; read it again");
  if (text.find(old_text, at + 1) != text.npos)
    return Fail(Code::kInvalidArgument, "old occurs more than once; give more of what is around");
  std::string changed(text);
  return changed.replace(at, old_text.size(), new_text);
}

std::string LinesOf(std::string_view text, int64_t from, int64_t count) {
  for (; from > 1 && !text.empty(); --from) {
    size_t end = text.find('\n');
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  if (count <= 0) return std::string(text);
  size_t size = 0;
  for (; count > 0 && size < text.size(); --count) {
    size_t end = text.find('\n', size);
    size = end == text.npos ? text.size() : end + 1;
  }
  return std::string(text.substr(0, size));
}

Task<Result<ToolOutcome>> LoopTools::Run(ToolCall call, milliseconds left) {
  if (call.arguments.size() > kMaxArguments)
    co_return Wrong("arguments", fmt::format("the arguments are larger than {} bytes; write less "
                                             "at a time",
                                             kMaxArguments));
  boost::system::error_code ec;
  json::value value = json::parse(call.arguments.empty() ? "{}" : call.arguments, ec);
  if (ec || !value.is_object()) co_return Wrong("arguments", "the arguments are no JSON object");
  json::object input = std::move(value.get_object());
  if (Status fields = CheckFields(call.name, input); !fields)
    co_return Wrong("arguments", fields.error().message());
  milliseconds most = std::min<milliseconds>(limits_.tool_timeout, left);
  if (call.name == "bash") most = left;
  auto outcome = co_await WithDeadline(most + std::chrono::seconds(10), "a tool",
                                       Do(call.name, std::move(input), most));
  if (!outcome) co_return Told(call.name, outcome.error());
  co_return outcome;
}

Task<Result<ToolOutcome>> LoopTools::Do(std::string name, Input input, milliseconds left) {
  if (name == "read_file") co_return co_await Read(std::move(input));
  if (name == "write_file") co_return co_await Write(std::move(input));
  if (name == "edit_file") co_return co_await Edit(std::move(input));
  if (name == "bash") co_return co_await Bash(std::move(input), left);
  if (name == "grep") co_return co_await Grep(std::move(input), left);
  if (name == "glob") co_return co_await Glob(std::move(input), left);
  if (name == "take_screenshot") co_return co_await Screenshot(std::move(input), left);
  if (name == "narrate") co_return ToolOutcome{.text = "ok", .said = TextOf(input, "message")};
  CO_TRY_ASSIGN(json::array plan, ReadPlan(input));
  co_return ToolOutcome{.text = "ok", .plan = std::move(plan)};
}

Task<Result<std::string>> LoopTools::ReadText(std::string path) {
  CO_TRY_ASSIGN(std::string text, co_await envd_.ReadFile(path, kMaxFile));
  if (text.find('\0') != text.npos || ToUtf8(text) != text)
    co_return Fail(Code::kInvalidArgument, "{} is no text file", path);
  co_return text;
}

Task<Result<ToolOutcome>> LoopTools::Read(Input input) {
  CO_TRY_ASSIGN(std::string path, ToolPath(workdir_, TextOf(input, "path")));
  CO_TRY_ASSIGN(std::string text, co_await ReadText(path));
  co_return ToolOutcome{
      .text = CutResult(LinesOf(text, IntOf(input, "offset"), IntOf(input, "limit")))};
}

Task<Result<ToolOutcome>> LoopTools::Write(Input input) {
  CO_TRY_ASSIGN(std::string path, ToolPath(workdir_, TextOf(input, "path")));
  CO_TRY(co_await envd_.WriteFile(path, TextOf(input, "content")));
  co_return ToolOutcome{.text = "written", .changed = TextOf(input, "path")};
}

Task<Result<ToolOutcome>> LoopTools::Edit(Input input) {
  CO_TRY_ASSIGN(std::string path, ToolPath(workdir_, TextOf(input, "path")));
  CO_TRY_ASSIGN(std::string text, co_await ReadText(path));
  CO_TRY_ASSIGN(std::string changed, ReplaceOnce(text, TextOf(input, "old"), TextOf(input, "new")));
  CO_TRY(co_await envd_.WriteFile(path, std::move(changed)));
  co_return ToolOutcome{.text = "changed", .changed = TextOf(input, "path")};
}

Task<Result<sdk::CommandResult>> LoopTools::Execute(std::vector<std::string> argv,
                                                    milliseconds timeout) {
  sdk::Command command;
  command.argv = std::move(argv);
  command.cwd = workdir_;
  command.env = env_;
  command.timeout = timeout;
  command.max_output = kMaxOutput;
  command.tag = tag_;
  co_return co_await envd_.Run(std::move(command));
}

Task<Result<ToolOutcome>> LoopTools::Bash(Input input, milliseconds left) {
  milliseconds timeout = limits_.tool_timeout;
  if (int64_t asked = IntOf(input, "timeout_s"); asked > 0)
    timeout = std::chrono::seconds(std::min<int64_t>(asked, limits_.bash_timeout.count()));
  CO_TRY_ASSIGN(auto result, co_await Execute({"/bin/sh", "-c", std::string(kShell), "sh",
                                               TextOf(input, "command")},
                                              std::min(timeout, left)));
  co_return OutcomeOf(result);
}

Task<Result<ToolOutcome>> LoopTools::Grep(Input input, milliseconds left) {
  std::string path = TextOf(input, "path");
  CO_TRY_ASSIGN(path, ToolPath(workdir_, path.empty() ? "." : path));
  CO_TRY_ASSIGN(auto result, co_await Execute({"grep", "-rnIE", "--exclude-dir=.git", "-e",
                                               TextOf(input, "pattern"), "--", path},
                                              left));
  if (result.exit_code == 1 && !result.timed_out)
    co_return ToolOutcome{.text = "exit_code: 1\nnothing matches"};
  co_return OutcomeOf(result);
}

Task<Result<ToolOutcome>> LoopTools::Glob(Input input, milliseconds left) {
  std::string pattern = TextOf(input, "pattern");
  sdk::Command find;
  find.argv = {"find", ".", "-name", ".git", "-prune", "-o", "-type", "f", "-print"};
  find.cwd = workdir_;
  find.timeout = left;
  find.max_output = kMaxFound;
  find.tag = tag_;
  CO_TRY_ASSIGN(auto result, co_await envd_.Run(std::move(find)));
  if (result.exit_code != 0 && result.stdout_text.empty()) co_return OutcomeOf(result);
  std::string found;
  for (std::string_view path : Split(result.stdout_text, '\n')) {
    if (!path.starts_with("./")) continue;
    path.remove_prefix(2);
    if (MatchesGlob(pattern, path)) found += std::string(path) + "\n";
  }
  co_return ToolOutcome{.text = found.empty() ? "nothing matches" : CutResult(found)};
}

Task<Result<ToolOutcome>> LoopTools::Screenshot(Input input, milliseconds left) {
  std::string url = TextOf(input, "url");
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    co_return Wrong("arguments", "the URL must begin with http:// or https://");
  std::string file = fmt::format("/tmp/screenshot-{}.png", ShortHash(url));
  CO_TRY_ASSIGN(auto result,
                co_await Execute({"/bin/sh", "-c", std::string(kShoot), "sh", file, url}, left));
  if (result.exit_code == kNoBrowser)
    co_return Wrong("no_browser", "there is no browser in this sandbox; go on without pictures");
  ToolOutcome outcome = OutcomeOf(result);
  if (outcome.error_type.empty()) outcome.text = "exit_code: 0\nthe picture is " + file;
  co_return outcome;
}

Task<Status> LoopTools::EndLeftovers() {
  CO_TRY_ASSIGN(auto processes, co_await envd_.ListProcesses());
  for (const sdk::ProcessInfo& one : processes)
    if (one.tag == tag_)
      if (Status ended = co_await envd_.Kill(one.pid);
          !ended && ended.error().code() != Code::kNotFound)
        co_return ended;
  co_return Status();
}

}  // namespace caisson::work
