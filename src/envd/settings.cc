#include "envd/settings.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

struct NamedLimit {
  std::string_view name;
  int64_t Limits::* field;
};

constexpr NamedLimit kLimits[] = {
    {"max_connections", &Limits::max_connections},
    {"max_processes", &Limits::max_processes},
    {"max_subscribers", &Limits::max_subscribers},
    {"subscriber_buffer", &Limits::subscriber_buffer},
    {"output_kbps", &Limits::output_kbps},
    {"max_request_bytes", &Limits::max_request_bytes},
    {"max_input_bytes", &Limits::max_input_bytes},
    {"max_list_entries", &Limits::max_list_entries},
    {"max_watchers", &Limits::max_watchers},
    {"max_watched_dirs", &Limits::max_watched_dirs},
    {"watcher_queue", &Limits::watcher_queue},
    {"max_part_header_bytes", &Limits::max_part_header_bytes},
    {"max_upload_parts", &Limits::max_upload_parts},
    {"exec_timeout_ms", &Limits::exec_timeout_ms},
    {"retain_end_ms", &Limits::retain_end_ms},
    {"max_retained_ends", &Limits::max_retained_ends},
    {"stall_timeout_ms", &Limits::stall_timeout_ms},
    {"idle_timeout_ms", &Limits::idle_timeout_ms},
};

Status ReadLimits(const json::object& object, Limits& limits) {
  for (const auto& item : object) {
    const NamedLimit* known = nullptr;
    for (const NamedLimit& limit : kLimits) {
      if (limit.name == std::string_view(item.key())) known = &limit;
    }
    if (known == nullptr)
      return Fail(Code::kInvalidArgument, "there is no limit \"{}\"", std::string(item.key()));
    TRY_ASSIGN(uint32_t value, Fields(object).Uint32(known->name));
    limits.*(known->field) = value;
  }
  return {};
}

}  // namespace

EnvVars Settings::GlobalEnv() const {
  EnvVars env = env_vars;
  env["E2B_SANDBOX"] = "true";
  if (!sandbox_id.empty()) env["E2B_SANDBOX_ID"] = sandbox_id;
  if (!template_id.empty()) env["E2B_TEMPLATE_ID"] = template_id;
  return env;
}

Result<Settings> ParseSettings(std::string_view json_text) {
  boost::system::error_code ec;
  json::value document = json::parse(json_text, ec);
  if (ec || !document.is_object())
    return Fail(Code::kInvalidArgument, "the boot configuration is not a JSON object");
  Fields fields(document.get_object());
  Settings settings;
  TRY_ASSIGN(settings.sandbox_id, fields.String("sandboxId"));
  TRY_ASSIGN(settings.template_id, fields.String("templateId"));
  TRY_ASSIGN(settings.access_token, fields.String("accessToken"));
  TRY_ASSIGN(settings.env_vars, fields.StringMap("envVars"));
  TRY_ASSIGN(settings.default_workdir, fields.String("defaultWorkdir"));
  TRY_ASSIGN(std::string user, fields.String("defaultUser"));
  if (!user.empty()) settings.default_user = user;
  if (fields.Has("port")) {
    TRY_ASSIGN(uint32_t port, fields.Uint32("port"));
    if (port > UINT16_MAX) return Fail(Code::kInvalidArgument, "field \"port\" is too big");
    settings.port = static_cast<uint16_t>(port);
  }
  TRY_ASSIGN(const json::object* limits, fields.Message("limits"));
  if (limits != nullptr) TRY(ReadLimits(*limits, settings.limits));
  return settings;
}

}  // namespace caisson::envd
