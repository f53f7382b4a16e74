#include "sandbox/registry.h"

#include <boost/json.hpp>

#include "sandbox/secrets.h"

namespace caisson::sandbox {
namespace {

// `httpsPorts` of the settings as asked for, which were checked then.
std::set<uint16_t> HttpsPorts(const std::string& network_json) {
  namespace json = boost::json;
  std::set<uint16_t> ports;
  boost::system::error_code ec;
  json::value network = json::parse(network_json, ec);
  const json::value* list =
      !ec && network.is_object() ? network.get_object().if_contains("httpsPorts") : nullptr;
  if (!list || !list->is_array()) return ports;
  for (const json::value& port : list->get_array())
    if (port.is_int64()) ports.insert(static_cast<uint16_t>(port.get_int64()));
  return ports;
}

}  // namespace

std::shared_ptr<Record> MakeRecord(store::SandboxRow row, std::string_view secret) {
  auto record = std::make_shared<Record>();
  record->route = {
      .id = row.id,
      .access_token = row.secure ? AccessToken(secret, row.id) : "",
      .inside_token = row.secure ? InsideToken(secret, row.id) : "",
      .traffic_token = TrafficToken(secret, row.id),
      .allow_public_traffic = row.allow_public_traffic,
      .mask_request_host = row.mask_request_host,
      .https_ports = HttpsPorts(row.network_json),
  };
  record->row = std::move(row);
  return record;
}

namespace {

Time ActiveAt(const Record& record) {
  if (record.row.state == "paused") return record.row.end_at;
  // Whoever follows its life has a request or a connection open.
  if (!record.gone.empty()) return Now();
  return Now() - (std::chrono::steady_clock::now() - record.active_at);
}

}  // namespace

Info MakeInfo(const Record& record) {
  const store::SandboxRow& row = record.row;
  return {
      .id = row.id,
      .key_id = row.key_id,
      .template_id = row.template_id,
      .alias = row.alias,
      .state = row.state == "paused" ? State::kPaused : State::kRunning,
      .metadata = row.metadata,
      .allow_internet = row.allow_internet,
      .secure = row.secure,
      .network = {.allow_public_traffic = row.allow_public_traffic,
                  .mask_request_host = row.mask_request_host,
                  .as_requested_json = row.network_json},
      .cpus = row.cpus,
      .memory_mb = row.memory_mb,
      .disk_mb = row.disk_mb,
      .pids = row.pids,
      .open_files = row.open_files,
      .output_kbps = row.output_kbps,
      .started_at = row.started_at,
      .end_at = row.end_at,
      .active_at = ActiveAt(record),
      .access_token = record.route.access_token,
      .inside_token = record.route.inside_token,
      .traffic_token = row.allow_public_traffic ? "" : record.route.traffic_token,
      .lifecycle = {.auto_pause = row.auto_pause,
                    .auto_pause_memory = row.auto_pause_memory,
                    .auto_resume = row.auto_resume},
      .saved = {.tier = row.saved_tier,
                .why_frozen = row.saved_why,
                .memory_bytes = row.saved_memory_bytes,
                .disk_bytes = row.saved_disk_bytes},
  };
}

void Registry::Add(std::shared_ptr<Record> record) {
  std::string id = record->row.id;
  records_.emplace(std::move(id), std::move(record));
}

std::shared_ptr<Record> Registry::Find(std::string_view id) const {
  auto it = records_.find(id);
  return it == records_.end() || !it->second->running ? nullptr : it->second;
}

bool Registry::Remove(Record& record) {
  if (!record.running) return false;
  record.running = false;
  record.spare_sockets.clear();
  // One by one, and still findable by Unsubscribe(): a callback may end others that wait here.
  while (!record.gone.empty()) {
    auto first = record.gone.extract(record.gone.begin());
    first.mapped()();
  }
  records_.erase(record.row.id);
  return true;
}

Manager::GoneId Registry::Subscribe(const std::string& id, std::function<void()> gone) {
  auto record = Find(id);
  if (!record) {
    gone();
    return 0;
  }
  record->gone.emplace(next_handle_, std::move(gone));
  return next_handle_++;
}

void Registry::Unsubscribe(const std::string& id, Manager::GoneId handle) {
  auto it = records_.find(id);
  if (it != records_.end()) it->second->gone.erase(handle);
}

std::vector<std::shared_ptr<Record>> Registry::All() const {
  std::vector<std::shared_ptr<Record>> all;
  all.reserve(records_.size());
  for (const auto& [id, record] : records_)
    if (record->running) all.push_back(record);
  return all;
}

void Registry::ForEach(const std::function<bool(const Record&)>& until_true) const {
  for (const auto& [id, record] : records_)
    if (record->running && until_true(*record)) return;
}

}  // namespace caisson::sandbox
