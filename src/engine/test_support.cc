#include "engine/test_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/id.h"
#include "base/text.h"
#include "engine/egress_guard.h"
#include "engine/pidfd.h"
#include "engine/slot.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint16_t kCommandPort = 49983;
constexpr const char* kTemplateCache = "/var/cache/caisson/templates";

[[noreturn]] void Die(const std::string& why) {
  fprintf(stderr, "engine tests cannot run: %s\n", why.c_str());
  exit(1);
}

std::string FindBaseTemplate() {
  std::error_code ec;
  if (const char* dir = getenv("CAISSON_TEMPLATE_DIR")) {
    std::string path = std::string(dir) + "/base";
    if (!fs::exists(path + "/rootfs", ec)) Die(path + "/rootfs (CAISSON_TEMPLATE_DIR) is missing");
    return path;
  }
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(kTemplateCache, ec))
    if (entry.path().filename().string().starts_with("base-") &&
        fs::exists(entry.path() / "rootfs"))
      if (newest.empty() || fs::last_write_time(newest) < entry.last_write_time())
        newest = entry.path();
  if (newest.empty())
    Die("there is no base template; run tools/prepare-template base, or set CAISSON_TEMPLATE_DIR "
        "to a directory with base/rootfs");
  return newest.string();
}

size_t CountLines(const std::string& path) {
  auto text = ReadFile(path);
  return text ? static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) : 0;
}

int64_t CountEntries(const fs::path& path) {
  std::error_code ec;
  int64_t count = 0;
  for (auto it = fs::directory_iterator(path, ec); !ec && it != fs::directory_iterator();
       it.increment(ec))
    ++count;
  return count;
}

// Every process of the machine, with the contents of a file of its /proc directory.
template <class Fn>
void ForEachProcess(Fn fn) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc", ec))
    if (auto pid = ParseInt<int>(entry.path().filename().string())) fn(*pid);
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = "/tmp/caisson-engine-XXXXXX";
  if (!mkdtemp(pattern.data())) Die("cannot make a directory in /tmp");
  path_ = pattern;
}

TempDir::~TempDir() { (void)RemoveTree(path_); }

Config TestConfig(const TempDir& dir) {
  Config config;
  config.data_dir = dir.path() + "/data";
  config.template_dir = dir.path() + "/templates";
  config.launchers = 2;
  config.create_timeout_ms = 60'000;
  fs::create_directories(config.template_dir);
  std::error_code ec;
  fs::create_directory_symlink(FindBaseTemplate(), config.template_dir + "/base", ec);
  if (Status finished = FinishConfig(config); !finished) Die(finished.error().message());
  return config;
}

Spec TestSpec(const Config& config) {
  Spec spec;
  spec.id = RandomId("i", 20);
  spec.root_dir = config.template_dir + "/base/rootfs";
  spec.limits = {.cpus = 1, .memory_bytes = 256 << 20, .disk_bytes = 256 << 20, .pids = 128};
  spec.boot = "hello";
  return spec;
}

TestEngine::TestEngine(Config config) : config_(std::move(config)) {
  auto process = StartEngineProcess(config_);
  if (!process) Die(process.error().message());
  pid_ = process->pid;
  client_ = std::make_unique<Client>(loop_.get_executor(), std::move(process->socket));
  client_->OnExit([this](std::string id, ExitReason reason) { exits_.emplace_back(id, reason); });
  client_->Start();
  auto deadline = steady_clock::now() + std::chrono::seconds(60);
  while (static_cast<int64_t>(launchers().size()) < config_.launchers) {
    if (steady_clock::now() > deadline) Die("the launchers do not start");
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TestEngine::~TestEngine() {
  if (client_) DestroyMany(List());
  Disconnect();
}

template <class T>
T TestEngine::Await(Task<T> task) {
  std::optional<T> result;
  asio::co_spawn(loop_, std::move(task), [&](std::exception_ptr error, T value) {
    if (error) Die("a task threw");
    result.emplace(std::move(value));
  });
  loop_.restart();
  while (!result) loop_.run_one();
  return std::move(*result);
}

Result<Instance> TestEngine::Create(const Spec& spec, milliseconds timeout) {
  created_.insert(spec.id);
  return Await(client_->Create(spec, timeout));
}

namespace {

template <class T>
Task<int> All(asio::any_io_executor loop, std::vector<Task<T>> tasks, std::vector<T>& results) {
  size_t left = tasks.size();
  Condition done(loop);
  for (Task<T>& task : tasks)
    asio::co_spawn(loop, std::move(task), [&](std::exception_ptr, T result) {
      results.push_back(std::move(result));
      if (--left == 0) done.Notify();
    });
  while (left > 0) co_await done.Wait(std::chrono::seconds(120));
  co_return 0;
}

}  // namespace

std::vector<Result<Instance>> TestEngine::CreateMany(const std::vector<Spec>& specs,
                                                     milliseconds timeout) {
  std::vector<Task<Result<Instance>>> tasks;
  for (const Spec& spec : specs) {
    created_.insert(spec.id);
    tasks.push_back(client_->Create(spec, timeout));
  }
  std::vector<Result<Instance>> results;
  Await(All(loop_.get_executor(), std::move(tasks), results));
  return results;
}

namespace {

Task<Status> WithoutValue(Task<Result<Instance>> task) {
  CO_TRY(co_await std::move(task));
  co_return Status();
}

Task<Status> After(milliseconds pause, Task<Status> task) {
  co_await SleepFor(pause);
  co_return co_await std::move(task);
}

}  // namespace

std::pair<Status, Status> TestEngine::CreateThenDestroy(const Spec& spec, milliseconds pause) {
  std::optional<Status> created;
  asio::co_spawn(loop_, WithoutValue(client_->Create(spec, std::chrono::seconds(60))),
                 [&](std::exception_ptr, Status status) { created.emplace(std::move(status)); });
  Status destroyed = Await(After(pause, client_->Destroy(spec.id)));
  while (!created) loop_.run_one();
  return {*std::move(created), std::move(destroyed)};
}

Status TestEngine::Destroy(const std::string& id) { return Await(client_->Destroy(id)); }

Status TestEngine::DestroyMany(const std::vector<std::string>& ids) {
  if (ids.empty()) return {};
  std::vector<Task<Status>> tasks;
  for (const std::string& id : ids) tasks.push_back(client_->Destroy(id));
  std::vector<Status> results;
  Await(All(loop_.get_executor(), std::move(tasks), results));
  for (Status& status : results) TRY(std::move(status));
  return {};
}

Result<Saved> TestEngine::Pause(const std::string& id, bool memory) {
  return Await(client_->Pause(id, memory, std::chrono::seconds(60)));
}

Result<Instance> TestEngine::Resume(const Spec& spec, bool memory) {
  return Await(client_->Resume(spec, memory, std::chrono::seconds(60)));
}

Result<Saved> TestEngine::Snapshot(const std::string& id, const std::string& snapshot_id,
                                   bool memory) {
  return Await(client_->Snapshot(id, snapshot_id, memory, std::chrono::seconds(60)));
}

Status TestEngine::DeleteSaved(const std::string& id) { return Await(client_->DeleteSaved(id)); }

std::vector<Saved> TestEngine::ListSaved() {
  auto saved = Await(client_->ListSaved());
  return saved ? *std::move(saved) : std::vector<Saved>();
}

Status TestEngine::SetLimits(const std::string& id, const Limits& limits) {
  return Await(client_->SetLimits(id, limits));
}

Status TestEngine::GrowDisk(const std::string& id, int64_t bytes) {
  return Await(client_->GrowDisk(id, bytes, std::chrono::seconds(60)));
}

Result<UniqueFd> TestEngine::Dial(const std::string& id) {
  TRY_ASSIGN(auto sockets, Await(client_->Dial(id, 1)));
  return std::move(sockets[0]);
}

Result<UniqueFd> TestEngine::Listen(const std::string& id, uint16_t port) {
  return Await(client_->Listen(id, port));
}

Result<Usage> TestEngine::Measure(const std::string& id) {
  TRY_ASSIGN(auto usages, Await(client_->Measure({id})));
  if (usages.empty()) return Fail(Code::kNotFound, "no usage");
  return usages[0].second;
}

std::vector<std::string> TestEngine::List() {
  auto instances = Await(client_->List());
  std::vector<std::string> ids;
  if (instances)
    for (const Instance& instance : *instances) ids.push_back(instance.id);
  return ids;
}

CommandResult TestEngine::Run(const std::string& id, const std::string& command,
                              std::chrono::seconds timeout, const char* to) {
  auto socket = Dial(id);
  if (!socket) return {-1, socket.error().message()};
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(kCommandPort);
  inet_pton(AF_INET6, to, &address.sin6_addr);
  if (connect(socket->get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)))
    return {-1, "cannot connect"};
  if (send(socket->get(), command.data(), command.size(), MSG_NOSIGNAL) < 0)
    return {-1, "cannot send"};
  shutdown(socket->get(), SHUT_WR);
  std::string output;
  auto deadline = steady_clock::now() + timeout;
  for (;;) {
    pollfd item{socket->get(), POLLIN, 0};
    auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0 || poll(&item, 1, static_cast<int>(left)) <= 0) return {-1, output + "(timeout)"};
    char buffer[4096];
    ssize_t n = recv(socket->get(), buffer, sizeof(buffer), 0);
    if (n <= 0) break;
    output.append(buffer, static_cast<size_t>(n));
  }
  size_t mark = output.rfind("\nexit ");
  if (mark == std::string::npos) return {-1, output};
  auto code = ParseInt<int>(Trim(std::string_view(output).substr(mark + 6)));
  return {code.value_or(-1), std::string(Trim(output.substr(0, mark)))};
}

Result<ExitReason> TestEngine::AwaitExit(const std::string& id, std::chrono::seconds timeout) {
  auto deadline = steady_clock::now() + timeout;
  loop_.restart();
  while (steady_clock::now() < deadline) {
    for (const auto& [ended, reason] : exits_)
      if (ended == id) return reason;
    loop_.run_one_for(milliseconds(100));
  }
  return Fail(Code::kDeadlineExceeded, "no report of the end of {}", id);
}

std::vector<int> TestEngine::launchers() const {
  std::vector<int> pids;
  ForEachProcess([&](int pid) {
    auto line = ReadFile(fmt::format("/proc/{}/cmdline", pid));
    auto status = ReadFile(fmt::format("/proc/{}/status", pid));
    if (line && status && line->starts_with("caisson: launch") &&
        status->find(fmt::format("PPid:\t{}\n", pid_)) != std::string::npos)
      pids.push_back(pid);
  });
  return pids;
}

void TestEngine::WarmUp() {
  std::vector<Spec> specs;
  std::vector<std::string> ids;
  for (int i = 0; i < 4 * config_.launchers; ++i) {
    specs.push_back(TestSpec(config_));
    ids.push_back(specs.back().id);
  }
  for (const auto& built : CreateMany(specs))
    if (!built) Die("no sandbox could be built: " + built.error().message());
  if (Status gone = DestroyMany(ids); !gone) Die(gone.error().message());
  Census quiet = Take(*this);
  quiet["links"] = quiet["loops"] = quiet["processes"] = 0;
  if (AwaitCensus(*this, quiet) != quiet) Die("destroyed sandboxes do not vanish");
}

void TestEngine::KillAll() {
  std::vector<UniqueFd> processes;
  for (int pid : launchers())
    if (auto process = OpenProcess(pid)) processes.push_back(std::move(*process));
  if (auto process = OpenProcess(pid_)) processes.push_back(std::move(*process));
  for (const UniqueFd& process : processes) SendSignal(process.get(), SIGKILL);
  for (const UniqueFd& process : processes) WaitForExit(process.get(), std::chrono::seconds(60));
  client_->Stop();
  client_.reset();
}

void TestEngine::PauseAndKillAll(const std::string& id, std::chrono::milliseconds moment) {
  asio::co_spawn(loop_, client_->Pause(id, true, std::chrono::seconds(60)), asio::detached);
  loop_.restart();
  loop_.poll();
  loop_.run_for(moment);
  KillAll();
  loop_.restart();
  loop_.run_for(milliseconds(10));
}

void TestEngine::Disconnect() {
  if (!client_) return;
  auto process = OpenProcess(pid_);
  client_->Stop();
  client_.reset();
  loop_.restart();
  loop_.poll();
  if (process && !WaitForExit(process->get(), std::chrono::seconds(60)))
    Die("the engine does not end");
}

Census Take(const TestEngine& engine) {
  Census census;
  std::string tag = ServerTag(engine.config().data_dir), data = engine.config().data_dir;
  census["mounts"] =
      static_cast<int64_t>(CountLines(fmt::format("/proc/{}/mountinfo", engine.pid())));
  census["host mounts"] = static_cast<int64_t>(CountLines("/proc/self/mountinfo"));
  census["files"] = CountEntries(data + "/engine/sandboxes");
  census["other files"] = CountEntries(data + "/engine");
  census["fds"] = CountEntries(fmt::format("/proc/{}/fd", engine.pid()));
  census["launchers"] = 0;
  for (int pid : engine.launchers()) {
    census["launchers"] += 1;
    census["fds"] += CountEntries(fmt::format("/proc/{}/fd", pid));
  }
  census["processes"] = 0;
  ForEachProcess([&](int pid) {
    auto groups = ReadFile(fmt::format("/proc/{}/cgroup", pid));
    auto status = ReadFile(fmt::format("/proc/{}/status", pid));
    // A dead process waits for init to notice when its parent died first.
    bool dead = !status || status->find("\nState:\tZ") != std::string::npos;
    if (!dead && groups && groups->find("caisson-" + tag + "/") != std::string::npos)
      census["processes"] += 1;
  });
  std::error_code ec;
  census["slots"] = 0;
  std::string resolver_link;  // has a slot and a link as long as the engine lives
  for (const auto& entry : fs::directory_iterator("/run/caisson/slots", ec)) {
    std::string owner = fs::read_symlink(entry.path(), ec).string();
    if (owner.ends_with(fmt::format(":{}:{}", kResolverId, data)))
      resolver_link = InterfacePrefix(tag) + entry.path().filename().string();
    else
      census["slots"] += owner.ends_with(":" + data);
  }
  census["loops"] = 0;
  for (const auto& entry : fs::directory_iterator("/sys/block", ec))
    if (auto file = ReadFile((entry.path() / "loop/backing_file").string()))
      census["loops"] += engine.created().contains(fs::path(*file).stem().string());
  census["links"] = 0;
  for (const auto& entry : fs::directory_iterator("/sys/class/net", ec)) {
    std::string name = entry.path().filename().string();
    census["links"] += name.starts_with(InterfacePrefix(tag)) && name != resolver_link;
  }
  census["cgroups"] = 0;
  for (const auto& tree : fs::directory_iterator("/sys/fs/cgroup", ec))
    if (fs::exists(tree.path() / ("caisson-" + tag), ec))
      for (const auto& group : fs::directory_iterator(tree.path() / ("caisson-" + tag), ec))
        census["cgroups"] += group.is_directory(ec);
  return census;
}

Census AwaitCensus(const TestEngine& engine, const Census& wanted, std::chrono::seconds timeout) {
  auto deadline = steady_clock::now() + timeout;
  for (;;) {
    Census now = Take(engine);
    if (now == wanted || steady_clock::now() > deadline) return now;
    std::this_thread::sleep_for(milliseconds(20));
  }
}

bool AwaitProcess(const std::string& id, std::chrono::seconds timeout) {
  auto deadline = steady_clock::now() + timeout;
  for (;;) {
    bool found = false;
    ForEachProcess([&](int pid) {
      auto groups = ReadFile(fmt::format("/proc/{}/cgroup", pid));
      found = found || (groups && groups->find("/" + id) != std::string::npos);
    });
    if (found || steady_clock::now() > deadline) return found;
    std::this_thread::sleep_for(milliseconds(5));
  }
}

}  // namespace caisson::engine
