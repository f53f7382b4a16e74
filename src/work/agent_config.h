// The configuration of an agent: which settings each adapter takes.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::work {

namespace json = boost::json;

// "command", "claude", "codex", "opencode", "gemini", "aider", "builtin", "external".
const std::vector<std::string>& AdapterNames();
inline constexpr std::string_view kExternal = "external";

// kInvalidArgument with a sentence that names the setting.
Status CheckAgentConfig(std::string_view adapter, const json::object& config);

}  // namespace caisson::work
