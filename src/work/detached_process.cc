#include "work/detached_process.h"

#include "base/text.h"

namespace caisson::work {
namespace {

constexpr std::chrono::milliseconds kShort{30'000};
constexpr int kGone = 125;      // of the follower: the process vanished without an exit status
constexpr int kTimedOut = 124;  // as of timeout(1)

// $1: the directory, $2: seconds, $3...: the command. The directory is made once by whoever comes
// first; its standard input was put there before. Nothing of the caller's pipes is inherited, so
// that envd sees the end of this command at once. Its time is counted in short sleeps: a clock
// would go on while the sandbox stands still, a sleep that ends late is only one.
constexpr std::string_view kStart = R"sh(
d=$1; limit=$2; shift 2
mkdir "$d/started" 2>/dev/null || exit 0
: >"$d/out"; : >"$d/err"
setsid sh -c '
  d=$1; limit=$2; shift 2
  setsid "$@" <"$d/stdin" >"$d/out" 2>"$d/err" &
  child=$!
  echo $child >"$d/child"
  (
    while [ "$limit" -gt 0 ]; do
      nap=$limit; [ "$nap" -gt 5 ] && nap=5
      sleep $nap; limit=$((limit-nap))
    done
    : >"$d/late"
    kill -s TERM -- -$child; sleep 10; kill -s KILL -- -$child
  ) &
  watch=$!
  wait $child
  status=$?
  kill $watch
  [ -e "$d/late" ] && status=124
  echo $status >"$d/exit.new"; mv "$d/exit.new" "$d/exit"
' caisson-agent "$d" "$limit" "$@" </dev/null >/dev/null 2>&1 &
echo $! >"$d/pid.new"; mv "$d/pid.new" "$d/pid"
)sh";

// $1: the directory. Two open files remember how far they were read; the end is looked for before
// the last reading, so that nothing is missed.
constexpr std::string_view kFollow = R"sh(
d=$1; tries=0
while [ ! -e "$d/pid" ]; do
  tries=$((tries+1)); [ $tries -gt 100 ] && exit 125
  sleep 0.1
done
exec 3<"$d/out" 4<"$d/err"
while :; do
  end=
  if [ -e "$d/exit" ]; then end=1
  elif ! kill -0 "$(cat "$d/pid")" 2>/dev/null; then
    sleep 0.2; [ -e "$d/exit" ] || end=gone
  fi
  cat <&3; cat <&4 >&2
  [ -n "$end" ] && break
  sleep 0.2
done
[ "$end" = gone ] && exit 125
exit "$(cat "$d/exit")"
)sh";

// $1: the directory. The command and the shell around it lead groups that setsid made.
constexpr std::string_view kEnd = R"sh(
d=$1
[ -d "$d" ] || exit 0
for signal in TERM KILL; do
  for file in child pid; do
    [ -s "$d/$file" ] && kill -s $signal -- "-$(cat "$d/$file")" 2>/dev/null
  done
  [ $signal = TERM ] && sleep 0.3
done
rm -rf "$d.old"; mv "$d" "$d.old"
)sh";

// $1: the directory, $2: bytes. The first line of the answer is "running" or the exit status.
constexpr std::string_view kAsk = R"sh(
d=$1
[ -e "$d/pid" ] || exit 3
if [ -e "$d/exit" ]; then cat "$d/exit"
elif kill -0 "$(cat "$d/pid")" 2>/dev/null; then echo running
else echo 125
fi
tail -c "$2" "$d/out"; tail -c "$2" "$d/err"
)sh";

std::string DirectoryOf(const std::string& name) { return "/tmp/.caisson/" + name; }

sdk::Command Script(std::string_view script, std::vector<std::string> args,
                    const std::string& user) {
  sdk::Command command;
  command.argv = {"/bin/sh", "-c", std::string(script), "sh"};
  command.argv.insert(command.argv.end(), args.begin(), args.end());
  command.user = user;
  command.timeout = kShort;
  return command;
}

Task<Result<sdk::CommandResult>> RunWell(CommandRunner run, sdk::Command command,
                                         std::string doing) {
  CO_TRY_ASSIGN(auto result, co_await run(std::move(command)));
  if (result.exit_code != 0)
    co_return Fail(Code::kUnavailable, "{} failed with status {}: {}", doing, result.exit_code,
                   Trim(result.stderr_text));
  co_return result;
}

Task<Status> Begin(CommandRunner run, std::string directory, sdk::Command command) {
  sdk::Command put =
      Script(R"sh(umask 077; mkdir -p "$1" && [ -d "$1/started" ] || cat >"$1/stdin")sh",
             {directory}, command.user);
  put.stdin_text = command.stdin_text;
  CO_TRY(co_await RunWell(run, std::move(put), "preparing the agent"));
  auto limit = std::chrono::duration_cast<std::chrono::seconds>(command.timeout);
  sdk::Command start = Script(kStart, {directory, std::to_string(limit.count())}, command.user);
  start.argv.insert(start.argv.end(), command.argv.begin(), command.argv.end());
  start.cwd = command.cwd;
  start.env = command.env;
  CO_TRY(co_await RunWell(run, std::move(start), "starting the agent"));
  co_return Status();
}

}  // namespace

Task<Result<sdk::CommandResult>> RunDetached(CommandRunner run, std::string name,
                                             sdk::Command command) {
  std::string directory = DirectoryOf(name);
  CO_TRY(co_await Begin(run, directory, command));
  sdk::Command follow = Script(kFollow, {directory}, command.user);
  follow.timeout = command.timeout + std::chrono::seconds(60);
  follow.max_output = command.max_output;
  follow.on_output = command.on_output;
  CO_TRY_ASSIGN(auto result, co_await run(std::move(follow)));
  if (result.exit_code == kGone)
    co_return Fail(Code::kUnavailable, "the agent's process is gone without a trace");
  if (result.exit_code == kTimedOut) result.timed_out = true;
  co_return result;
}

Task<Status> StartDetached(CommandRunner run, std::string name, sdk::Command command) {
  co_return co_await Begin(std::move(run), DirectoryOf(name), std::move(command));
}

Task<Result<DetachedState>> AskDetached(CommandRunner run, std::string name, std::string user,
                                        size_t max_output) {
  sdk::Command ask = Script(kAsk, {DirectoryOf(name), std::to_string(max_output)}, user);
  ask.max_output = 2 * max_output + 64;
  CO_TRY_ASSIGN(auto result, co_await run(std::move(ask)));
  if (result.exit_code == 3) co_return Fail(Code::kNotFound, "there is no process {}", name);
  std::string_view text = result.stdout_text;
  std::string_view first = text.substr(0, text.find('\n'));
  DetachedState state{.running = first == "running",
                      .exit_code = ParseInt<int>(first).value_or(kGone)};
  if (first.size() < text.size()) state.output = text.substr(first.size() + 1);
  if (state.running) state.exit_code = 0;
  co_return state;
}

Task<Status> EndDetached(CommandRunner run, std::string name, std::string user) {
  CO_TRY(co_await RunWell(run, Script(kEnd, {DirectoryOf(name)}, user), "ending the agent"));
  co_return Status();
}

Task<Status> ForgetDetached(CommandRunner run, std::string name, std::string user) {
  sdk::Command remove = Script(R"sh(rm -rf "$1" "$1.old")sh", {DirectoryOf(name)}, user);
  CO_TRY(co_await RunWell(run, std::move(remove), "removing the agent's output"));
  co_return Status();
}

}  // namespace caisson::work
