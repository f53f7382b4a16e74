#include "git/test_support.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>

namespace caisson::git {
namespace {

struct Pipes {
  UniqueFd out, err;
  UniqueFd child_in, child_out, child_err;
};

Pipes MakePipes(std::string_view input) {
  auto make = [](UniqueFd& read_end, UniqueFd& write_end) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) std::abort();
    read_end.Reset(fds[0]);
    write_end.Reset(fds[1]);
  };
  Pipes pipes;
  // A file, which takes input of any size at once.
  pipes.child_in.Reset(memfd_create("stdin", MFD_CLOEXEC));
  for (std::string_view rest = input; !rest.empty();) {
    ssize_t n = write(pipes.child_in.get(), rest.data(), rest.size());
    if (n <= 0) std::abort();
    rest.remove_prefix(static_cast<size_t>(n));
  }
  lseek(pipes.child_in.get(), 0, SEEK_SET);
  make(pipes.out, pipes.child_out);
  make(pipes.err, pipes.child_err);
  return pipes;
}

[[noreturn]] void Become(const Pipes& pipes, const sdk::Command& command, const std::string& home) {
  setpgid(0, 0);
  dup2(pipes.child_in.get(), 0);
  dup2(pipes.child_out.get(), 1);
  dup2(pipes.child_err.get(), 2);
  signal(SIGPIPE, SIG_DFL);
  if (!command.cwd.empty() && chdir(command.cwd.c_str()) != 0) _exit(126);
  std::vector<std::string> environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home};
  for (const auto& [name, value] : command.env) environment.push_back(name + "=" + value);
  std::vector<char*> env, argv;
  for (auto& text : environment) env.push_back(text.data());
  std::vector<std::string> words = command.argv;
  for (auto& text : words) argv.push_back(text.data());
  env.push_back(nullptr);
  argv.push_back(nullptr);
  execvpe(argv[0], argv.data(), env.data());
  _exit(127);
}

// Moves what is there; false at the end of the stream.
bool Take(int fd, std::string& all, const sdk::Command& command, sdk::Stream stream) {
  char piece[64 << 10];
  ssize_t n = read(fd, piece, sizeof(piece));
  if (n <= 0) return false;
  std::string_view text(piece, static_cast<size_t>(n));
  if (command.on_output) command.on_output(stream, text);
  all += text;
  return true;
}

void Cut(std::string& text, size_t max, bool& truncated) {
  if (text.size() <= max) return;
  text.resize(max);
  truncated = true;
}

}  // namespace

sdk::CommandResult Execute(const sdk::Command& command, const std::string& home) {
  Pipes pipes = MakePipes(command.stdin_text);
  pid_t pid = fork();
  if (pid == 0) Become(pipes, command, home);
  pipes.child_in.Reset();
  pipes.child_out.Reset();
  pipes.child_err.Reset();
  sdk::CommandResult result;
  auto deadline = std::chrono::steady_clock::now() + command.timeout;
  bool out = true, err = true;
  while (out || err) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd fds[2] = {{out ? pipes.out.get() : -1, POLLIN, 0},
                     {err ? pipes.err.get() : -1, POLLIN, 0}};
    if (left.count() <= 0 || poll(fds, 2, static_cast<int>(left.count())) == 0) {
      kill(-pid, SIGKILL);
      result.timed_out = true;
      break;
    }
    if (fds[0].revents) out = Take(fds[0].fd, result.stdout_text, command, sdk::Stream::kStdout);
    if (fds[1].revents) err = Take(fds[1].fd, result.stderr_text, command, sdk::Stream::kStderr);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  Cut(result.stdout_text, command.max_output, result.truncated);
  Cut(result.stderr_text, command.max_output, result.truncated);
  return result;
}

Task<Result<sdk::CommandResult>> LocalRunner::Run(sdk::Command command) {
  commands.push_back(command.argv);
  if (instead)
    if (auto answer = instead(command)) co_return std::move(*answer);
  auto result = Execute(command, home_);
  if (after) after(command);
  co_return result;
}

std::string Must(const std::vector<std::string>& argv, const std::string& cwd) {
  sdk::Command command{.argv = argv, .cwd = cwd, .timeout = std::chrono::milliseconds(60'000)};
  command.env = {{"LC_ALL", "C"},
                 {"GIT_CONFIG_GLOBAL", "/dev/null"},
                 {"GIT_AUTHOR_NAME", "A"},
                 {"GIT_AUTHOR_EMAIL", "a@example.com"},
                 {"GIT_COMMITTER_NAME", "A"},
                 {"GIT_COMMITTER_EMAIL", "a@example.com"}};
  auto result = Execute(command, "/nonexistent");
  std::string all = result.stdout_text + result.stderr_text;
  EXPECT_EQ(result.exit_code, 0) << argv[1] << ": " << all;
  return all;
}

bool Names(const sdk::Command& command, std::string_view word) {
  return std::find(command.argv.begin(), command.argv.end(), word) != command.argv.end();
}

void MakeRemote(const std::string& dir) {
  Must({"git", "init", "-q", "--bare", "-b", "main", dir});
  CommitTo(dir, "main", "README.md", "hello\n");
}

void CommitTo(const std::string& remote, const std::string& branch, const std::string& file,
              const std::string& content) {
  caisson::testing::TempDir work;
  std::string dir = work / "w";
  Must({"git", "clone", "-q", remote, dir});
  auto known = Must({"git", "branch", "-r", "--list", "origin/" + branch}, dir);
  if (known.empty() && branch != "main") Must({"git", "switch", "-q", "-c", branch}, dir);
  if (!known.empty()) Must({"git", "switch", "-q", branch}, dir);
  std::filesystem::create_directories(std::filesystem::path(dir + "/" + file).parent_path());
  std::ofstream(dir + "/" + file) << content;
  Must({"git", "add", "-A"}, dir);
  Must({"git", "commit", "-q", "-m", "chore: " + file}, dir);
  Must({"git", "push", "-q", "origin", "HEAD:refs/heads/" + branch}, dir);
}

}  // namespace caisson::git
