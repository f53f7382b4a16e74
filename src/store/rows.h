// How rows of the database become values and back. SQL text that names columns lives here and in
// sql_store.cc only.
#pragma once

#include "store/database.h"
#include "store/store.h"

namespace caisson::store {

// A map of strings as a JSON object; text that is no such object reads as an empty map.
std::string MapToJson(const std::map<std::string, std::string>& map);
std::map<std::string, std::string> MapFromJson(const std::string& json);

// A JSON object with the limits that are set, by their names.
std::string KeyLimitsToJson(const KeyLimits& limits);
KeyLimits KeyLimitsFromJson(const std::string& json);

// `node` is the server that has it.
Status InsertSandboxRow(Database& database, const SandboxRow& row, const std::string& node);
// kNotFound if there is no such row or it is one of a killed sandbox.
Status UpdateSandboxRow(Database& database, const SandboxRow& row);
// Reads the current row of a statement that selects CAISSON_SANDBOX_COLUMNS.
SandboxRow ReadSandboxRow(const Statement& statement);

Status InsertSnapshotRow(Database& database, const SnapshotRow& row, const std::string& node);
Result<std::vector<SnapshotRow>> SelectSnapshots(Database& database, const std::string& node);

Status InsertEventRow(Database& database, const SandboxEvent& event);
Result<std::vector<SandboxEvent>> SelectEvents(Database& database, const std::string& sandbox_id,
                                               const EventQuery& query);

#define CAISSON_SANDBOX_COLUMNS                                                                  \
  "id, key_id, template_id, alias, state, reason, metadata, env, secure, allow_internet, "       \
  "allow_public_traffic, network_json, mask_request_host, cpus, memory_mb, disk_mb, timeout_s, " \
  "idempotency_key, request_hash, started_at, end_at, ended_at, pids, open_files, output_kbps, " \
  "auto_pause, auto_pause_memory, auto_resume, saved_tier, saved_why, saved_memory_bytes, "      \
  "saved_disk_bytes"

}  // namespace caisson::store
