#include "work/editors.h"

#include <algorithm>

#include "base/text.h"
#include "work/detached_process.h"
#include "work/json_fields.h"
#include "work/open_ports.h"

namespace caisson::work {
namespace {

constexpr std::string_view kName = "editor";
constexpr std::chrono::hours kLife{24 * 365};  // it ends with its sandbox
constexpr size_t kLastWords = 2'000;

// $1: where the work is, $2: the setting. Begins at home if there is no work yet.
constexpr std::string_view kScript = R"sh(cd "$1" 2>/dev/null; exec sh -c "$2")sh";

CommandRunner RunnerOf(sdk::EnvdClient& envd) {
  return [&envd](sdk::Command command) { return envd.Run(std::move(command)); };
}

std::string PlaceOf(const Config& config, const SandboxRow& row) {
  if (!row.repo_path.empty()) return row.repo_path;
  return row.holder_kind == "build" ? config.build_workspace : config.workspace;
}

}  // namespace

Status Editors::Check() const {
  if (config_.editor_command.empty())
    return Fail(Code::kFailedPrecondition,
                "no_editor: this server has no editor for sandboxes; set editor_command");
  // SECURITY: another server's gateway does not know that this port is private.
  if (sandboxes_.provider().name() != "local")
    return Fail(Code::kUnimplemented, "the provider {} cannot keep the port of an editor private",
                sandboxes_.provider().name());
  return {};
}

Task<Result<SandboxRow>> Editors::Open(std::string owner_id, std::string id) {
  CO_TRY(Check());
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(owner_id, id));
  auto lock = locks_.For(connection.row.id, std::string(kName));
  std::chrono::seconds patience(config_.build_ready_timeout_s);
  CO_TRY_ASSIGN(auto turn, co_await lock->Acquire(patience));
  CO_TRY_ASSIGN(bool listens, co_await Listens(connection.row));
  if (!listens) {
    CO_TRY(co_await Start(connection.envd, connection.row));
    CO_TRY(co_await AwaitPort(connection.envd, connection.row));
  }
  co_return std::move(connection.row);
}

Task<Result<bool>> Editors::Listens(SandboxRow row) {
  CO_TRY_ASSIGN(auto ports, co_await FindOpenPorts(sandboxes_, std::move(row)));
  co_return std::ranges::find(ports, port(), &OpenPort::port) != ports.end();
}

Task<Status> Editors::Start(sdk::EnvdClient& envd, const SandboxRow& row) {
  sdk::Command command;
  command.argv = {
      "/bin/sh", "-c", std::string(kScript), "sh", PlaceOf(config_, row), config_.editor_command};
  command.env = {{"HOST", "127.0.0.1"}, {"PORT", fmt::to_string(port())}};
  command.timeout = kLife;
  // One that was begun by a server before, and has ended since, makes room.
  auto before = co_await AskDetached(RunnerOf(envd), std::string(kName), command.user, kLastWords);
  if (before && !before->running)
    CO_TRY(co_await EndDetached(RunnerOf(envd), std::string(kName), command.user));
  if (!before && before.error().code() != Code::kNotFound) co_return tl::unexpected(before.error());
  co_return co_await StartDetached(RunnerOf(envd), std::string(kName), std::move(command));
}

Task<Status> Editors::AwaitPort(sdk::EnvdClient& envd, const SandboxRow& row) {
  std::string user = sdk::Command().user;
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(config_.build_ready_timeout_s);
  for (;;) {
    CO_TRY_ASSIGN(auto state,
                  co_await AskDetached(RunnerOf(envd), std::string(kName), user, kLastWords));
    CO_TRY_ASSIGN(bool listens, co_await Listens(row));
    if (listens) co_return Status();
    if (!state.running)
      co_return Fail(Code::kUnavailable, "editor_failed: the editor ended with status {}: {}",
                     state.exit_code, ToUtf8(Shorten(Trim(state.output), kLastWords)));
    if (std::chrono::steady_clock::now() >= end) break;
    co_await SleepFor(std::chrono::milliseconds(config_.build_ready_interval_ms));
  }
  CO_TRY(co_await EndDetached(RunnerOf(envd), std::string(kName), user));
  co_return Fail(Code::kDeadlineExceeded,
                 "editor_timeout: the editor did not listen on port {} within {} s", port(),
                 config_.build_ready_timeout_s);
}

}  // namespace caisson::work
