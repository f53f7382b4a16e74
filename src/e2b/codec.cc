#include "e2b/codec.h"

#include <boost/json.hpp>
#include <set>

#include "base/encoding.h"
#include "base/text.h"
#include "e2b/fields.h"
#include "e2b/limits.h"
#include "e2b/network.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;

// Clients no longer use it, but some refuse an answer without it.
constexpr std::string_view kClientId = "caisson";
constexpr std::chrono::seconds kMinRefresh{15};
constexpr size_t kMaxIdentityTokens = 5;

// What happens at the end of its time, and on traffic after that.
Result<sandbox::Lifecycle> DecodeLifecycle(const json::object& body) {
  TRY_ASSIGN(auto auto_pause, TakeBool(body, "autoPause"));
  TRY_ASSIGN(auto with_memory, TakeBool(body, "autoPauseMemory"));
  TRY_ASSIGN(const json::object* auto_resume, TakeObject(body, "autoResume"));
  std::optional<bool> resumes;
  if (auto_resume) {
    TRY_ASSIGN(resumes, TakeBool(*auto_resume, "autoResume.enabled"));
  }
  if (with_memory == false && !auto_pause.value_or(false))
    return Fail(Code::kInvalidArgument, "autoPauseMemory: false needs autoPause: true");
  if (with_memory == false && resumes.value_or(false))
    return Fail(Code::kInvalidArgument,
                "autoPauseMemory: false cannot be combined with autoResume.enabled: true");
  return sandbox::Lifecycle{.auto_pause = auto_pause.value_or(false),
                            .auto_pause_memory = with_memory.value_or(true),
                            .auto_resume = resumes.value_or(false)};
}

Status CheckIdentity(const json::object& body) {
  TRY_ASSIGN(const json::object* iam, TakeObject(body, "iam"));
  if (!iam) return {};
  TRY_ASSIGN(const json::object* tokens, TakeObject(*iam, "iam.tokens"));
  if (!tokens || tokens->empty()) return {};
  if (tokens->size() > kMaxIdentityTokens)
    return Fail(Code::kInvalidArgument, "iam.tokens: at most {} are allowed", kMaxIdentityTokens);
  for (const auto& [name, token] : *tokens) {
    if (!token.is_object())
      return Fail(Code::kInvalidArgument, "iam.tokens.{} must be an object",
                  std::string_view(name));
    TRY_ASSIGN(auto type, TakeString(token.get_object(), "iam.tokens.tokenType"));
    if (type && *type != "JWT-SVID")
      return Fail(Code::kInvalidArgument, "iam.tokens.{}: tokenType must be JWT-SVID",
                  std::string_view(name));
  }
  return Fail(Code::kUnimplemented, "this server cannot issue identity tokens (iam) yet");
}

bool IsCleanAbsolutePath(std::string_view path) {
  if (!path.starts_with('/') || (path.size() > 1 && path.ends_with('/'))) return false;
  for (std::string_view part : Split(path.substr(1), '/'))
    if ((part.empty() && path.size() > 1) || part == "." || part == "..") return false;
  return true;
}

// There are no volumes on this server yet, so every mount names an unknown one.
Status CheckVolumes(const json::object& body) {
  TRY_ASSIGN(const json::array* mounts, TakeArray(body, "volumeMounts"));
  if (!mounts || mounts->empty()) return {};
  std::set<std::string> paths;
  for (const json::value& mount : *mounts) {
    if (!mount.is_object())
      return Fail(Code::kInvalidArgument, "volumeMounts must be a list of {{name, path}}");
    TRY_ASSIGN(auto name, TakeString(mount.get_object(), "volumeMounts.name"));
    TRY_ASSIGN(auto path, TakeString(mount.get_object(), "volumeMounts.path"));
    if (!name || name->empty())
      return Fail(Code::kInvalidArgument, "volumeMounts.name must not be empty");
    if (!path || !IsCleanAbsolutePath(*path))
      return Fail(Code::kInvalidArgument,
                  "volumeMounts.path must be an absolute path without '.', '..' or '//'");
    if (!paths.insert(*path).second)
      return Fail(Code::kInvalidArgument, "volumeMounts: the path '{}' is used twice", *path);
  }
  std::string first(mounts->front().get_object().at("name").get_string());
  return Fail(Code::kInvalidArgument, "volume '{}' does not exist", first);
}

// A UUID that stays the same for a template that stays the same.
std::string BuildIdOf(const sandbox::Template& one) {
  std::string hex = HexEncode(Sha256(fmt::format("{}@{}", one.id, UnixNanos(one.created_at))));
  hex[12] = '4';
  hex[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20, 12));
}

json::object EncodeFields(const store::SandboxEvent& event) {
  json::object fields;
  for (const auto& [name, value] : event.fields) fields[name] = value;
  fields["event"] = event.type;
  return fields;
}

}  // namespace

Result<std::string> DecodeSandboxId(std::string_view text) {
  auto parts = Split(text, '-');
  if (parts.size() > 2) return Fail(Code::kInvalidArgument, "Invalid sandbox ID");
  if (parts[0].empty() ||
      parts[0].find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string_view::npos)
    return Fail(Code::kNotFound, "sandbox '{}' does not exist", text);
  return std::string(parts[0]);
}

Result<sandbox::CreateOptions> DecodeCreate(const json::object& body, Version version,
                                            const Defaults& defaults) {
  sandbox::CreateOptions options;
  TRY_ASSIGN(auto template_name, TakeString(body, "templateID"));
  if (!template_name || template_name->empty())
    return Fail(Code::kInvalidArgument, "templateID is required");
  options.template_name = *template_name;
  TRY_ASSIGN(auto timeout, TakeInt32(body, "timeout"));
  if (timeout && *timeout <= 0)
    return Fail(Code::kInvalidArgument, "Timeout must be greater than 0");
  options.timeout = version == Version::kV1 ? defaults.timeout_v1 : defaults.timeout_v2;
  if (timeout) options.timeout = std::chrono::seconds(*timeout);
  TRY_ASSIGN(options.metadata, TakeMap(body, "metadata"));
  TRY_ASSIGN(options.env, TakeMap(body, "envVars"));
  if (version == Version::kV1) {
    TRY_ASSIGN(auto secure, TakeBool(body, "secure"));
    options.secure = secure.value_or(false);
  }
  TRY_ASSIGN(options.lifecycle, DecodeLifecycle(body));
  TRY_ASSIGN(auto network, DecodeNetwork(body, options.secure));
  options.allow_internet = network.allow_internet;
  options.network = std::move(network.options);
  TRY_ASSIGN(const json::object* limits, TakeObject(body, "limits"));
  if (limits) {
    TRY_ASSIGN(options.limits, DecodeLimits(*limits));
  }
  TRY(CheckIdentity(body));
  TRY(CheckVolumes(body));
  return options;
}

Result<sandbox::ResumeOptions> DecodeConnect(const json::object& body, Version version,
                                             const Defaults& defaults) {
  TRY_ASSIGN(auto timeout, TakeInt32(body, "timeout"));
  TRY_ASSIGN(auto memory, TakeBool(body, "memory"));
  if (!timeout && version == Version::kV1)
    return Fail(Code::kInvalidArgument, "timeout is required");
  if (timeout && *timeout < 0) return Fail(Code::kInvalidArgument, "timeout must not be negative");
  return sandbox::ResumeOptions{
      .timeout = timeout ? std::chrono::seconds(*timeout) : defaults.timeout_v2,
      .memory = memory.value_or(true)};
}

Result<sandbox::ResumeOptions> DecodeResume(const json::object& body, const Defaults& defaults) {
  sandbox::ResumeOptions options{.timeout = defaults.timeout_v1};
  TRY_ASSIGN(auto timeout, TakeInt32(body, "timeout"));
  if (timeout && *timeout < 0) return Fail(Code::kInvalidArgument, "timeout must not be negative");
  if (timeout) options.timeout = std::chrono::seconds(*timeout);
  TRY_ASSIGN(options.auto_pause, TakeBool(body, "autoPause"));
  return options;
}

Result<PauseQuery> DecodePause(const json::object& body) {
  TRY_ASSIGN(auto memory, TakeBool(body, "memory"));
  TRY_ASSIGN(auto healthy, TakeBool(body, "requireHealthyGuest"));
  return PauseQuery{.memory = memory.value_or(true), .healthy = healthy.value_or(false)};
}

Result<ForkQuery> DecodeFork(const json::object& body, const Defaults& defaults) {
  TRY_ASSIGN(auto timeout, TakeInt32(body, "timeout"));
  TRY_ASSIGN(auto count, TakeInt32(body, "count"));
  return ForkQuery{.timeout = timeout ? std::chrono::seconds(*timeout) : defaults.timeout_v1,
                   .count = count.value_or(1)};
}

Result<std::chrono::seconds> DecodeTimeout(const json::object& body) {
  TRY_ASSIGN(auto timeout, TakeInt32(body, "timeout"));
  if (!timeout) return Fail(Code::kInvalidArgument, "timeout is required");
  return std::chrono::seconds(std::max<int64_t>(*timeout, 0));
}

Result<std::chrono::seconds> DecodeRefresh(const json::object& body) {
  TRY_ASSIGN(auto duration, TakeInt32(body, "duration"));
  return std::max(kMinRefresh, std::chrono::seconds(duration.value_or(0)));
}

std::string EncodeTime(Time time) {
  auto second = std::chrono::floor<std::chrono::seconds>(time);
  auto micros = std::chrono::floor<std::chrono::microseconds>(time - second).count();
  std::string text = FormatTime(second);  // "...:16Z"
  text.pop_back();
  return fmt::format("{}.{:06}Z", text, micros);
}

json::object EncodeSandbox(const sandbox::Info& info, std::string_view domain) {
  json::object body{{"sandboxID", info.id},
                    {"templateID", info.template_id},
                    {"clientID", kClientId},
                    {"envdVersion", kEnvdVersion},
                    {"domain", domain}};
  if (!info.alias.empty()) body["alias"] = info.alias;
  if (!info.access_token.empty()) body["envdAccessToken"] = info.access_token;
  if (!info.traffic_token.empty()) body["trafficAccessToken"] = info.traffic_token;
  return body;
}

json::object EncodeListed(const sandbox::Info& info) {
  json::object metadata;
  for (const auto& [key, value] : info.metadata) metadata[key] = value;
  json::object body{{"sandboxID", info.id},
                    {"templateID", info.template_id},
                    {"clientID", kClientId},
                    {"startedAt", EncodeTime(info.started_at)},
                    {"endAt", EncodeTime(info.end_at)},
                    {"state", info.state == sandbox::State::kPaused ? "paused" : "running"},
                    {"cpuCount", info.cpus},
                    {"memoryMB", info.memory_mb},
                    {"diskSizeMB", info.disk_mb},
                    {"envdVersion", kEnvdVersion},
                    {"metadata", std::move(metadata)}};
  if (!info.alias.empty()) body["alias"] = info.alias;
  return body;
}

json::object EncodeDetail(const sandbox::Info& info, std::string_view domain) {
  json::object body = EncodeListed(info);
  body["domain"] = domain;
  if (!info.access_token.empty()) body["envdAccessToken"] = info.access_token;
  body["allowInternetAccess"] = info.allow_internet;
  boost::system::error_code ec;
  json::value network = json::parse(info.network.as_requested_json, ec);
  if (!ec && network.is_object()) body["network"] = std::move(network);
  body["lifecycle"] = {{"onTimeout", info.lifecycle.auto_pause ? "pause" : "kill"},
                       {"autoResume", info.lifecycle.auto_resume}};
  return body;
}

json::object EncodeSnapshot(const store::SnapshotRow& row) {
  json::array names;
  if (!row.name.empty()) names.emplace_back(sandbox::SnapshotName(row));
  return {{"snapshotID", sandbox::SnapshotName(row)}, {"names", std::move(names)}};
}

json::object EncodeMetric(int64_t cpus, const sandbox::Sample& sample) {
  const engine::Usage& usage = sample.usage;
  return {{"timestamp", EncodeTime(usage.at)},
          {"timestampUnix", UnixSeconds(usage.at)},
          {"cpuCount", cpus},
          {"cpuUsedPct", std::round(sample.cpu_used_pct * 100) / 100},
          {"memUsed", usage.memory_used_bytes},
          {"memTotal", usage.memory_limit_bytes},
          {"memCache", usage.memory_cache_bytes},
          {"diskUsed", usage.disk_used_bytes},
          {"diskTotal", usage.disk_total_bytes}};
}

json::object EncodeLogEntry(const store::SandboxEvent& event) {
  return {{"timestamp", EncodeTime(event.at)},
          {"level", event.level},
          {"message", event.message},
          {"fields", EncodeFields(event)}};
}

json::object EncodeLogLine(const store::SandboxEvent& event) {
  json::object line{{"timestamp", EncodeTime(event.at)},
                    {"level", event.level},
                    {"logger", "caisson"},
                    {"message", event.message}};
  for (const auto& [name, value] : EncodeFields(event))
    if (!line.contains(name)) line[name] = value;
  return {{"timestamp", EncodeTime(event.at)}, {"line", json::serialize(line)}};
}

json::object EncodeTemplate(const sandbox::Template& one, int64_t default_cpus,
                            int64_t default_memory_mb, int64_t default_disk_mb,
                            const store::TemplateUse& use) {
  json::value last_used =
      use.sandboxes > 0 ? json::value(EncodeTime(use.last_started_at)) : nullptr;
  json::array tools;
  for (const sandbox::Tool& tool : one.tools)
    tools.push_back({{"name", tool.name}, {"version", tool.version}});
  return {{"templateID", one.id},
          {"buildID", BuildIdOf(one)},
          {"cpuCount", one.cpus > 0 ? one.cpus : default_cpus},
          {"memoryMB", one.memory_mb > 0 ? one.memory_mb : default_memory_mb},
          {"diskSizeMB", one.disk_mb > 0 ? one.disk_mb : default_disk_mb},
          {"public", true},  // every key of this server may use it
          {"aliases", json::value_from(one.aliases)},
          {"names", json::value_from(one.aliases)},
          {"createdAt", EncodeTime(one.created_at)},
          {"updatedAt", EncodeTime(one.created_at)},
          {"createdBy", nullptr},
          {"lastSpawnedAt", std::move(last_used)},
          {"spawnCount", use.sandboxes},
          {"buildCount", 1},
          {"envdVersion", kEnvdVersion},
          {"buildStatus", "ready"},
          {"tools", std::move(tools)}};
}

}  // namespace caisson::e2b
