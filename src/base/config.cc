// Settings by name: one table lists every field, and the file, the environment and the command
// line all go through it, so that a new setting is reachable everywhere at once.
#include "base/config.h"

// toml++ 3.3 takes some broken files ("[" alone on a line) for impossible and would abort.
#include <stdexcept>
#define TOML_ASSERT(expr) ((expr) ? void() : throw std::logic_error("this is not TOML"))
#include <toml++/toml.h>

#include <array>
#include <filesystem>
#include <variant>

#include "base/text.h"

namespace caisson {
namespace {

using Member = std::variant<std::string Config::*, int64_t Config::*, bool Config::*>;
struct Field {
  std::string_view name;
  Member member;
};

#define FIELD(name) \
  Field { #name, &Config::name }
const std::array kFields = {
    FIELD(listen),
    FIELD(data_dir),
    FIELD(database_url),
    FIELD(template_dir),
    FIELD(domain),
    FIELD(user),
    FIELD(tls),
    FIELD(tls_cert_file),
    FIELD(tls_key_file),
    FIELD(log_level),
    FIELD(log_format),
    FIELD(http_max_connections),
    FIELD(http_max_header_bytes),
    FIELD(http_max_body_bytes),
    FIELD(http_header_timeout_ms),
    FIELD(http_idle_timeout_ms),
    FIELD(http_body_stall_timeout_ms),
    FIELD(shutdown_grace_ms),
    FIELD(max_sandboxes),
    FIELD(max_sandboxes_per_key),
    FIELD(default_timeout_s),
    FIELD(max_timeout_s),
    FIELD(max_metadata_bytes),
    FIELD(create_timeout_ms),
    FIELD(envd_timeout_ms),
    FIELD(metrics_interval_ms),
    FIELD(metrics_history),
    FIELD(spare_sockets),
    FIELD(max_events),
    FIELD(retention_days),
    FIELD(rate_limit),
    FIELD(rate_burst),
    FIELD(create_rate_limit),
    FIELD(max_promised_memory_mb),
    FIELD(save_memory),
    FIELD(criu),
    FIELD(save_sync),
    FIELD(save_timeout_ms),
    FIELD(min_free_disk_mb),
    FIELD(max_snapshot_layers),
    FIELD(max_forks),
    FIELD(max_paused_per_key),
    FIELD(max_snapshots_per_key),
    FIELD(paused_retention_days),
    FIELD(auto_resume_timeout_s),
    FIELD(idle_pause_s),
    FIELD(on_shutdown),
    FIELD(warm_pool),
    FIELD(pool_check_interval_ms),
    FIELD(sandbox_cpus),
    FIELD(sandbox_memory_mb),
    FIELD(sandbox_disk_mb),
    FIELD(sandbox_pids),
    FIELD(sandbox_open_files),
    FIELD(sandbox_output_kbps),
    FIELD(max_sandbox_cpus),
    FIELD(max_sandbox_memory_mb),
    FIELD(max_sandbox_disk_mb),
    FIELD(max_sandbox_pids),
    FIELD(launchers),
    FIELD(launcher_queue),
    FIELD(network),
    FIELD(network_cidr),
    FIELD(network_max_connections),
    FIELD(dns),
    FIELD(dns_queries_per_second),
    FIELD(blocked_events_per_minute),
    FIELD(egress_proxy),
    FIELD(ca_bundle),
    FIELD(uid_base),
    FIELD(max_slots),
    FIELD(nesting),
    FIELD(overlay_by_path),
    FIELD(engine_fail_at),
};
#undef FIELD

const Field* FindField(std::string_view name) {
  for (const Field& field : kFields)
    if (field.name == name) return &field;
  return nullptr;
}

Status OneOf(std::string_view name, const std::string& value,
             std::initializer_list<std::string_view> allowed) {
  for (std::string_view a : allowed)
    if (value == a) return {};
  return Fail(Code::kInvalidArgument, "setting {}: '{}' is not one of: {}", name, value,
              fmt::join(allowed, ", "));
}

Status SetFromToml(Config& config, const Field& field, const toml::node& node) {
  auto wrong = [&](std::string_view wanted) {
    return Fail(Code::kInvalidArgument, "line {}: {} must be {}", node.source().begin.line,
                field.name, wanted);
  };
  if (auto* text = std::get_if<std::string Config::*>(&field.member)) {
    auto value = node.value_exact<std::string>();
    if (!value) return wrong("a string");
    config.*(*text) = *value;
  } else if (auto* number = std::get_if<int64_t Config::*>(&field.member)) {
    auto value = node.value_exact<int64_t>();
    if (!value) return wrong("an integer");
    config.*(*number) = *value;
  } else {
    auto value = node.value_exact<bool>();
    if (!value) return wrong("true or false");
    config.*std::get<bool Config::*>(field.member) = *value;
  }
  return {};
}

}  // namespace

Status LoadConfigFile(Config& config, const std::string& path) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& e) {
    return Fail(Code::kInvalidArgument, "{}: line {}: {}", path, e.source().begin.line,
                e.description());
  } catch (const std::exception& e) {
    return Fail(Code::kInvalidArgument, "{}: {}", path, e.what());
  }
  for (const auto& [key, node] : table) {
    const Field* field = FindField(key.str());
    if (!field)
      return Fail(Code::kInvalidArgument, "{}: line {}: there is no setting named '{}'", path,
                  key.source().begin.line, key.str());
    Status set = SetFromToml(config, *field, node);
    if (!set) return tl::unexpected(std::move(set).error().Context(path));
  }
  return {};
}

Status SetConfigField(Config& config, std::string_view name, std::string_view value) {
  const Field* field = FindField(name);
  if (!field) return Fail(Code::kInvalidArgument, "there is no setting named '{}'", name);
  if (auto* text = std::get_if<std::string Config::*>(&field->member)) {
    config.*(*text) = std::string(value);
  } else if (auto* number = std::get_if<int64_t Config::*>(&field->member)) {
    auto parsed = ParseInt<int64_t>(value);
    if (!parsed)
      return Fail(Code::kInvalidArgument, "setting {}: '{}' is not an integer", name, value);
    config.*(*number) = *parsed;
  } else {
    bool yes = value == "true" || value == "1", no = value == "false" || value == "0";
    if (!yes && !no)
      return Fail(Code::kInvalidArgument, "setting {}: '{}' is neither true nor false", name,
                  value);
    config.*std::get<bool Config::*>(field->member) = yes;
  }
  return {};
}

Status ApplyEnvironment(Config& config, const std::map<std::string, std::string>& environment) {
  for (const Field& field : kFields) {
    std::string name = "CAISSON_";
    for (char c : field.name) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    auto it = environment.find(name);
    if (it == environment.end() || it->second.empty()) continue;
    Status set = SetConfigField(config, field.name, it->second);
    if (!set) return tl::unexpected(std::move(set).error().Context(name));
  }
  return {};
}

Status FinishConfig(Config& config) {
  std::error_code ec;
  config.data_dir = std::filesystem::absolute(config.data_dir, ec).lexically_normal().string();
  if (ec) return Fail(Code::kInvalidArgument, "data_dir: {}", ec.message());
  while (config.data_dir.size() > 1 && config.data_dir.back() == '/') config.data_dir.pop_back();
  if (config.database_url.empty())
    config.database_url = "sqlite:///" + config.data_dir + "/db/caisson.db";
  if (config.template_dir.empty()) config.template_dir = config.data_dir + "/templates";
  TRY(OneOf("tls", config.tls, {"off", "auto", "files"}));
  TRY(OneOf("log_level", config.log_level, {"debug", "info", "warn", "error"}));
  TRY(OneOf("log_format", config.log_format, {"auto", "json", "text"}));
  TRY(OneOf("network", config.network, {"auto", "none"}));
  TRY(OneOf("on_shutdown", config.on_shutdown, {"keep", "pause"}));
  if (config.tls == "files" && (config.tls_cert_file.empty() || config.tls_key_file.empty()))
    return Fail(Code::kInvalidArgument, "tls = \"files\" needs tls_cert_file and tls_key_file");
  for (const Field& field : kFields)
    if (auto* number = std::get_if<int64_t Config::*>(&field.member);
        number && config.*(*number) < 0)
      return Fail(Code::kInvalidArgument, "setting {} must not be negative", field.name);
  if (config.default_timeout_s == 0 || config.max_timeout_s == 0 || config.metrics_interval_ms == 0)
    return Fail(Code::kInvalidArgument,
                "default_timeout_s, max_timeout_s and metrics_interval_ms must be positive");
  return {};
}

std::map<std::string, int64_t> ConfigNumbers(const Config& config) {
  std::map<std::string, int64_t> numbers;
  for (const Field& field : kFields) {
    if (auto* number = std::get_if<int64_t Config::*>(&field.member))
      numbers.emplace(field.name, config.*(*number));
    else if (auto* flag = std::get_if<bool Config::*>(&field.member))
      numbers.emplace(field.name, config.*(*flag));
  }
  return numbers;
}

}  // namespace caisson
