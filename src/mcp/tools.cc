#include "mcp/tools.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/encoding.h"
#include "work/json_fields.h"

namespace caisson::mcp {
namespace {

using work::TextOf;
using work::TextsOf;

constexpr std::array<std::string_view, 2> kReadingRoles = {"reviewer", "viewer"};

// What all commands have in common.
void CopyCommon(const json::object& from, json::object& to) {
  for (const char* name : {"cwd", "timeout_s"})
    if (const json::value* value = from.if_contains(name)) to[name] = *value;
}

json::object CodeBody(const json::object& arguments) {
  std::string code = TextOf(arguments, "code"), language = TextOf(arguments, "language");
  json::object body;
  if (language == "bash")
    body["command"] = code;
  else if (language == "javascript")
    body["argv"] = {"node", "-e", code};
  else
    body["argv"] = {"python3", "-c", code};
  CopyCommon(arguments, body);
  return body;
}

// By the name of the file; others are programs themselves.
std::string_view InterpreterOf(std::string_view path) {
  if (path.ends_with(".py")) return "python3";
  if (path.ends_with(".js") || path.ends_with(".mjs")) return "node";
  if (path.ends_with(".sh")) return "bash";
  return "";
}

json::object ScriptBody(const json::object& arguments) {
  std::string path = TextOf(arguments, "path");
  json::array argv;
  if (std::string_view interpreter = InterpreterOf(path); !interpreter.empty())
    argv.emplace_back(interpreter);
  argv.emplace_back(path);
  for (const std::string& argument : TextsOf(arguments, "args")) argv.emplace_back(argument);
  json::object body{{"argv", std::move(argv)}};
  CopyCommon(arguments, body);
  return body;
}

json::object PackageBody(const json::object& arguments) {
  std::string manager = TextOf(arguments, "manager");
  json::array argv = {"python3", "-m", "pip", "install", "--no-input"};
  if (manager == "npm") argv = {"npm", "install", "--no-audit", "--no-fund"};
  if (manager == "apt") argv = {"apt-get", "install", "--yes", "--no-install-recommends"};
  for (const std::string& name : TextsOf(arguments, "packages")) argv.emplace_back(name);
  json::object body{{"argv", std::move(argv)}};
  if (manager == "apt") body["user"] = "root";
  CopyCommon(arguments, body);
  return body;
}

#define REPO R"("repo":{"type":"string","description":"OWNER/NAME, if the sandbox has several"})"
#define COMMON                                                           \
  R"("cwd":{"type":"string","description":"the directory it runs in"},)" \
  R"("timeout_s":{"type":"number","minimum":0.001,"maximum":86400})"

constexpr std::array kTools = {
    Tool{.name = "git_clone",
         .description = "Clone a repository into the sandbox; one that is there is brought up to "
                        "date. Credentials are the server's and never enter the sandbox.",
         .operation = "gitClone",
         .properties = R"({"repo_url":{"type":"string","minLength":1},"branch":{"type":"string"},
           "depth":{"type":"integer","minimum":0,"maximum":1000000}})",
         .required = R"(["repo_url"])"},
    Tool{.name = "git_pull",
         .description = "Take over what is new at the remote; conflicts are listed and undone.",
         .operation = "gitPull",
         .properties = "{" REPO R"(,"rebase":{"type":"boolean"}})"},
    Tool{.name = "git_push",
         .description = "Push a branch; protected ones are refused.",
         .operation = "gitPush",
         .properties =
             "{" REPO R"(,"branch":{"type":"string","description":"default: the current one"}})"},
    Tool{.name = "git_status",
         .description = "What is changed in the checkout.",
         .operation = "gitStatus",
         .reads = true,
         .properties = "{" REPO "}"},
    Tool{.name = "git_diff",
         .description = "The changes as a unified diff, and by file.",
         .operation = "gitDiff",
         .reads = true,
         .properties = "{" REPO R"(,"base":{"type":"string","description":"default: HEAD"},
           "file":{"type":"array","items":{"type":"string"},"description":"only these"}})"},
    Tool{.name = "execute_code",
         .description = "Run code in the sandbox.",
         .operation = "executeInSandbox",
         .properties = R"({"code":{"type":"string","minLength":1,"maxLength":100000},
           "language":{"type":"string","enum":["python","javascript","bash"],
             "description":"default: python"},)" COMMON "}",
         .required = R"(["code"])",
         .body = CodeBody},
    Tool{.name = "run_script",
         .description = "Run a file of the sandbox: .py, .js and .sh by their interpreters.",
         .operation = "executeInSandbox",
         .properties = R"({"path":{"type":"string","minLength":1,"maxLength":4096},
           "args":{"type":"array","maxItems":1000,"items":{"type":"string"}},)" COMMON "}",
         .required = R"(["path"])",
         .body = ScriptBody},
    Tool{.name = "install_package",
         .description = "Install packages in the sandbox.",
         .operation = "executeInSandbox",
         // SECURITY: a name that begins with a dash would be an option.
         .properties = R"({"packages":{"type":"array","minItems":1,"maxItems":100,"items":{
             "type":"string","maxLength":200,"pattern":"^[A-Za-z0-9@][A-Za-z0-9@._/+=<>!~:-]*$"}},
           "manager":{"type":"string","enum":["pip","npm","apt"],"description":"default: pip"},)" COMMON
                       "}",
         .required = R"(["packages"])",
         .body = PackageBody},
    Tool{.name = "get_environment",
         .description = "State, template, limits and repository of the sandbox. Wakes nothing.",
         .operation = "getSandbox",
         .reads = true,
         .properties = "{}"},
};
#undef REPO
#undef COMMON

}  // namespace

std::span<const Tool> Tools() { return kTools; }

const Tool* FindTool(std::string_view name) {
  auto found = std::ranges::find(kTools, name, &Tool::name);
  return found == kTools.end() ? nullptr : &*found;
}

std::string SchemaOf(const Tool& tool) {
  json::object properties = json::parse(tool.properties).as_object();
  properties["sandbox_id"] = {{"type", "string"},
                              {"minLength", 1},
                              {"maxLength", 100},
                              {"description", "which sandbox, unless the URL names it"}};
  json::object schema{
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!tool.required.empty()) schema["required"] = json::parse(tool.required);
  return json::serialize(schema);
}

json::object Describe(const Tool& tool) {
  return {{"name", tool.name},
          {"description", tool.description},
          {"inputSchema", json::parse(SchemaOf(tool))},
          {"annotations", {{"readOnlyHint", tool.reads}}}};
}

http::Query QueryOf(const Tool& tool, const json::object& arguments) {
  std::string text;
  auto add = [&text](std::string_view name, const json::value& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name,
                        PercentEncode(std::string_view(value.as_string())));
  };
  for (const auto& [name, value] : arguments) {
    if (!tool.reads || name == "sandbox_id") continue;
    if (const json::array* list = value.if_array())
      for (const json::value& one : *list) add(name, one);
    else
      add(name, value);
  }
  return http::Query::Parse(text);
}

json::object BodyOf(const Tool& tool, const json::object& arguments) {
  if (tool.reads) return {};
  if (tool.body) return tool.body(arguments);
  json::object body = arguments;
  body.erase("sandbox_id");
  return body;
}

bool MayUse(const store::AgentRow& agent, const Tool& tool) {
  json::object config = work::ParseObject(agent.config);
  if (config.contains("mcp_tools")) {
    std::vector<std::string> named = TextsOf(config, "mcp_tools");
    return std::ranges::find(named, tool.name) != named.end();
  }
  return tool.reads || std::ranges::find(kReadingRoles, agent.role) == kReadingRoles.end();
}

}  // namespace caisson::mcp
