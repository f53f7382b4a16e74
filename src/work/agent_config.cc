#include "work/agent_config.h"

#include <algorithm>
#include <array>

#include "work/json_fields.h"

namespace caisson::work {
namespace {

enum class Kind { kText, kTexts, kTextMap, kNumber, kDollars, kSwitch };

struct Setting {
  std::string_view name;
  Kind kind;
  std::string_view adapters;  // the only ones that have it, "" = all
};

// Those that run in the sandbox and find their models themselves.
constexpr std::string_view kPrograms = "command claude codex opencode gemini aider";

// docs/agents.md tells what they do.
constexpr std::array kSettings = {
    Setting{"command", Kind::kTexts, "command"},
    Setting{"args", Kind::kTexts, "claude codex opencode gemini aider"},
    Setting{"model", Kind::kText, "claude codex opencode gemini aider builtin"},
    Setting{"model_route", Kind::kText, kPrograms},
    Setting{"model_keys", Kind::kText, kPrograms},
    Setting{"max_turns", Kind::kNumber, "claude"},
    Setting{"max_tool_calls", Kind::kNumber, "builtin"},
    Setting{"max_repeats", Kind::kNumber, "builtin"},
    Setting{"max_failures", Kind::kNumber, "builtin"},
    Setting{"max_tries", Kind::kNumber, "builtin"},
    Setting{"tool_timeout_s", Kind::kNumber, "builtin"},
    Setting{"bash_timeout_s", Kind::kNumber, "builtin"},
    Setting{"max_dollars", Kind::kDollars, "builtin"},
    Setting{"price_in", Kind::kDollars, "builtin"},
    Setting{"price_out", Kind::kDollars, "builtin"},
    Setting{"env", Kind::kTextMap, ""},
    Setting{"timeout_s", Kind::kNumber, ""},
    Setting{"template", Kind::kText, ""},
    Setting{"instructions", Kind::kText, ""},
    Setting{"approve_push", Kind::kSwitch, ""},
    Setting{"git_user_name", Kind::kText, ""},
    Setting{"git_user_email", Kind::kText, ""},
    Setting{"mcp_tools", Kind::kTexts, ""},
};

constexpr int64_t kMaxTimeout = 86'400;
constexpr double kMaxDollars = 1'000'000;

bool Has(const Setting& setting, std::string_view adapter) {
  if (adapter == kExternal) return false;
  return setting.adapters.empty() || setting.adapters.find(adapter) != std::string_view::npos;
}

Status CheckTexts(std::string_view name, const json::value& value) {
  if (!value.is_array())
    return Fail(Code::kInvalidArgument, "config.{} must be a list of texts", name);
  for (const json::value& item : value.as_array())
    if (!item.is_string())
      return Fail(Code::kInvalidArgument, "config.{} must be a list of texts", name);
  return {};
}

Status CheckMap(std::string_view name, const json::value& value) {
  if (!value.is_object())
    return Fail(Code::kInvalidArgument, "config.{} must be an object of texts", name);
  for (const auto& [key, item] : value.as_object()) {
    if (!item.is_string())
      return Fail(Code::kInvalidArgument, "config.{}.{} must be a text", name,
                  std::string_view(key));
    if (key.empty() || key.find('=') != std::string_view::npos)
      return Fail(Code::kInvalidArgument, "config.{} has a variable with an impossible name", name);
  }
  return {};
}

Status CheckKind(const Setting& setting, const json::value& value) {
  switch (setting.kind) {
    case Kind::kText:
      if (value.is_string()) return {};
      return Fail(Code::kInvalidArgument, "config.{} must be a text", setting.name);
    case Kind::kTexts:
      return CheckTexts(setting.name, value);
    case Kind::kTextMap:
      return CheckMap(setting.name, value);
    case Kind::kNumber:
      if (value.is_int64() && value.as_int64() >= 1 && value.as_int64() <= kMaxTimeout) return {};
      return Fail(Code::kInvalidArgument, "config.{} must be a whole number from 1 to {}",
                  setting.name, kMaxTimeout);
    case Kind::kDollars:
      if (value.is_number() && value.to_number<double>() > 0 &&
          value.to_number<double>() <= kMaxDollars)
        return {};
      return Fail(Code::kInvalidArgument, "config.{} must be a number of dollars up to {}",
                  setting.name, kMaxDollars);
    case Kind::kSwitch:
      if (value.is_bool()) return {};
      return Fail(Code::kInvalidArgument, "config.{} must be true or false", setting.name);
  }
  return {};
}

std::string NamesOf(std::string_view adapter) {
  std::string names;
  for (const Setting& setting : kSettings)
    if (Has(setting, adapter)) names += (names.empty() ? "" : ", ") + std::string(setting.name);
  return names.empty() ? "none" : names;
}

}  // namespace

const std::vector<std::string>& AdapterNames() {
  static const std::vector<std::string> kNames = {"command", "claude", "codex",   "opencode",
                                                  "gemini",  "aider",  "builtin", "external"};
  return kNames;
}

Status CheckAgentConfig(std::string_view adapter, const json::object& config) {
  if (std::ranges::find(AdapterNames(), adapter) == AdapterNames().end())
    return Fail(Code::kInvalidArgument, "there is no adapter '{}'; there are {}", adapter,
                fmt::join(AdapterNames(), ", "));
  for (const auto& [key, value] : config) {
    std::string_view name = key;
    const auto* setting = std::ranges::find(kSettings, name, &Setting::name);
    if (setting == kSettings.end() || !Has(*setting, adapter))
      return Fail(Code::kInvalidArgument, "config.{} is no setting of the adapter {}; it has {}",
                  name, adapter, NamesOf(adapter));
    TRY(CheckKind(*setting, value));
  }
  if (adapter == "command" && ArrayIn(config, "command").empty())
    return Fail(Code::kInvalidArgument,
                "config.command must name the program that does the work, for example "
                "[\"./agent.sh\", \"{{task}}\"]");
  if (config.contains("max_dollars") && !config.contains("price_in") &&
      !config.contains("price_out"))
    return Fail(Code::kInvalidArgument,
                "config.max_dollars needs price_in and price_out, the dollars per million tokens");
  if (std::string keys = TextOf(config, "model_keys");
      !keys.empty() && keys != "broker" && keys != "environment")
    return Fail(Code::kInvalidArgument, "config.model_keys must be broker or environment");
  return {};
}

}  // namespace caisson::work
