#include "build/local_workbench.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/text.h"
#include "http/client.h"
#include "http/tls.h"
#include "work/detached_process.h"
#include "work/preview_url.h"

namespace caisson::build {
namespace {

constexpr std::string_view kServer = "server";
constexpr std::chrono::milliseconds kShort{30'000};
constexpr std::chrono::milliseconds kFetchTimeout{10'000};
constexpr size_t kServerOutput = 64 << 10;
constexpr size_t kMaxNames = 4 << 20;  // bytes of a list of paths
// A preview's server is ended by the end of its sandbox.
constexpr std::chrono::hours kServerLife{24 * 365};

// $1: the workspace, $2...: directories that tools make, which are left out.
constexpr std::string_view kFind = R"sh(
cd "$1" || exit 0
shift
for name; do set -- "$@" -o -name "$name"; shift; done
find . \( -name '.aider*' -o -type d \( -name .git "$@" \) \) -prune -o -type f -printf '%P\0'
)sh";
constexpr std::array kToolDirectories = {"node_modules", ".venv", "venv",  ".venv-uv",
                                         "__pycache__",  ".next", ".nuxt", ".svelte-kit",
                                         ".cache",       "dist",  "build", "target"};

// What lies in the working directory, by kind and path. Of what package managers fill only the
// directory counts: an installation puts its content right.
constexpr std::string_view kNames = R"sh(
names() {
  find . -mindepth 1 \( -name .git -o -name node_modules -o -name .venv -o -name venv \
    -o -name __pycache__ \) -prune -printf '%y %P\0' -o -printf '%y %P\0' | LC_ALL=C sort -z
}
)sh";

// $1: the workspace, $2: the build. Lists of builds before are of no use any more.
constexpr std::string_view kRemember = R"sh(
list=/tmp/.caisson/before-$2
[ -e "$list" ] && exit 0
mkdir -p "$1" && cd "$1" || exit 1
umask 077; mkdir -p /tmp/.caisson || exit 1
rm -f /tmp/.caisson/before-*
names >"$list.new" && mv "$list.new" "$list"
)sh";

// As above; prints what is missing, but no directories: those come back with what is in them.
constexpr std::string_view kUndo = R"sh(
list=/tmp/.caisson/before-$2
[ -s "$list" ] && cd "$1" && names >"$list.now" || exit 1
LC_ALL=C comm -z -13 "$list" "$list.now" | cut -z -c 3- | xargs -0 -r rm -rf -- || exit 1
LC_ALL=C comm -z -23 "$list" "$list.now" | sed -z -e '/^d/d' -e 's/^..//'
rm -f "$list.now"
)sh";

// $1...: paths below the working directory. Directories that become empty go, too.
constexpr std::string_view kRemove = R"sh(
for path; do
  rm -f -- "$path"
  rmdir -p --ignore-fail-on-non-empty -- "$(dirname -- "$path")" 2>/dev/null
done; exit 0
)sh";

// $1: the port that should answer. With tools if the sandbox has them, else from /proc.
constexpr std::string_view kDiagnose = R"sh(
echo "Ports that are listened on (it should be $1):"
if command -v ss >/dev/null 2>&1; then
  ss -ltnH
else
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r _ local _ state _; do
    [ "$state" = 0A ] && echo "port $((0x${local##*:}))"
  done
fi
echo "Processes:"
for process in /proc/[0-9]*; do
  line=$(tr '\0' ' ' 2>/dev/null <"$process/cmdline")
  [ -n "$line" ] && echo "${process#/proc/} $line"
done | head -n 40
)sh";
constexpr std::chrono::milliseconds kDiagnoseTime{10'000};

sdk::Command Script(std::string_view script, std::vector<std::string> args) {
  sdk::Command command;
  command.argv = {"/bin/sh", "-c", std::string(script), "sh"};
  command.argv.insert(command.argv.end(), args.begin(), args.end());
  command.timeout = kShort;
  return command;
}

work::CommandRunner RunnerOf(sdk::EnvdClient& envd) {
  return [&envd](sdk::Command command) { return envd.Run(std::move(command)); };
}

std::string SnapshotName(const Place& place) { return "build-" + place.build_id; }

// Whether one of the files lies below a directory of this name.
bool HasDirectory(const Files& files, std::string_view name) {
  return std::ranges::any_of(files, [&](const auto& file) {
    auto parts = Split(file.first, '/');
    return std::find(parts.begin(), parts.end() - 1, name) != parts.end() - 1;
  });
}

}  // namespace

PreviewSite MakePreviewSite(const Config& config, uint16_t port) {
  PreviewSite site{.port = port};
  if (config.tls == "auto") site.ca_file = config.data_dir + "/tls/ca.pem";
  std::string host = config.listen.substr(0, config.listen.rfind(':'));
  if (host == "0.0.0.0" || host.empty()) host = "127.0.0.1";
  if (host == "[::]") host = "[::1]";
  site.connect_to = fmt::format("{}:{}", host, port);
  return site;
}

Task<Result<sdk::EnvdClient>> LocalWorkbench::Connect(Place place) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(place.owner_id, place.sandbox_id));
  co_return std::move(connection.envd);
}

// ---- the sandbox -------------------------------------------------------------------------------

Task<std::string> LocalWorkbench::Reopen(std::string owner_id, std::string sandbox_id) {
  if (sandbox_id.empty()) co_return "";
  auto state = co_await sandboxes_.Get(owner_id, sandbox_id);
  if (!state || state->row.destroyed_at) co_return "";
  if (Status runs = co_await sandboxes_.Resume(owner_id, sandbox_id); !runs) {
    LogInfo("a build's sandbox of before cannot be used again",
            {{"sandbox_id", sandbox_id}, {"error", runs.error().message()}});
    co_return "";
  }
  co_return sandbox_id;
}

Task<Result<std::string>> LocalWorkbench::Open(OpenRequest request) {
  std::chrono::seconds life(config_.build_lifetime_s);
  std::string id = co_await Reopen(request.owner_id, request.sandbox_id);
  if (id.empty()) {
    work::SandboxRequest create{
        .owner_id = request.owner_id,
        .holder = {.kind = "build", .id = request.build_id},
        .template_name = !request.snapshot.empty()       ? request.snapshot
                         : request.template_name.empty() ? config_.build_template
                                                         : request.template_name,
        .timeout = life,
        .metadata = {{"build_id", request.build_id}, {"project", request.project}}};
    auto row = co_await sandboxes_.Create(create);
    // A snapshot that is gone is no reason to stop: the files are in the database.
    if (!row && row.error().code() == Code::kNotFound && !request.snapshot.empty()) {
      create.template_name = config_.build_template;
      row = co_await sandboxes_.Create(std::move(create));
    }
    if (!row) co_return tl::unexpected(std::move(row).error());
    id = row->id;
  }
  CO_TRY(co_await Extend(request.owner_id, id));
  co_return id;
}

std::string LocalWorkbench::WorkspaceIn(const std::string& sandbox_id) const {
  std::string own = sandboxes_.provider().Workspace(sandbox_id);
  return own.empty() ? config_.build_workspace : own + "/project";
}

Task<Status> LocalWorkbench::Extend(std::string owner_id, std::string sandbox_id) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(owner_id, sandbox_id));
  co_return co_await sandboxes_.provider().SetTimeout(
      owner_id, connection.row.backend_id, std::chrono::seconds(config_.build_lifetime_s));
}

Task<Status> LocalWorkbench::Pause(Place place) {
  return sandboxes_.Pause(place.owner_id, place.sandbox_id);
}

Task<Status> LocalWorkbench::Wake(Place place) {
  CO_TRY_ASSIGN(auto state, co_await sandboxes_.Get(place.owner_id, place.sandbox_id));
  if (state.row.destroyed_at) co_return Fail(Code::kNotFound, "the sandbox has ended");
  CO_TRY(co_await sandboxes_.Resume(place.owner_id, place.sandbox_id));
  co_return co_await Extend(place.owner_id, place.sandbox_id);
}

Task<Status> LocalWorkbench::Destroy(Place place, std::string reason) {
  Status done = co_await sandboxes_.Destroy(place.owner_id, place.sandbox_id, std::move(reason));
  if (!done && done.error().code() == Code::kNotFound) co_return Status();
  co_return done;
}

Task<Result<std::string>> LocalWorkbench::Snapshot(Place place) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(place.owner_id, place.sandbox_id));
  co_return co_await sandboxes_.provider().Snapshot(place.owner_id, connection.row.backend_id,
                                                    SnapshotName(place));
}

Task<Status> LocalWorkbench::DropSnapshot(Place place) {
  return sandboxes_.provider().DeleteSnapshot(place.owner_id, SnapshotName(place));
}

// ---- files -------------------------------------------------------------------------------------

Task<Status> LocalWorkbench::Remember(Place place) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  CO_TRY_ASSIGN(auto done, co_await envd.Run(Script(std::string(kNames).append(kRemember),
                                                    {place.workspace, place.build_id})));
  if (done.exit_code != 0)
    co_return Fail(Code::kUnavailable, "the workspace cannot be listed: {}",
                   Trim(done.stderr_text));
  co_return Status();
}

Task<Result<std::vector<std::string>>> LocalWorkbench::Undo(Place place) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  sdk::Command undo = Script(std::string(kNames).append(kUndo), {place.workspace, place.build_id});
  undo.max_output = kMaxNames;
  CO_TRY_ASSIGN(auto done, co_await envd.Run(std::move(undo)));
  if (done.exit_code != 0 || done.truncated)
    co_return Fail(Code::kFailedPrecondition, "what was done to its files cannot be undone");
  std::vector<std::string> missing;
  for (std::string_view path : Split(done.stdout_text, '\0'))
    if (!path.empty()) missing.emplace_back(path);
  co_return missing;
}

Task<Status> LocalWorkbench::Put(Place place, Files files, std::vector<std::string> gone) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  CO_TRY(co_await envd.MakeDirectory(place.workspace));
  // Before the others: a file may become a directory.
  for (size_t i = 0; i < gone.size(); i += 100) {
    auto end = gone.begin() + static_cast<ptrdiff_t>(std::min(gone.size(), i + 100));
    sdk::Command remove =
        Script(kRemove, std::vector<std::string>(gone.begin() + static_cast<ptrdiff_t>(i), end));
    remove.cwd = place.workspace;
    CO_TRY(co_await envd.Run(std::move(remove)));
  }
  for (auto& [path, content] : files)
    CO_TRY(co_await envd.WriteFile(place.workspace + "/" + path, std::move(content)));
  co_return Status();
}

Task<Result<std::set<std::string>>> LocalWorkbench::PathsIn(Place place, sdk::EnvdClient& envd,
                                                            const Files& before) {
  std::vector<std::string> args = {place.workspace};
  for (std::string_view name : kToolDirectories)
    if (!HasDirectory(before, name)) args.emplace_back(name);
  sdk::Command find = Script(kFind, std::move(args));
  find.max_output = kMaxNames;
  CO_TRY_ASSIGN(auto found, co_await envd.Run(std::move(find)));
  if (found.exit_code != 0)
    co_return Fail(Code::kUnavailable, "the files of the workspace cannot be listed");
  // Names that no version can hold stay in the sandbox only.
  std::set<std::string> paths;
  for (std::string_view path : Split(found.stdout_text, '\0'))
    if (!path.empty() && CheckPath(path)) paths.emplace(path);
  if (found.truncated || std::ssize(paths) > config_.build_max_files)
    co_return Fail(Code::kInvalidArgument,
                   "there are more than {} files in the workspace, which is all that a version may "
                   "have (build_max_files)",
                   config_.build_max_files);
  for (const auto& [path, content] : before) paths.insert(path);
  co_return paths;
}

Task<Result<Collected>> LocalWorkbench::Collect(Place place, Files before) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  CO_TRY_ASSIGN(auto paths, co_await PathsIn(place, envd, before));
  Collected all;
  for (const std::string& path : paths) {
    auto content = co_await envd.ReadFile(place.workspace + "/" + path,
                                          static_cast<size_t>(config_.build_max_file_bytes));
    // Gone, or a directory in its place.
    if (!content && (content.error().code() == Code::kNotFound ||
                     content.error().code() == Code::kInvalidArgument))
      continue;
    bool large = !content && content.error().code() == Code::kOutOfRange;
    if (!content && !large) co_return tl::unexpected(std::move(content).error());
    if (!large)
      all.files[path] = std::move(*content);
    else if (!before.contains(path))
      all.too_large.push_back(path);
    else
      co_return Fail(Code::kInvalidArgument,
                     "\"{}\" cannot be kept any more: it has more than {} bytes", path,
                     config_.build_max_file_bytes);
  }
  co_return all;
}

Task<Result<std::string>> LocalWorkbench::Read(Place place, std::string path, size_t max_bytes) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  co_return co_await envd.ReadFile(std::move(path), max_bytes);
}

// ---- commands ----------------------------------------------------------------------------------

Task<Result<sdk::CommandResult>> LocalWorkbench::Run(Place place, std::string name,
                                                     sdk::Command command) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  if (work::AgentLoop::Runs(command))
    co_return co_await loop_.Run({.owner_id = place.owner_id,
                                  .execution_id = place.build_id,
                                  .sandbox_id = place.sandbox_id},
                                 envd, std::move(command));
  co_return co_await work::RunDetached(
      RunnerOf(envd), fmt::format("build-{}-{}", place.build_id, name), std::move(command));
}

Task<Status> LocalWorkbench::EndCommands(Place place) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  CO_TRY_ASSIGN(auto found,
                co_await envd.Run(Script(R"sh(cd /tmp/.caisson && ls -d "build-$1"-* ; exit 0)sh",
                                         {place.build_id})));
  for (std::string_view name : Split(found.stdout_text, '\n'))
    if (!name.empty() && !name.ends_with(".old"))
      CO_TRY(co_await work::EndDetached(RunnerOf(envd), std::string(name), sdk::Command().user));
  co_return Status();
}

Task<Status> LocalWorkbench::StartServer(Place place, sdk::Command command, int64_t port) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  CO_TRY(co_await work::EndDetached(RunnerOf(envd), std::string(kServer), command.user));
  // One that an agent has started, or that came back with a snapshot.
  CO_TRY(co_await envd.Run(
      Script("fuser -s -k -n tcp \"$1\" 2>/dev/null; exit 0", {std::to_string(port)})));
  command.timeout = kServerLife;
  co_return co_await work::StartDetached(RunnerOf(envd), std::string(kServer), std::move(command));
}

Task<Result<ServerState>> LocalWorkbench::AskServer(Place place) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  CO_TRY_ASSIGN(auto state, co_await work::AskDetached(RunnerOf(envd), std::string(kServer),
                                                       sdk::Command().user, kServerOutput));
  co_return ServerState{state.running, state.exit_code, std::move(state.output)};
}

Task<Result<std::string>> LocalWorkbench::Diagnose(Place place, int64_t port) {
  CO_TRY_ASSIGN(auto envd, co_await Connect(place));
  sdk::Command look = Script(kDiagnose, {std::to_string(port)});
  look.timeout = kDiagnoseTime;
  look.max_output = kServerOutput;
  CO_TRY_ASSIGN(auto seen, co_await envd.Run(std::move(look)));
  co_return std::move(seen.stdout_text);
}

// ---- previews ----------------------------------------------------------------------------------

Task<Result<std::string>> LocalWorkbench::UrlOf(Place place, int64_t port) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(place.owner_id, place.sandbox_id));
  co_return work::PreviewUrl(sandboxes_.provider(), config_, site_.port, connection.row.backend_id,
                             static_cast<uint16_t>(port));
}

Task<Result<http::ResponseHead>> LocalWorkbench::Fetch(std::string url) {
  size_t start = url.find("://");
  if (start == std::string::npos) co_return Fail(Code::kInvalidArgument, "'{}' is no URL", url);
  bool tls = url.starts_with("https://"), local = sandboxes_.provider().name() == "local";
  std::string host = url.substr(start + 3), where = host;
  if (where.find(':') == std::string::npos) where += tls ? ":443" : ":80";
  // Names of previews are known to browsers; this host may not resolve them.
  std::string dialled = local ? site_.connect_to : "";
  CO_TRY_ASSIGN(auto connection, tls ? co_await http::ConnectTls(where, local ? site_.ca_file : "",
                                                                 kFetchTimeout, {}, {}, dialled)
                                     : co_await http::ClientConnection::Connect(
                                           dialled.empty() ? where : dialled, kFetchTimeout));
  http::RequestHead head{
      .method = "GET", .target = "/", .headers = {{"Host", host}, {"Accept", "text/html,*/*"}}};
  auto ask = [](http::ClientConnection& to,
                http::RequestHead request) -> Task<Result<http::ResponseHead>> {
    CO_TRY(co_await to.SendHead(std::move(request), 0));
    co_return co_await to.ReadHead();
  };
  co_return co_await WithDeadline(kFetchTimeout, "asking the preview",
                                  ask(*connection, std::move(head)));
}

}  // namespace caisson::build
