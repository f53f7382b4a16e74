// The Process service, over HTTP, as clients see it.
#include <signal.h>
#include <sys/socket.h>

#include <fstream>

#include "base/encoding.h"
#include "envd/proc.h"
#include "envd/test_support.h"

namespace caisson::envd {
namespace {

using ProcessTest = Fixture;
using ProcessLimitTest = Unbooted;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorCode(const Reply& reply) {
  return std::string(reply.Json().at("code").as_string());
}

json::object Select(int64_t pid) { return {{"process", {{"pid", pid}}}}; }

json::object InputOf(int64_t pid, std::string_view kind, std::string_view data) {
  return {{"process", {{"pid", pid}}}, {"input", {{kind, Base64Encode(data)}}}};
}

TEST_F(ProcessTest, RunsACommandToItsEnd) {
  Outcome outcome = Bash("echo out; echo err >&2");
  EXPECT_GT(outcome.pid, 0);
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(outcome.end, (json::object{{"exited", true}, {"status", "exit status 0"}}));
  EXPECT_TRUE(outcome.error.empty());
}

TEST_F(ProcessTest, TheFirstEventIsStartAndTheLastEnvelopeIsEmpty) {
  Call call = Stream("process.Process/Start", BashRequest("true"));
  auto first = call.Next();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->body.at("event").as_object().contains("start"));
  std::optional<Message> last;
  while (auto message = call.Next()) {
    last = message;
    if (message->last()) break;
  }
  ASSERT_TRUE(last && last->last());
  EXPECT_EQ(last->flags, 2);
  EXPECT_EQ(json::serialize(last->body), "{}");
}

TEST_F(ProcessTest, TellsExitCodesAndSignalsAsGoDoes) {
  EXPECT_EQ(Bash("exit 3").end, (json::object{{"exitCode", 3},
                                              {"exited", true},
                                              {"status", "exit status 3"},
                                              {"error", "exit status 3"}}));
  EXPECT_EQ(
      Bash("kill -9 $$").end,
      (json::object{{"exitCode", -1}, {"status", "signal: killed"}, {"error", "signal: killed"}}));
  EXPECT_EQ(Bash("kill -TERM $$").end.at("status").as_string(), "signal: terminated");
  EXPECT_EQ(Bash("kill -HUP $$").end.at("status").as_string(), "signal: hangup");
}

TEST_F(ProcessTest, GivesTheEnvironmentInOrder) {
  json::object request = BashRequest("echo $HOME:$USER:$LOGNAME:$E2B_SANDBOX:$E2B_SANDBOX_ID:$A");
  request["process"].as_object()["envs"] = {{"A", "mine"}, {"USER", "other"}};
  const User& user = *Accounts::Current()->Find(CurrentUser());
  EXPECT_EQ(Run(request).out, user.home + ":other:" + user.name + ":true:itestsandbox:mine\n");
  EXPECT_THAT(Bash("echo $PATH").out, HasSubstr("/bin"));
  EXPECT_THAT(Bash("env").out, Not(HasSubstr("CAISSON_")));
}

TEST_F(ProcessLimitTest, CreatorVariablesDoNotHideEnvdsOwn) {
  settings.env_vars = {{"E2B_SANDBOX", "no"}, {"SHARED", "global"}};
  Boot();
  EXPECT_EQ(Bash("echo $E2B_SANDBOX $SHARED").out, "true global\n");
}

TEST_F(ProcessTest, StartsInTheRightDirectory) {
  EXPECT_EQ(Bash("pwd").out, dir + "\n");  // the default working directory
  json::object request = BashRequest("pwd");
  request["process"].as_object()["cwd"] = "/usr";
  EXPECT_EQ(Run(request).out, "/usr\n");
  request["process"].as_object()["cwd"] = "~";
  EXPECT_EQ(Run(request).out, Accounts::Current()->Find(CurrentUser())->home + "\n");
  request["process"].as_object()["cwd"] = "/no/such";
  Outcome failed = Run(request);
  EXPECT_EQ(failed.error.at("code").as_string(), "invalid_argument");
  EXPECT_EQ(failed.error.at("message").as_string(), "cwd '/no/such' does not exist");
}

TEST_F(ProcessTest, RefusesWhatCannotRun) {
  for (auto cmd : {"/no/such/program", "no-such-program", "", "/etc/passwd"}) {
    Outcome outcome = Run({{"process", {{"cmd", cmd}}}});
    EXPECT_EQ(outcome.pid, 0) << cmd;
    EXPECT_EQ(outcome.error.at("code").as_string(), "invalid_argument") << cmd;
  }
  json::object nul = BashRequest(std::string("echo \0", 6));
  EXPECT_EQ(Run(nul).error.at("code").as_string(), "invalid_argument");
  Outcome user = Bash("true", {{"Authorization", "Basic " + Base64Encode("ghost:")}});
  EXPECT_EQ(user.error.at("code").as_string(), "unauthenticated");
  EXPECT_EQ(user.error.at("message").as_string(), "invalid username: 'ghost'");
  EXPECT_EQ(Unary("process.Process/List", {}).body, "{}");
}

TEST_F(ProcessTest, FindsProgramsByPathAndRunsThemWithoutAShell) {
  Outcome outcome = Run({{"process", {{"cmd", "echo"}, {"args", {"a  b", "$HOME"}}}}});
  EXPECT_EQ(outcome.out, "a  b $HOME\n");
}

TEST_F(ProcessTest, CarriesBigAndBinaryOutput) {
  Outcome outcome = Bash("head -c 3000000 /dev/zero; printf '\\xe2\\x00\\xff'");
  ASSERT_EQ(outcome.out.size(), 3'000'003u);
  EXPECT_EQ(outcome.out.substr(3'000'000), std::string("\xe2\x00\xff", 3));
}

TEST_F(ProcessTest, StdinIsOpenUnlessRefused) {
  Call call = Stream("process.Process/Start", {{"process", {{"cmd", "cat"}}}});
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  EXPECT_EQ(Unary("process.Process/SendInput", InputOf(pid, "stdin", "one ")).status, 200u);
  EXPECT_EQ(Unary("process.Process/SendInput", InputOf(pid, "stdin", "two")).status, 200u);
  EXPECT_EQ(Unary("process.Process/CloseStdin", Select(pid)).status, 200u);
  EXPECT_EQ(call.Collect().out, "one two");
  EXPECT_EQ(Bash("cat; echo done").out, "done\n");  // stdin:false is /dev/null
}

TEST_F(ProcessTest, InputErrorsHaveTheirCodes) {
  Call plain = Stream("process.Process/Start", BashRequest("sleep 30"));
  int64_t pid = plain.Next()->body.at("event").at("start").at("pid").as_int64();
  EXPECT_EQ(ErrorCode(Unary("process.Process/SendInput", InputOf(pid, "stdin", "x"))), "internal");
  EXPECT_EQ(ErrorCode(Unary("process.Process/SendInput", InputOf(pid, "pty", "x"))), "internal");
  EXPECT_EQ(ErrorCode(Unary("process.Process/SendInput", Select(pid))), "unimplemented");
  EXPECT_EQ(Unary("process.Process/CloseStdin", Select(pid)).status, 200u);
  json::object resize = Select(pid);
  resize["pty"] = {{"size", {{"cols", 10}, {"rows", 10}}}};
  EXPECT_EQ(ErrorCode(Unary("process.Process/Update", resize)), "internal");
  EXPECT_EQ(ErrorCode(Unary("process.Process/SendInput", {{"input", {{"stdin", ""}}}})),
            "unimplemented");
  Reply missing = Unary("process.Process/SendInput", InputOf(999999, "stdin", "x"));
  EXPECT_EQ(missing.status, 404u);
  EXPECT_EQ(missing.body, R"({"code":"not_found","message":"process with pid 999999 not found"})");
  json::object signal = Select(pid);
  signal["signal"] = "SIGNAL_UNSPECIFIED";
  EXPECT_EQ(ErrorCode(Unary("process.Process/SendSignal", signal)), "unimplemented");
  signal["signal"] = 9;  // enums come by number, too
  EXPECT_EQ(Unary("process.Process/SendSignal", signal).status, 200u);
  EXPECT_EQ(plain.Collect().end.at("status").as_string(), "signal: killed");
}

TEST_F(ProcessTest, InputThatIsNotReadWaitsWithoutBlockingOthers) {
  auto began = std::chrono::steady_clock::now();
  Call call = Stream("process.Process/Start",
                     {{"process", {{"cmd", "bash"}, {"args", {"-c", "sleep 1; wc -c"}}}}});
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  std::string big(500'000, 'x');  // far more than a pipe holds
  EXPECT_EQ(Unary("process.Process/SendInput", InputOf(pid, "stdin", big)).status, 200u);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);  // when somebody reads
  Reply late = Unary("process.Process/SendInput", InputOf(pid, "stdin", "y"),
                     {{"Connect-Timeout-Ms", "30000"}});
  EXPECT_EQ(late.status, 200u);
  Unary("process.Process/CloseStdin", Select(pid));
  EXPECT_EQ(call.Collect().out, "500001\n");
}

TEST_F(ProcessTest, StreamInputAppliesEachMessageAtOnce) {
  Call process = Stream("process.Process/Start", {{"process", {{"cmd", "cat"}}}});
  int64_t pid = process.Next()->body.at("event").at("start").at("pid").as_int64();
  Call input = Stream("process.Process/StreamInput", {{"start", Select(pid)}}, {}, false);
  input.Write({{"data", {{"input", {{"stdin", Base64Encode("first")}}}}}});
  auto event = process.Next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->body.at("event").at("data").at("stdout").as_string(), Base64Encode("first"));
  input.Write({{"keepalive", json::object()}});
  input.Write({{"data", {{"input", {{"stdin", Base64Encode("second")}}}}}});
  input.Finish();
  auto answer = input.Next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(json::serialize(answer->body), "{}");
  auto end = input.Next();
  ASSERT_TRUE(end && end->last());
  EXPECT_TRUE(end->body.empty());
  // The end of the stream does not end stdin.
  EXPECT_EQ(Unary("process.Process/SendInput", InputOf(pid, "stdin", "!")).status, 200u);
  Unary("process.Process/CloseStdin", Select(pid));
  EXPECT_EQ(process.Collect().out, "second!");
}

TEST_F(ProcessTest, StreamInputAnswersEarlyWhenTheProcessIsUnknown) {
  Call input = Stream("process.Process/StreamInput", {{"start", Select(999999)}}, {}, false);
  auto head = Await(WithDeadline(30s, "the answer", input.connection().ReadHead()));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200u);
  auto end = input.Next();
  ASSERT_TRUE(end && end->last());
  EXPECT_EQ(end->body.at("error").at("code").as_string(), "not_found");
}

TEST_F(ProcessTest, ListsLiveProcessesWithTheirConfig) {
  json::object request = BashRequest("sleep 30");
  request["tag"] = "worker";
  Call call = Stream("process.Process/Start", request);
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  json::value list = Unary("process.Process/List", {}).Json();
  ASSERT_EQ(list.at("processes").as_array().size(), 1u);
  const json::value& info = list.at("processes").at(0);
  EXPECT_EQ(info.at("pid").as_int64(), pid);
  EXPECT_EQ(info.at("tag").as_string(), "worker");
  EXPECT_EQ(info.at("config").at("cmd").as_string(), "/bin/bash");
  EXPECT_EQ(info.at("config").at("args").at(1).as_string(), "sleep 30");
  // By tag, in snake_case where there is any, with null for absent fields.
  Reply reply =
      Unary("process.Process/SendSignal", {{"process", {{"tag", "worker"}, {"pid", nullptr}}},
                                           {"signal", "SIGNAL_SIGTERM"},
                                           {"unknown_field", 1}});
  EXPECT_EQ(reply.status, 200u) << reply.body;
  EXPECT_EQ(call.Collect().end.at("status").as_string(), "signal: terminated");
  EXPECT_EQ(Unary("process.Process/List", {}).body, "{}");
}

TEST_F(ProcessTest, AKillDoesNotWaitForThoseWhoHoldTheOutput) {
  Call call = Stream("process.Process/Start", BashRequest("sleep 60 & echo $!; wait"));
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  std::string text =
      Base64Decode(call.Next()->body.at("event").at("data").at("stdout").as_string()).value_or("");
  pid_t grandchild = std::stoi(text);
  json::object signal = Select(pid);
  signal["signal"] = "SIGNAL_SIGKILL";
  Unary("process.Process/SendSignal", signal);
  auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(call.Collect().end.at("status").as_string(), "signal: killed");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);  // of a minute
  EXPECT_TRUE(ProcessExists(grandchild));                    // only the process itself was hit
  kill(grandchild, SIGKILL);
}

TEST_F(ProcessTest, OutputBeforeAKillIsNotLost) {
  Call call = Stream("process.Process/Start", BashRequest("echo before; : > written; sleep 60"));
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  // The daemon does not run meanwhile: the pipe holds it.
  for (int i = 0; i < 3000 && !std::ifstream(Path("written")).good(); ++i)
    std::this_thread::sleep_for(10ms);
  json::object signal = Select(pid);
  signal["signal"] = "SIGNAL_SIGKILL";
  Unary("process.Process/SendSignal", signal);
  EXPECT_EQ(call.Collect().out, "before\n");
}

TEST_F(ProcessTest, ATimeoutKillsTheWholeTree) {
  auto began = std::chrono::steady_clock::now();
  Outcome outcome = Bash("sleep 61 & echo $!; (sleep 62 & echo $!; wait) & wait",
                         {{"Connect-Timeout-Ms", "3000"}});
  EXPECT_EQ(outcome.error.at("code").as_string(), "deadline_exceeded");
  EXPECT_TRUE(outcome.end.empty());
  auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, 2900ms);
  EXPECT_LT(took, 30s);
  std::istringstream pids(outcome.out);
  int count = 0;
  for (int64_t pid; pids >> pid; ++count)
    EXPECT_TRUE(Until([&] { return !ProcessExists(pid); })) << pid;
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(Until([&] { return !ProcessExists(outcome.pid); }));
  EXPECT_EQ(Unary("process.Process/List", {}).body, "{}");
}

TEST_F(ProcessTest, ATimeoutWorksWithoutAListener) {
  int64_t pid = 0;
  {
    Call call =
        Stream("process.Process/Start", BashRequest("sleep 60"), {{"Connect-Timeout-Ms", "3000"}});
    pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  }
  Wait(200ms);
  EXPECT_TRUE(ProcessExists(pid));  // a client that goes away does not kill
  EXPECT_TRUE(Until([&] { return !ProcessExists(pid); }));
}

TEST_F(ProcessTest, TimeInWhichEnvdWasFrozenDoesNotCount) {
  json::object request{{"process", {{"cmd", "cat"}}}};
  Call call = Stream("process.Process/Start", request, {{"Connect-Timeout-Ms", "3000"}});
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  std::this_thread::sleep_for(4s);  // the daemon's loop is this thread's
  Wait(200ms);
  EXPECT_TRUE(ProcessExists(pid));
  EXPECT_EQ(Unary("process.Process/SendInput", InputOf(pid, "stdin", "awake")).status, 200u);
  Outcome outcome = call.Collect();
  EXPECT_EQ(outcome.out, "awake");
  EXPECT_EQ(outcome.error.at("code").as_string(), "deadline_exceeded");
  EXPECT_TRUE(Until([&] { return !ProcessExists(pid); }));
}

// What a pause does to clients: every connection is cut, processes and terminals stay.
TEST_F(ProcessTest, ProcessesAndTerminalsOutliveTheirConnections) {
  auto reset = [](Call& call) {
    linger now{1, 0};
    int fd = call.connection().stream().PlainSocket();
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  };
  json::object terminal = BashRequest("stty -echo; while read x; do echo seen $x; done");
  terminal["pty"] = {{"size", {{"cols", 80}, {"rows", 24}}}};
  int64_t plain_pid = 0, pty_pid = 0;
  {
    Call plain = Stream(
        "process.Process/Start",
        {{"process",
          {{"cmd", "/bin/bash"}, {"args", {"-c", "head -c 50M /dev/zero; read x; echo got $x"}}}}});
    Call pty = Stream("process.Process/Start", terminal);
    plain_pid = plain.Next()->body.at("event").at("start").at("pid").as_int64();
    pty_pid = pty.Next()->body.at("event").at("start").at("pid").as_int64();
    reset(plain);
    reset(pty);
  }
  Wait(1s);  // 50 MB that nobody follows are read and dropped
  EXPECT_EQ(Unary("process.Process/List", {}).Json().at("processes").as_array().size(), 2u);
  Call plain = Stream("process.Process/Connect", Select(plain_pid));
  Call pty = Stream("process.Process/Connect", Select(pty_pid));
  ASSERT_TRUE(plain.Next() && pty.Next());
  Unary("process.Process/SendInput", InputOf(plain_pid, "stdin", "it\n"));
  Unary("process.Process/SendInput", InputOf(pty_pid, "pty", "me\n\x04"));
  EXPECT_THAT(plain.Collect().out, testing::EndsWith("got it\n"));
  EXPECT_THAT(pty.Collect().pty, HasSubstr("seen me"));
}

TEST_F(ProcessLimitTest, AnInitKeepsTheEndsForThoseWhoComeBack) {
  settings.limits.retain_end_ms = 3000;
  Boot();
  int64_t pid = Bash("exit 3").pid;
  std::this_thread::sleep_for(3100ms);  // frozen
  EXPECT_EQ(Http("POST", "/init").status, 204u);
  Outcome outcome = Stream("process.Process/Connect", Select(pid)).Collect();
  EXPECT_EQ(outcome.end.at("exitCode").as_int64(), 3);
}

TEST_F(ProcessTest, LateConnectGetsTheRetainedEnd) {
  Outcome first = Bash("exit 5");
  Call call = Stream("process.Process/Connect", Select(first.pid));
  Outcome again = call.Collect();
  EXPECT_EQ(again.pid, first.pid);
  EXPECT_EQ(again.end, first.end);
  Outcome unknown = Stream("process.Process/Connect", Select(999998)).Collect();
  EXPECT_EQ(unknown.error.at("code").as_string(), "not_found");
}

TEST_F(ProcessLimitTest, TheEndIsForgottenAfterItsTime) {
  settings.limits.retain_end_ms = 100;
  Boot();
  Outcome first = Bash("true");
  Wait(200ms);
  Outcome late = Stream("process.Process/Connect", Select(first.pid)).Collect();
  EXPECT_EQ(late.error.at("code").as_string(), "not_found");
}

TEST_F(ProcessTest, SeveralClientsFollowOneProcess) {
  Call starter = Stream("process.Process/Start", {{"process", {{"cmd", "cat"}}}});
  int64_t pid = starter.Next()->body.at("event").at("start").at("pid").as_int64();
  Call second = Stream("process.Process/Connect", Select(pid));
  Call third = Stream("process.Process/Connect", Select(pid));
  EXPECT_TRUE(second.Next()->body.at("event").as_object().contains("start"));
  EXPECT_TRUE(third.Next()->body.at("event").as_object().contains("start"));
  Unary("process.Process/SendInput", InputOf(pid, "stdin", "to all"));
  Unary("process.Process/CloseStdin", Select(pid));
  for (Call* call : {&starter, &second, &third}) {
    Outcome outcome = call->Collect();
    EXPECT_EQ(outcome.out, "to all");
    EXPECT_EQ(outcome.end.at("status").as_string(), "exit status 0");
  }
}

TEST_F(ProcessTest, KeepalivesComeInSilence) {
  auto began = std::chrono::steady_clock::now();
  Outcome outcome = Bash("sleep 3.5", {{"Keepalive-Ping-Interval", "1"}});
  EXPECT_GE(outcome.keepalives, 2);
  // One per second: on a busy machine it takes longer, and there are more.
  EXPECT_LE(outcome.keepalives, (std::chrono::steady_clock::now() - began) / 1s);
}

TEST_F(ProcessTest, ATerminalHasItsSizeAndInput) {
  json::object request =
      BashRequest("tty; stty size; read line; stty size; echo got $line; [ -t 0 ]");
  request["pty"] = {{"size", {{"cols", 80}, {"rows", 24}}}};
  Call call = Stream("process.Process/Start", request);
  int64_t pid = call.Next()->body.at("event").at("start").at("pid").as_int64();
  json::object resize = Select(pid);
  resize["pty"] = {{"size", {{"cols", 100}, {"rows", 30}}}};
  std::string shown;
  while (shown.find("24 80") == std::string::npos) {
    auto message = call.Next();
    ASSERT_TRUE(message && !message->last()) << shown;
    shown += Base64Decode(message->body.at("event").at("data").at("pty").as_string()).value_or("");
  }
  EXPECT_EQ(Unary("process.Process/Update", resize).status, 200u);
  Reply wrong = Unary("process.Process/SendInput", InputOf(pid, "stdin", "x"));
  EXPECT_EQ(ErrorCode(wrong), "internal");
  EXPECT_EQ(ErrorCode(Unary("process.Process/CloseStdin", Select(pid))), "unknown");
  EXPECT_EQ(Unary("process.Process/SendInput", InputOf(pid, "pty", "hello\n")).status, 200u);
  Outcome outcome = call.Collect();
  EXPECT_THAT(shown + outcome.pty, AllOf(HasSubstr("/dev/pts/"), HasSubstr("24 80"),
                                         HasSubstr("30 100"), HasSubstr("got hello")));
  EXPECT_EQ(outcome.end.at("status").as_string(), "exit status 0");
}

TEST_F(ProcessTest, ATerminalHasATypeUnlessTheClientGivesOne) {
  json::object request = BashRequest("echo $TERM $LANG");
  request["pty"] = json::object();
  EXPECT_THAT(Run(request).pty, HasSubstr("xterm-256color C.UTF-8"));
  request["process"].as_object()["envs"] = {{"TERM", "dumb"}};
  EXPECT_THAT(Run(request).pty, HasSubstr("dumb"));
}

TEST_F(ProcessTest, ChildrenInheritNothingOfEnvd) {
  Outcome outcome = Bash(
      "ls /proc/self/fd; umask; ulimit -n; ps -o ni= -p $$; "
      "cat /proc/$$/oom_score_adj; grep SigBlk /proc/self/status; "
      "grep SigIgn /proc/self/status; echo $(ps -o sid= -p $$) $$");
  // ls itself opens one descriptor for the directory.
  EXPECT_THAT(outcome.out, testing::StartsWith("0\n1\n2\n3\n0022\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  0\n100\n"));
  EXPECT_THAT(outcome.out, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(outcome.out, HasSubstr("SigIgn:\t0000000000000000"));
  std::string pid = std::to_string(outcome.pid);
  EXPECT_THAT(outcome.out, testing::EndsWith(pid + " " + pid + "\n"));
}

TEST_F(ProcessLimitTest, BoundsTheNumberOfProcesses) {
  settings.limits.max_processes = 2;
  Boot();
  Call one = Stream("process.Process/Start", BashRequest("sleep 30"));
  Call two = Stream("process.Process/Start", BashRequest("sleep 30"));
  int64_t first = one.Next()->body.at("event").at("start").at("pid").as_int64();
  two.Next();
  EXPECT_EQ(Bash("true").error.at("code").as_string(), "resource_exhausted");
  json::object signal = Select(first);
  signal["signal"] = "SIGNAL_SIGKILL";
  Unary("process.Process/SendSignal", signal);
  one.Collect();
  EXPECT_EQ(Bash("true").end.at("status").as_string(), "exit status 0");
}

TEST_F(ProcessLimitTest, AKeptRateSlowsTheOutputDownAndLosesNothing) {
  settings.limits.output_kbps = 100;
  Boot();
  auto begin = std::chrono::steady_clock::now();
  Outcome outcome = Bash("head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2");
  EXPECT_EQ(outcome.out.size(), 65536u);
  EXPECT_EQ(outcome.err.size(), 65536u);
  // 128 KB at 100 KB per second; the last step need not be waited for.
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));
}

TEST_F(ProcessLimitTest, TheRateChangesForWhatRunsAlready) {
  settings.limits.output_kbps = 1;
  Boot();
  Call slow = Stream("process.Process/Start", BashRequest("head -c 1000000 /dev/zero"));
  ASSERT_TRUE(slow.Next());  // at this rate it would take a quarter of an hour
  EXPECT_EQ(Http("POST", "/init", {}, R"({"limits":{"output_kbps":"fast"}})").status, 400u);
  EXPECT_EQ(Http("POST", "/init", {}, R"({"limits":{"output_kbps":0}})").status, 204u);
  EXPECT_EQ(slow.Collect().out.size(), 1'000'000u);
}

TEST(ExitText, KnowsGosSignalNames) {
  EXPECT_EQ(DescribeExit(SIGSEGV | 0x80).status, "signal: segmentation fault (core dumped)");
  EXPECT_EQ(DescribeExit(SIGABRT).status, "signal: aborted");
  EXPECT_EQ(DescribeExit(40).status, "signal: signal 40");
  EXPECT_EQ(DescribeExit(2 << 8).code, 2);
}

TEST(ProcStat, SurvivesHostileNames) {
  auto stat = ParseProcStat(
      "77 (a) S 1 (x) S 5 76 75 0 -1 4194560 0 0 0 0 3 4 5 6 20 0 1 0 100 1000 12 0 0 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 77);
  EXPECT_EQ(stat->parent, 5);
  EXPECT_EQ(stat->session, 75);
  EXPECT_EQ(stat->cpu_ticks, 18u);
  EXPECT_EQ(stat->rss_bytes, 12u * 4096);
  EXPECT_FALSE(ParseProcStat("77 (cut"));
}

}  // namespace
}  // namespace caisson::envd
