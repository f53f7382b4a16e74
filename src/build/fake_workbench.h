// A workbench without sandboxes, for tests of the workflow: it remembers what was asked of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "build/workbench.h"

namespace caisson::build {

class FakeWorkbench final : public Workbench {
 public:
  Task<Result<std::string>> Open(OpenRequest request) override {
    ++opens;
    if (open_takes.count() > 0) co_await SleepFor(open_takes);
    while (opens < opens_together) co_await SleepFor(std::chrono::milliseconds(5));
    if (open_fails) co_return tl::unexpected(*open_fails);
    if (sandboxes.contains(request.sandbox_id)) co_return request.sandbox_id;
    auto made = made_for.find(request.build_id);
    if (made != made_for.end() && sandboxes.contains(made->second)) co_return made->second;
    std::string id = fmt::format("fake-sandbox-{:03}", ++creates);
    made_for[request.build_id] = id;
    made_from[id] = request.snapshot;
    sandboxes[id] = snapshots[request.snapshot];
    co_return id;
  }
  Task<Status> Remember(Place place) override {
    remembered.try_emplace(place.build_id, sandboxes[place.sandbox_id]);
    co_return Status();
  }
  Task<Result<std::vector<std::string>>> Undo(Place place) override {
    auto before = remembered.find(place.build_id);
    if (before == remembered.end()) co_return Fail(Code::kFailedPrecondition, "it is not known");
    Files& now = sandboxes[place.sandbox_id];
    std::erase_if(now, [&](const auto& file) { return !before->second.contains(file.first); });
    std::vector<std::string> missing;
    for (const auto& [path, content] : before->second)
      if (!now.contains(path)) missing.push_back(path);
    co_return missing;
  }
  Task<Status> Put(Place place, Files files, std::vector<std::string> gone) override {
    for (const std::string& path : gone) sandboxes[place.sandbox_id].erase(path);
    for (auto& [path, content] : files) sandboxes[place.sandbox_id][path] = content;
    co_return Status();
  }
  Task<Result<Collected>> Collect(Place place, Files) override {
    co_return Collected{.files = sandboxes[place.sandbox_id]};
  }
  Task<Result<std::string>> Read(Place place, std::string path, size_t) override {
    auto found = sandboxes[place.sandbox_id].find(path);
    if (found == sandboxes[place.sandbox_id].end()) co_return Fail(Code::kNotFound, "no file");
    co_return found->second;
  }
  Task<Result<sdk::CommandResult>> Run(Place place, std::string name,
                                       sdk::Command command) override {
    commands.push_back(command.argv.back());
    if (auto path = deletes.find(command.argv.back()); path != deletes.end())
      sandboxes[place.sandbox_id].erase(path->second);
    sdk::CommandResult result;
    if (auto planned = results.find(command.argv.back()); planned != results.end()) {
      result = planned->second.front();
      if (planned->second.size() > 1) planned->second.erase(planned->second.begin());
    }
    if (command.on_output) command.on_output(sdk::Stream::kStdout, name + "\n");
    if (command.on_output) command.on_output(sdk::Stream::kStderr, result.stderr_text);
    co_return result;
  }
  Task<Status> EndCommands(Place) override { co_return Status(); }
  Task<Status> StartServer(Place place, sdk::Command command, int64_t) override {
    servers[place.sandbox_id] = command.argv.back();
    served[place.sandbox_id] = sandboxes[place.sandbox_id];
    co_return Status();
  }
  Task<Result<ServerState>> AskServer(Place) override {
    co_return ServerState{.running = server_runs, .exit_code = 1, .output = "Traceback: no\n"};
  }
  Task<Result<std::string>> Diagnose(Place, int64_t port) override {
    co_return fmt::format("Ports that are listened on (it should be {}):\nport 81\n", port);
  }
  Task<Result<std::string>> UrlOf(Place place, int64_t port) override {
    co_return fmt::format("https://{}-{}.e2b.app", port, place.sandbox_id);
  }
  Task<Result<http::ResponseHead>> Fetch(std::string) override {
    ++fetches;
    http::ResponseHead head{.status = answers.front(), .headers = headers};
    if (answers.size() > 1) answers.erase(answers.begin());
    co_return head;
  }
  std::string WorkspaceIn(const std::string&) const override { return workspace; }
  Task<Result<std::string>> Snapshot(Place place) override {
    if (snapshot_fails) co_return tl::unexpected(*snapshot_fails);
    std::string name = fmt::format("snap-{}", ++snaps);
    snapshots[name] = sandboxes[place.sandbox_id];
    snapshot_of[place.build_id] = name;
    co_return name;
  }
  Task<Status> DropSnapshot(Place place) override {
    if (drop_fails) co_return tl::unexpected(*drop_fails);
    if (auto made = snapshot_of.extract(place.build_id)) snapshots.erase(made.mapped());
    co_return Status();
  }
  Task<Status> Pause(Place place) override {
    if (pause_fails) co_return tl::unexpected(*pause_fails);
    paused.insert(place.sandbox_id);
    co_return Status();
  }
  Task<Status> Wake(Place place) override {
    ++wakes;
    if (!sandboxes.contains(place.sandbox_id)) co_return Fail(Code::kNotFound, "it is gone");
    paused.erase(place.sandbox_id);
    co_return Status();
  }
  Task<Status> Destroy(Place place, std::string) override {
    sandboxes.erase(place.sandbox_id);
    co_return Status();
  }

  // What a test wants to happen.
  std::optional<Error> open_fails, snapshot_fails, drop_fails, pause_fails;
  std::chrono::milliseconds open_takes{0};
  int opens_together = 0;  // nobody gets a sandbox before so many have asked for one
  std::map<std::string, std::vector<sdk::CommandResult>> results;  // by command, in turn
  std::map<std::string, std::string> deletes;                      // by command: a path
  std::vector<unsigned> answers = {200};                           // of the preview, in turn
  http::Headers headers;
  bool server_runs = true;
  std::string workspace = "/home/user/project";

  // What has happened.
  int opens = 0, creates = 0, fetches = 0, wakes = 0, snaps = 0;
  std::map<std::string, Files> sandboxes;  // those that live
  std::map<std::string, Files> snapshots = {{"", {}}};
  std::map<std::string, Files> remembered;  // by build
  std::map<std::string, std::string> made_for, made_from, snapshot_of;
  std::map<std::string, std::string> servers;  // what was last started, by sandbox
  std::map<std::string, Files> served;         // the files it was started with
  std::vector<std::string> commands;
  std::set<std::string> paused;
};

}  // namespace caisson::build
