// The settings of the server, as an administrator sees them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/frame.h"

namespace caisson::api {

// The documentation that explains the settings, compiled in (setting_texts.cmake).
extern const std::string_view kOperationsText, kGithubText;

// What the tables of a page of the documentation say of each setting: rows "| `name` | default |
// text |", of which one may explain several.
std::map<std::string, std::string> SettingTexts(std::string_view page);

// `config` outlives the frame.
void AddSettingRoutes(Frame& frame, const Config& config);

}  // namespace caisson::api
