#include "store/rows.h"

#include <boost/json.hpp>

namespace caisson::store {
namespace json = boost::json;

std::string MapToJson(const std::map<std::string, std::string>& map) {
  json::object object;
  for (const auto& [key, value] : map) object[key] = value;
  return json::serialize(object);
}

std::map<std::string, std::string> MapFromJson(const std::string& text) {
  std::map<std::string, std::string> map;
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  if (ec || !value.is_object()) return map;
  for (const auto& [key, item] : value.get_object())
    if (item.is_string()) map.emplace(key, item.get_string());
  return map;
}

std::string KeyLimitsToJson(const KeyLimits& limits) {
  json::object object;
  for (const auto& [name, field] : kKeyLimits)
    if (limits.*field) object[name] = *(limits.*field);
  return json::serialize(object);
}

KeyLimits KeyLimitsFromJson(const std::string& text) {
  KeyLimits limits;
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  if (ec || !value.is_object()) return limits;
  for (const auto& [name, field] : kKeyLimits)
    if (const json::value* number = value.get_object().if_contains(name);
        number && number->is_int64())
      limits.*field = number->get_int64();
  return limits;
}

Status InsertSandboxRow(Database& database, const SandboxRow& row, const std::string& node) {
  return database.Run(
      "INSERT INTO sandboxes (" CAISSON_SANDBOX_COLUMNS
      ", node) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
      row.id, row.key_id, row.template_id, row.alias, row.state, row.reason,
      MapToJson(row.metadata), MapToJson(row.env), row.secure, row.allow_internet,
      row.allow_public_traffic, row.network_json, row.mask_request_host, row.cpus, row.memory_mb,
      row.disk_mb, row.timeout_s, row.idempotency_key, row.request_hash, row.started_at, row.end_at,
      row.ended_at, row.pids, row.open_files, row.output_kbps, row.auto_pause,
      row.auto_pause_memory, row.auto_resume, row.saved_tier, row.saved_why, row.saved_memory_bytes,
      row.saved_disk_bytes, node);
}

Status UpdateSandboxRow(Database& database, const SandboxRow& row) {
  // What a sandbox was made from does not change, and one that has ended does not come back.
  TRY(database.Run(
      "UPDATE sandboxes SET state = ?, reason = ?, metadata = ?, allow_internet = ?, "
      "network_json = ?, started_at = ?, end_at = ?, ended_at = ?, cpus = ?, memory_mb = ?, "
      "disk_mb = ?, pids = ?, open_files = ?, output_kbps = ?, auto_pause = ?, saved_tier = ?, "
      "saved_why = ?, saved_memory_bytes = ?, saved_disk_bytes = ? WHERE id = ? AND state <> "
      "'killed'",
      row.state, row.reason, MapToJson(row.metadata), row.allow_internet, row.network_json,
      row.started_at, row.end_at, row.ended_at, row.cpus, row.memory_mb, row.disk_mb, row.pids,
      row.open_files, row.output_kbps, row.auto_pause, row.saved_tier, row.saved_why,
      row.saved_memory_bytes, row.saved_disk_bytes, row.id));
  if (database.changes() == 0)
    return Fail(Code::kNotFound, "there is no living sandbox {} in the database", row.id);
  // SECURITY: values of variables are often keys. Nobody needs those of a sandbox that has ended.
  if (row.state == "killed")
    return database.Run("UPDATE sandboxes SET env = '{}' WHERE id = ?", row.id);
  return {};
}

SandboxRow ReadSandboxRow(const Statement& statement) {
  SandboxRow row;
  int at = 0;
  row.id = statement.Text(at++);
  row.key_id = statement.Text(at++);
  row.template_id = statement.Text(at++);
  row.alias = statement.Text(at++);
  row.state = statement.Text(at++);
  row.reason = statement.Text(at++);
  row.metadata = MapFromJson(statement.Text(at++));
  row.env = MapFromJson(statement.Text(at++));
  row.secure = statement.Bool(at++);
  row.allow_internet = statement.Bool(at++);
  row.allow_public_traffic = statement.Bool(at++);
  row.network_json = statement.Text(at++);
  row.mask_request_host = statement.Text(at++);
  row.cpus = statement.Int(at++);
  row.memory_mb = statement.Int(at++);
  row.disk_mb = statement.Int(at++);
  row.timeout_s = statement.Int(at++);
  row.idempotency_key = statement.Text(at++);
  row.request_hash = statement.Text(at++);
  row.started_at = statement.TimeAt(at++);
  row.end_at = statement.TimeAt(at++);
  row.ended_at = statement.OptionalTimeAt(at++);
  row.pids = statement.Int(at++);
  row.open_files = statement.Int(at++);
  row.output_kbps = statement.Int(at++);
  row.auto_pause = statement.Bool(at++);
  row.auto_pause_memory = statement.Bool(at++);
  row.auto_resume = statement.Bool(at++);
  row.saved_tier = statement.Text(at++);
  row.saved_why = statement.Text(at++);
  row.saved_memory_bytes = statement.Int(at++);
  row.saved_disk_bytes = statement.Int(at++);
  return row;
}

#define CAISSON_SNAPSHOT_COLUMNS                                                          \
  "id, key_id, sandbox_id, name, tag, template_id, alias, env, secure, cpus, memory_mb, " \
  "disk_mb, pids, open_files, output_kbps, tier, memory_bytes, disk_bytes, created_at"

Status InsertSnapshotRow(Database& database, const SnapshotRow& row, const std::string& node) {
  if (!row.name.empty())
    TRY(
        database.Run("UPDATE snapshots SET name = '', tag = 'default' "
                     "WHERE key_id = ? AND name = ? AND tag = ?",
                     row.key_id, row.name, row.tag));
  return database.Run("INSERT INTO snapshots (" CAISSON_SNAPSHOT_COLUMNS
                      ", node) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                      row.id, row.key_id, row.sandbox_id, row.name, row.tag, row.template_id,
                      row.alias, MapToJson(row.env), row.secure, row.cpus, row.memory_mb,
                      row.disk_mb, row.pids, row.open_files, row.output_kbps, row.tier,
                      row.memory_bytes, row.disk_bytes, row.created_at, node);
}

Result<std::vector<SnapshotRow>> SelectSnapshots(Database& database, const std::string& node) {
  TRY_ASSIGN(Statement rows, database.Query("SELECT " CAISSON_SNAPSHOT_COLUMNS
                                            " FROM snapshots WHERE node = ? ORDER BY created_at, "
                                            "id",
                                            node));
  std::vector<SnapshotRow> snapshots;
  for (;;) {
    TRY_ASSIGN(bool more, rows.Step());
    if (!more) return snapshots;
    snapshots.push_back({.id = rows.Text(0),
                         .key_id = rows.Text(1),
                         .sandbox_id = rows.Text(2),
                         .name = rows.Text(3),
                         .tag = rows.Text(4),
                         .template_id = rows.Text(5),
                         .alias = rows.Text(6),
                         .env = MapFromJson(rows.Text(7)),
                         .secure = rows.Bool(8),
                         .cpus = rows.Int(9),
                         .memory_mb = rows.Int(10),
                         .disk_mb = rows.Int(11),
                         .pids = rows.Int(12),
                         .open_files = rows.Int(13),
                         .output_kbps = rows.Int(14),
                         .tier = rows.Text(15),
                         .memory_bytes = rows.Int(16),
                         .disk_bytes = rows.Int(17),
                         .created_at = rows.TimeAt(18)});
  }
}

Status InsertEventRow(Database& database, const SandboxEvent& event) {
  return database.Run(
      "INSERT INTO sandbox_events (sandbox_id, at, type, level, message, fields) "
      "VALUES (?,?,?,?,?,?)",
      event.sandbox_id, event.at, event.type, event.level, event.message, MapToJson(event.fields));
}

namespace {

// One statement for both directions would cost the use of the index, so there are two. A text that
// is not what it was without a part has that part: both databases know no other way to look for one
// that minds upper and lower case. Levels are ",a,b,".
#define CAISSON_SELECT_EVENTS                                                    \
  "SELECT id, sandbox_id, at, type, level, message, fields FROM sandbox_events " \
  "WHERE sandbox_id = ?1 AND at >= ?2 AND at <= ?3 "                             \
  "AND (?4 = ',' OR replace(?4, ',' || level || ',', '') <> ?4) "                \
  "AND (?5 = '' OR replace(message, ?5, '') <> message) AND id > ?7 "
constexpr const char* kOldestFirst = CAISSON_SELECT_EVENTS "ORDER BY id ASC LIMIT ?6";
constexpr const char* kNewestFirst = CAISSON_SELECT_EVENTS "ORDER BY id DESC LIMIT ?6";

}  // namespace

Result<std::vector<SandboxEvent>> SelectEvents(Database& database, const std::string& sandbox_id,
                                               const EventQuery& query) {
  std::string levels = ",";
  for (const std::string& level : query.levels) levels += level + ",";
  TRY_ASSIGN(Statement rows,
             database.Query(query.newest_first ? kNewestFirst : kOldestFirst, sandbox_id,
                            query.since.value_or(Time::min()), query.until.value_or(Time::max()),
                            levels, query.text, static_cast<int64_t>(query.limit), query.after_id));
  std::vector<SandboxEvent> events;
  for (;;) {
    TRY_ASSIGN(bool more, rows.Step());
    if (!more) return events;
    SandboxEvent event;
    event.id = rows.Int(0);
    event.sandbox_id = rows.Text(1);
    event.at = rows.TimeAt(2);
    event.type = rows.Text(3);
    event.level = rows.Text(4);
    event.message = rows.Text(5);
    event.fields = MapFromJson(rows.Text(6));
    events.push_back(std::move(event));
  }
}

}  // namespace caisson::store
