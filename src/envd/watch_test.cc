// Watching directories, by stream and by asking.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "envd/test_support.h"

namespace caisson::envd {
namespace {

using WatchTest = Fixture;
using WatchLimitTest = Unbooted;
using testing::Contains;
using testing::ElementsAre;

std::string CodeOf(const Reply& reply) { return std::string(reply.Json().at("code").as_string()); }

// "CREATE sub/file"
std::string Describe(const json::value& event) {
  std::string type(event.at("type").as_string());
  return type.substr(sizeof "EVENT_TYPE_" - 1) + " " + std::string(event.at("name").as_string());
}

class PolledTest : public Fixture {
 protected:
  std::string Create(json::object request) {
    Reply reply = Unary("filesystem.Filesystem/CreateWatcher", request);
    EXPECT_EQ(reply.status, 200u) << reply.body;
    return std::string(reply.Json().at("watcherId").as_string());
  }
  json::array Poll(const std::string& id) {
    Reply reply = Unary("filesystem.Filesystem/GetWatcherEvents", {{"watcherId", id}});
    EXPECT_EQ(reply.status, 200u) << reply.body;
    json::value document = reply.Json();
    const json::value* events = document.as_object().if_contains("events");
    return events != nullptr ? events->as_array() : json::array();
  }
  std::vector<std::string> Events(const std::string& id) {
    std::vector<std::string> out;
    for (const json::value& event : Poll(id)) out.push_back(Describe(event));
    return out;
  }
};

TEST_F(PolledTest, AnUploadIsCreateChmodWrite) {
  std::string id = Create({{"path", dir}});
  EXPECT_THAT(id, testing::MatchesRegex("w[a-z0-9]{20}"));
  Http("POST", "/files?path=" + Path("f.txt"), {{"Content-Type", "application/octet-stream"}},
       "data");
  EXPECT_THAT(Events(id), ElementsAre("CREATE f.txt", "CHMOD f.txt", "WRITE f.txt"));
  EXPECT_TRUE(Events(id).empty());  // drained
  Http("POST", "/files?path=" + Path("f.txt"), {{"Content-Type", "application/octet-stream"}},
       "more");
  EXPECT_THAT(Events(id), Contains("WRITE f.txt"));
}

TEST_F(PolledTest, EveryKindOfChange) {
  WriteFile("old", "x");
  std::string id = Create({{"path", dir}});
  rename(Path("old").c_str(), Path("new").c_str());
  chmod(Path("new").c_str(), 0600);
  WriteFile("new", "y");
  unlink(Path("new").c_str());
  EXPECT_THAT(Events(id),
              ElementsAre("RENAME old", "CREATE new", "CHMOD new", "WRITE new", "REMOVE new"));
}

TEST_F(PolledTest, SubdirectoriesOnlyWhenRecursive) {
  std::filesystem::create_directory(Path("sub"));
  std::string flat = Create({{"path", dir}});
  std::string tree = Create({{"path", dir}, {"recursive", true}});
  WriteFile("sub/file", "");
  EXPECT_TRUE(Events(flat).empty());
  EXPECT_THAT(Events(tree), ElementsAre("CREATE sub/file"));
}

TEST_F(PolledTest, DirectoriesThatAppearAreWatchedAndNothingIsLostOrToldTwice) {
  std::string id = Create({{"path", dir}, {"recursive", true}});
  // Made while the daemon does not run: everything is there before the first watch.
  std::filesystem::create_directories(Path("a/b/c"));
  WriteFile("a/b/c/full", "data");
  WriteFile("a/empty", "");
  auto events = Events(id);
  for (auto expected : {"CREATE a", "CREATE a/b", "CREATE a/b/c", "CREATE a/b/c/full",
                        "WRITE a/b/c/full", "CREATE a/empty"})
    EXPECT_EQ(std::ranges::count(events, expected), 1) << expected;
  WriteFile("a/b/c/later", "");
  EXPECT_THAT(Events(id), ElementsAre("CREATE a/b/c/later"));
}

TEST_F(PolledTest, AFastTreeIsReportedOnceWhileTheDaemonRuns) {
  std::string id = Create({{"path", dir}, {"recursive", true}});
  Bash("for i in $(seq 1 40); do mkdir -p t$i/u; echo x > t$i/u/f; done");
  std::vector<std::string> events;
  auto collect = [&] {
    for (auto& event : Events(id)) events.push_back(event);
    return std::ranges::count_if(events, [](const std::string& event) {
             return event.starts_with("WRITE ") && event.ends_with("/u/f");
           }) >= 40;
  };
  EXPECT_TRUE(Until(collect));
  Wait(100ms);  // nothing is told twice
  collect();
  for (int i = 1; i <= 40; ++i) {
    std::string file = "t" + std::to_string(i) + "/u/f";
    EXPECT_EQ(std::ranges::count(events, "CREATE " + file), 1) << file;
    EXPECT_GE(std::ranges::count(events, "WRITE " + file), 1) << file;
  }
}

TEST_F(PolledTest, AMovedDirectoryKeepsItsWatches) {
  std::filesystem::create_directories(Path("from/inner"));
  std::string id = Create({{"path", dir}, {"recursive", true}});
  rename(Path("from").c_str(), Path("to").c_str());
  WriteFile("to/inner/file", "");
  EXPECT_THAT(Events(id), ElementsAre("RENAME from", "CREATE to", "CREATE to/inner/file"));
  WriteFile("to/another", "");
  EXPECT_THAT(Events(id), ElementsAre("CREATE to/another"));
}

TEST_F(PolledTest, ADirectoryThatLeavesTheTreeIsNotWatchedAnyMore) {
  std::filesystem::create_directories(Path("tree/sub"));
  std::filesystem::create_directory(Path("outside"));
  std::string id = Create({{"path", Path("tree")}, {"recursive", true}});
  rename(Path("tree/sub").c_str(), Path("outside/sub").c_str());
  EXPECT_THAT(Events(id), ElementsAre("RENAME sub"));
  Events(id);
  WriteFile("outside/sub/file", "");
  EXPECT_TRUE(Events(id).empty());
  rename(Path("outside/sub").c_str(), Path("tree/back").c_str());
  EXPECT_THAT(Events(id), ElementsAre("CREATE back"));
  WriteFile("tree/back/again", "");
  EXPECT_THAT(Events(id), ElementsAre("CREATE back/again"));
}

TEST_F(PolledTest, EntriesAreAttachedWhenAskedFor) {
  WriteFile("gone", "");
  std::string id = Create({{"path", dir}, {"include_entry", true}});
  WriteFile("file", "12345");
  unlink(Path("gone").c_str());
  json::array events = Poll(id);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].at("entry").at("size").as_string(), "5");
  EXPECT_EQ(events[1].at("entry").at("path").as_string(), Path("file"));
  EXPECT_EQ(Describe(events[2]), "REMOVE gone");
  EXPECT_FALSE(events[2].as_object().contains("entry"));
}

TEST_F(PolledTest, WatchersEnd) {
  std::string id = Create({{"path", dir}});
  EXPECT_EQ(Unary("filesystem.Filesystem/RemoveWatcher", {{"watcher_id", id}}).body, "{}");
  Reply gone = Unary("filesystem.Filesystem/GetWatcherEvents", {{"watcherId", id}});
  EXPECT_EQ(gone.status, 404u);
  EXPECT_EQ(CodeOf(gone), "not_found");
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/RemoveWatcher", {{"watcherId", "w"}})),
            "not_found");
}

TEST_F(WatchTest, RefusesWhatCannotBeWatched) {
  WriteFile("file", "");
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/CreateWatcher", {{"path", Path("none")}})),
            "not_found");
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/CreateWatcher", {{"path", Path("file")}})),
            "invalid_argument");
  Call call = Stream("filesystem.Filesystem/WatchDir", {{"path", Path("none")}});
  auto end = call.Next();
  ASSERT_TRUE(end && end->last());
  EXPECT_EQ(end->body.at("error").at("code").as_string(), "not_found");
}

TEST_F(WatchTest, StreamsEventsAfterStart) {
  Call call = Stream("filesystem.Filesystem/WatchDir", {{"path", dir}, {"recursive", true}});
  auto start = call.Next();
  ASSERT_TRUE(start);
  EXPECT_EQ(json::serialize(start->body), R"({"start":{}})");
  WriteFile("f", "x");
  EXPECT_EQ(Describe(call.Next()->body.at("filesystem")), "CREATE f");
  EXPECT_EQ(Describe(call.Next()->body.at("filesystem")), "WRITE f");
}

TEST_F(WatchTest, StreamsKeepAliveAndEndAtTheirDeadline) {
  Call call = Stream("filesystem.Filesystem/WatchDir", {{"path", dir}},
                     {{"Keepalive-Ping-Interval", "1"}, {"Connect-Timeout-Ms", "3500"}});
  call.Next();
  int keepalives = 0;
  auto end = call.Next();
  for (; end && !end->last(); end = call.Next(), ++keepalives)
    EXPECT_EQ(json::serialize(end->body), R"({"keepalive":{}})");
  EXPECT_GE(keepalives, 1);
  ASSERT_TRUE(end && end->last());
  EXPECT_EQ(end->body.at("error").at("code").as_string(), "deadline_exceeded");
}

TEST_F(WatchLimitTest, WatchersAreBoundedAndGivenBack) {
  settings.limits.max_watchers = 2;
  Boot();
  Unary("filesystem.Filesystem/CreateWatcher", {{"path", dir}});
  {
    Call stream = Stream("filesystem.Filesystem/WatchDir", {{"path", dir}});
    stream.Next();
    EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/CreateWatcher", {{"path", dir}})),
              "resource_exhausted");
  }
  // The stream's client is gone, and nobody had to touch a file for that.
  EXPECT_TRUE(Until([&] {
    return Unary("filesystem.Filesystem/CreateWatcher", {{"path", dir}}).status == 200u;
  }));
}

TEST_F(WatchLimitTest, AQueueThatOverflowsIsAnError) {
  settings.limits.watcher_queue = 10;
  Boot();
  Reply created = Unary("filesystem.Filesystem/CreateWatcher", {{"path", dir}});
  std::string id(created.Json().at("watcherId").as_string());
  for (int i = 0; i < 20; ++i) WriteFile(std::to_string(i), "");
  Wait(100ms);
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/GetWatcherEvents", {{"watcherId", id}})),
            "internal");
}

TEST_F(WatchTest, EventsThatTheKernelDroppedEndTheWatchWithAnError) {
  WriteFile("a", "");
  WriteFile("b", "");
  Call call = Stream("filesystem.Filesystem/WatchDir", {{"path", dir}});
  ASSERT_TRUE(call.Next());
  int bound = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> bound;
  // The daemon does not run meanwhile. Equal events in a row would be one.
  for (int i = 0; i <= bound; ++i) chmod(Path(i % 2 == 0 ? "a" : "b").c_str(), 0600);
  std::optional<Message> message = call.Next();
  while (message && !message->last()) message = call.Next();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body.at("error").at("code").as_string(), "internal");
  Call again = Stream("filesystem.Filesystem/WatchDir", {{"path", dir}});
  ASSERT_TRUE(again.Next());
  WriteFile("c", "");
  EXPECT_TRUE(again.Next());
}

TEST_F(WatchLimitTest, TheNumberOfDirectoriesIsBounded) {
  settings.limits.max_watched_dirs = 3;
  Boot();
  std::filesystem::create_directories(Path("1/2/3"));
  Reply reply = Unary("filesystem.Filesystem/CreateWatcher", {{"path", dir}, {"recursive", true}});
  EXPECT_EQ(CodeOf(reply), "resource_exhausted");
}

}  // namespace
}  // namespace caisson::envd
