#include "api/setting_routes.h"

#include <boost/json.hpp>

#include "api/work_codec.h"
#include "base/text.h"

namespace caisson::api {
namespace {

constexpr std::string_view kSetting = R"({"type":"object","properties":{"name":{"type":"string"},
  "value":{"type":"string","description":"of a secret: set, or nothing"},
  "default":{"type":"string"},
  "source":{"type":"string","enum":["default","environment","file","option"]},
  "secret":{"type":"boolean"},"description":{"type":"string"}}})";

// "[text](address)" is its text: there is no page to follow it from.
std::string WithoutLinks(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    size_t middle = text.find("](", at), end = text.find(')', middle);
    if (text[at] == '[' && middle != text.npos && end != text.npos &&
        text.substr(at + 1, middle - at - 1).find('[') == text.npos) {
      plain += text.substr(at + 1, middle - at - 1);
      at = end + 1;
    } else {
      plain += text[at++];
    }
  }
  return plain;
}

Answer List(const Config& config, Call&) {
  std::map<std::string, std::string> texts = SettingTexts(kOperationsText);
  texts.merge(SettingTexts(kGithubText));
  json::array settings;
  for (const ShownSetting& one : ShowConfig(config))
    settings.push_back(json::object{{"name", one.name},
                                    {"value", ToUtf8(one.value)},
                                    {"default", one.standard},
                                    {"source", one.source},
                                    {"secret", one.secret},
                                    {"description", texts[one.name]}});
  size_t total = settings.size();
  co_return http::Response::Json(200,
                                 json::object{{"settings", std::move(settings)}, {"total", total}});
}

}  // namespace

std::map<std::string, std::string> SettingTexts(std::string_view page) {
  std::map<std::string, std::string> texts;
  for (std::string_view line : Split(page, '\n')) {
    if (!line.starts_with("| `")) continue;
    auto cells = Split(line, '|');
    if (cells.size() != 5) continue;
    auto quoted = Split(cells[1], '`');
    for (size_t i = 1; i + 1 < quoted.size(); i += 2)
      texts.emplace(quoted[i], WithoutLinks(Trim(cells[3])));
  }
  return texts;
}

void AddSettingRoutes(Frame& frame, const Config& config) {
  frame.AddSchema("Setting", kSetting);
  frame.AddSchema("SettingList", ListSchema("settings", "Setting"));
  frame.Add({.method = "GET",
             .pattern = "/api/v1/settings",
             .tag = "server",
             .id = "listSettings",
             .summary = "The settings of this server, and where they come from",
             .access = Access::kAdmin,
             .responses = {{200, "SettingList"}},
             .handler = [&config](Call& call) { return List(config, call); }});
}

}  // namespace caisson::api
