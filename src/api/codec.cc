#include "api/codec.h"

#include <boost/json.hpp>

#include "base/log_ring.h"
#include "e2b/codec.h"
#include "e2b/limits.h"

namespace caisson::api {
namespace {

namespace json = boost::json;
using e2b::EncodeTime;

json::object EncodeSaved(const engine::Saved& saved) {
  json::object body{{"tier", engine::TierName(saved.tier)},
                    {"memoryBytes", saved.memory_bytes},
                    {"diskBytes", saved.disk_bytes},
                    {"at", EncodeTime(saved.at)}};
  if (!saved.why_frozen.empty()) body["whyFrozen"] = saved.why_frozen;
  return body;
}

json::object EncodeSample(const sandbox::Detail& detail, const sandbox::Sample& sample) {
  json::object body = e2b::EncodeMetric(detail.info.cpus, sample);
  body["pids"] = sample.usage.pids;
  body["oomKills"] = sample.usage.oom_kills;
  body["pidsRefused"] = sample.usage.pids_refused;
  return body;
}

json::object EncodePart(const sandbox::StorageUse::Part& part) {
  return {
      {"count", part.count}, {"memoryBytes", part.memory_bytes}, {"diskBytes", part.disk_bytes}};
}

json::value ParseOr(const std::string& text, json::value otherwise) {
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  return ec ? otherwise : value;
}

}  // namespace

json::object EncodeDetail(const sandbox::Detail& detail) {
  const sandbox::Info& info = detail.info;
  json::object metadata;
  for (const auto& [key, value] : info.metadata) metadata[key] = value;
  json::object body{{"sandboxID", info.id},
                    {"templateID", info.template_id},
                    {"state", detail.state},
                    {"startedAt", EncodeTime(info.started_at)},
                    {"endAt", EncodeTime(info.end_at)},
                    {"metadata", std::move(metadata)},
                    {"secure", info.secure},
                    {"allowInternetAccess", info.allow_internet},
                    {"limits", e2b::EncodeLimits(info)}};
  if (!info.alias.empty()) body["alias"] = info.alias;
  if (!detail.reason.empty()) body["reason"] = detail.reason;
  if (detail.ended_at) body["endedAt"] = EncodeTime(*detail.ended_at);
  if (detail.last) body["usage"] = EncodeSample(detail, *detail.last);
  if (detail.saved) body["saved"] = EncodeSaved(*detail.saved);
  return body;
}

json::object EncodeEvent(const store::SandboxEvent& event) {
  json::object fields;
  for (const auto& [name, value] : event.fields) fields[name] = value;
  json::object body{{"id", event.id},
                    {"at", EncodeTime(event.at)},
                    {"type", event.type},
                    {"level", event.level},
                    {"message", event.message}};
  if (const json::value* reason = fields.if_contains("reason")) body["reason"] = *reason;
  body["fields"] = std::move(fields);
  return body;
}

json::object EncodeStorage(const sandbox::StorageUse& use) {
  return {{"running", EncodePart(use.running)},
          {"paused", EncodePart(use.paused)},
          {"snapshots", EncodePart(use.snapshots)}};
}

json::object EncodeDiagnosis(const sandbox::Diagnosis& diagnosis, const Config& config) {
  const sandbox::Detail& detail = diagnosis.detail;
  json::object settings;
  for (const auto& [name, value] : ConfigNumbers(config)) settings[name] = value;
  json::object engine;
  if (diagnosis.capabilities)
    engine = {{"savesMemory", diagnosis.capabilities->memory},
              {"whyNotMemory", diagnosis.capabilities->why_no_memory},
              {"network", diagnosis.capabilities->network}};
  json::array events, samples, log;
  for (const store::SandboxEvent& event : diagnosis.events) events.push_back(EncodeEvent(event));
  for (const sandbox::Sample& sample : diagnosis.samples)
    samples.push_back(EncodeSample(detail, sample));
  for (const std::string& line : RecentLog(detail.info.id)) log.push_back(ParseOr(line, nullptr));
  json::object body{{"madeAt", EncodeTime(Now())},
                    {"server", {{"version", CAISSON_VERSION}, {"settings", std::move(settings)}}},
                    {"engine", std::move(engine)},
                    {"sandbox", EncodeDetail(detail)},
                    {"timeline", std::move(events)},
                    {"metrics", std::move(samples)},
                    {"log", std::move(log)}};
  if (!diagnosis.processes_json.empty())
    body["processes"] = ParseOr(diagnosis.processes_json, json::array());
  if (!diagnosis.processes_error.empty()) body["processesError"] = diagnosis.processes_error;
  return body;
}

}  // namespace caisson::api
