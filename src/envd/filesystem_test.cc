// The Filesystem service without its watches.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "base/encoding.h"
#include "envd/list_dir.h"
#include "envd/path.h"
#include "envd/test_support.h"

namespace caisson::envd {
namespace {

using FilesystemTest = Fixture;
using FilesystemLimitTest = Unbooted;
using testing::ElementsAre;

std::string CodeOf(const Reply& reply) { return std::string(reply.Json().at("code").as_string()); }

json::object EntryOf(const Reply& reply) {
  EXPECT_EQ(reply.status, 200u) << reply.body;
  return reply.Json().at("entry").as_object();
}

std::vector<std::string> Names(const Reply& reply) {
  std::vector<std::string> names;
  json::value document = reply.Json();
  if (const json::value* entries = document.as_object().if_contains("entries")) {
    for (const json::value& entry : entries->as_array())
      names.emplace_back(entry.at("name").as_string());
  }
  return names;
}

TEST_F(FilesystemTest, StatTellsEverythingAboutAFile) {
  WriteFile("a.txt", "hello");
  chmod(Path("a.txt").c_str(), 0640);
  json::object entry = EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", Path("a.txt")}}));
  EXPECT_EQ(entry.at("name").as_string(), "a.txt");
  EXPECT_EQ(entry.at("type").as_string(), "FILE_TYPE_FILE");
  EXPECT_EQ(entry.at("path").as_string(), Path("a.txt"));
  EXPECT_EQ(entry.at("size").as_string(), "5");  // int64 is a string
  EXPECT_EQ(entry.at("mode").as_int64(), 0640);
  EXPECT_EQ(entry.at("permissions").as_string(), "-rw-r-----");
  EXPECT_EQ(entry.at("owner").as_string(), CurrentUser());
  EXPECT_THAT(std::string(entry.at("modifiedTime").as_string()),
              testing::MatchesRegex("....-..-..T..:..:..(\\.[0-9]{3}|\\.[0-9]{6}|\\.[0-9]{9}|)Z"));
  EXPECT_FALSE(entry.contains("symlinkTarget"));
  EXPECT_FALSE(entry.contains("metadata"));
}

TEST_F(FilesystemTest, StatOfNothingAndOfNonsense) {
  Reply missing = Unary("filesystem.Filesystem/Stat", {{"path", Path("nope")}});
  EXPECT_EQ(missing.status, 404u);
  EXPECT_EQ(CodeOf(missing), "not_found");
  for (std::string path : {std::string("a\0b", 3), std::string("~bob/x"), std::string(5000, 'x')}) {
    Reply reply = Unary("filesystem.Filesystem/Stat", {{"path", path}});
    EXPECT_EQ(reply.status, 400u) << path.substr(0, 20);
    EXPECT_EQ(CodeOf(reply), "invalid_argument");
  }
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/Stat", {{"path", 5}})), "invalid_argument");
}

TEST_F(FilesystemTest, LinksShowTheirTarget) {
  WriteFile("file", "12345");
  chmod(Path("file").c_str(), 0600);
  symlink("file", Path("link").c_str());
  symlink(dir.c_str(), Path("dirlink").c_str());
  symlink("nowhere", Path("broken").c_str());
  json::object link = EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", Path("link")}}));
  EXPECT_EQ(link.at("type").as_string(), "FILE_TYPE_FILE");
  EXPECT_EQ(link.at("mode").as_int64(), 0600);
  EXPECT_EQ(link.at("permissions").as_string(), "Lrwxrwxrwx");
  EXPECT_EQ(link.at("symlinkTarget").as_string(),
            std::filesystem::canonical(Path("file")).string());
  EXPECT_TRUE(link.at("isSymlink").as_bool());
  EXPECT_EQ(link.at("path").as_string(), Path("link"));
  json::object folder = EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", Path("dirlink")}}));
  EXPECT_EQ(folder.at("type").as_string(), "FILE_TYPE_DIRECTORY");
  json::object broken = EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", Path("broken")}}));
  EXPECT_FALSE(broken.contains("type"));
  EXPECT_FALSE(broken.contains("mode"));
  EXPECT_EQ(broken.at("symlinkTarget").as_string(), Path("broken"));
}

TEST_F(FilesystemTest, MetadataComesFromExtendedAttributes) {
  WriteFile("m", "x");
  ASSERT_EQ(setxattr(Path("m").c_str(), "user.e2b.author", "me", 2, 0), 0) << strerror(errno);
  ASSERT_EQ(setxattr(Path("m").c_str(), "user.other", "no", 2, 0), 0);
  json::object entry = EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", Path("m")}}));
  EXPECT_EQ(entry.at("metadata"), (json::object{{"author", "me"}}));
}

TEST_F(FilesystemTest, OldPythonClientsGetThreeFields) {
  WriteFile("a", "x");
  json::object entry = EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", Path("a")}},
                                     {{"User-Agent", "connect-python"}}));
  EXPECT_EQ(entry, (json::object{{"name", "a"}, {"type", "FILE_TYPE_FILE"}, {"path", Path("a")}}));
  EXPECT_GT(EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", Path("a")}},
                          {{"User-Agent", "connect-python/1"}}))
                .size(),
            3u);
}

TEST_F(FilesystemTest, MakeDirMakesParentsOnce) {
  json::object made = EntryOf(Unary("filesystem.Filesystem/MakeDir", {{"path", Path("x/y/z")}}));
  EXPECT_EQ(made.at("type").as_string(), "FILE_TYPE_DIRECTORY");
  EXPECT_EQ(made.at("permissions").as_string(), "drwxr-xr-x");
  Reply again = Unary("filesystem.Filesystem/MakeDir", {{"path", Path("x/y/z")}});
  EXPECT_EQ(again.status, 409u);
  EXPECT_EQ(CodeOf(again), "already_exists");
  WriteFile("file", "");
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/MakeDir", {{"path", Path("file")}})),
            "invalid_argument");
  // A dangling link is in the way: an error, not an endless loop.
  symlink("nowhere", Path("dangling").c_str());
  EXPECT_NE(Unary("filesystem.Filesystem/MakeDir", {{"path", Path("dangling")}}).status, 200u);
}

TEST_F(FilesystemTest, MoveRenamesAndOverwrites) {
  WriteFile("from", "new");
  WriteFile("to", "old");
  json::object moved = EntryOf(
      Unary("filesystem.Filesystem/Move", {{"source", Path("from")}, {"destination", Path("to")}}));
  EXPECT_EQ(moved.at("path").as_string(), Path("to"));
  EXPECT_EQ(ReadBack("to"), "new");
  EntryOf(Unary("filesystem.Filesystem/Move",
                {{"source", Path("to")}, {"destination", Path("deep/er/file")}}));
  EXPECT_EQ(ReadBack("deep/er/file"), "new");
  Reply missing =
      Unary("filesystem.Filesystem/Move", {{"source", Path("gone")}, {"destination", Path("a/b")}});
  EXPECT_EQ(CodeOf(missing), "not_found");
}

TEST_F(FilesystemTest, RemoveIsRecursiveAndForgiving) {
  std::filesystem::create_directories(Path("tree/a/b"));
  WriteFile("tree/a/b/file", "x");
  WriteFile("kept", "x");
  symlink(Path("kept").c_str(), Path("tree/link").c_str());
  EXPECT_EQ(Unary("filesystem.Filesystem/Remove", {{"path", Path("tree")}}).body, "{}");
  EXPECT_FALSE(std::filesystem::exists(Path("tree")));
  EXPECT_TRUE(std::filesystem::exists(Path("kept")));
  EXPECT_EQ(Unary("filesystem.Filesystem/Remove", {{"path", Path("tree")}}).status, 200u);
}

TEST_F(FilesystemTest, ListsInOrderAndDepth) {
  std::filesystem::create_directories(Path("l/b/inner"));
  std::filesystem::create_directories(Path("l/a.d"));
  WriteFile("l/a", "");
  WriteFile("l/b/z", "");
  WriteFile("l/B", "");
  symlink("b", Path("l/link").c_str());
  EXPECT_THAT(Names(Unary("filesystem.Filesystem/ListDir", {{"path", Path("l")}})),
              ElementsAre("B", "a", "a.d", "b", "link"));
  Reply deep = Unary("filesystem.Filesystem/ListDir", {{"path", Path("l")}, {"depth", 2}});
  EXPECT_THAT(Names(deep), ElementsAre("B", "a", "a.d", "b", "inner", "z", "link"));
  EXPECT_EQ(deep.Json().at("entries").at(4).at("path").as_string(), Path("l/b/inner"));
  // A link as the root is entered, and its name stays in the paths.
  Reply linked = Unary("filesystem.Filesystem/ListDir", {{"path", Path("l/link")}});
  EXPECT_THAT(Names(linked), ElementsAre("inner", "z"));
  EXPECT_EQ(linked.Json().at("entries").at(1).at("path").as_string(), Path("l/link/z"));
}

TEST_F(FilesystemTest, ListErrors) {
  WriteFile("f", "");
  symlink("loop", Path("loop").c_str());
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/ListDir", {{"path", Path("none")}})), "not_found");
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/ListDir", {{"path", Path("f")}})),
            "invalid_argument");
  EXPECT_EQ(CodeOf(Unary("filesystem.Filesystem/ListDir", {{"path", Path("loop")}})),
            "failed_precondition");
  std::filesystem::create_directory(Path("empty"));
  EXPECT_EQ(Unary("filesystem.Filesystem/ListDir", {{"path", Path("empty")}}).body, "{}");
}

TEST_F(FilesystemTest, OddNamesAreListed) {
  std::filesystem::create_directory(Path("odd"));
  for (std::string name : {"with space", "quote\"", "new\nline", "umläut", "bad\xff"})
    WriteFile("odd/" + name, "");
  mkfifo(Path("odd/fifo").c_str(), 0600);
  Reply reply = Unary("filesystem.Filesystem/ListDir", {{"path", Path("odd")}});
  EXPECT_THAT(Names(reply), ElementsAre("bad\xEF\xBF\xBD", "fifo", "new\nline", "quote\"", "umläut",
                                        "with space"));
  EXPECT_FALSE(reply.Json().at("entries").at(1).as_object().contains("type"));
}

TEST_F(FilesystemLimitTest, BoundsAListing) {
  settings.limits.max_list_entries = 3;
  Boot();
  for (auto name : {"1", "2", "3"}) WriteFile(name, "");
  EXPECT_EQ(Names(Unary("filesystem.Filesystem/ListDir", {{"path", dir}})).size(), 3u);
  WriteFile("4", "");
  Reply reply = Unary("filesystem.Filesystem/ListDir", {{"path", dir}});
  EXPECT_EQ(reply.status, 429u);
  EXPECT_EQ(CodeOf(reply), "resource_exhausted");
}

TEST_F(FilesystemTest, PathsAreResolvedForTheUser) {
  const std::string& home = Accounts::Current()->Find(CurrentUser())->home;
  EXPECT_EQ(EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", "~"}})).at("path").as_string(),
            home);
  // "" is the working directory, other relative paths start at home.
  EXPECT_EQ(EntryOf(Unary("filesystem.Filesystem/Stat", {{"path", ""}})).at("path").as_string(),
            dir);
  Reply missing = Unary("filesystem.Filesystem/Stat", {{"path", "no-such-file-here"}});
  EXPECT_THAT(missing.body, testing::HasSubstr(home + "/no-such-file-here"));
  Reply user = Unary("filesystem.Filesystem/Stat", {{"path", "/"}},
                     {{"Authorization", "Basic " + Base64Encode("ghost:")}});
  EXPECT_EQ(user.status, 401u);
  EXPECT_EQ(user.body, R"({"code":"unauthenticated","message":"invalid username: 'ghost'"})");
}

TEST(Paths, AreCleanedLexically) {
  EXPECT_EQ(CleanPath("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(CleanPath("../a/.."), "..");
  EXPECT_EQ(CleanPath("/.."), "/");
  EXPECT_EQ(CleanPath(""), ".");
  EXPECT_EQ(DirName("/a/b"), "/a");
  EXPECT_EQ(DirName("/a"), "/");
  EXPECT_EQ(DirName("/a/b/"), "/a/b");
  EXPECT_EQ(BaseName("/a/b/"), "b");
  EXPECT_EQ(BaseName("/"), "/");
}

TEST(Paths, ResolveByTheContract) {
  User user{"bob", 1000, 1000, "/home/bob"};
  EXPECT_EQ(ResolvePath("", user, "").value(), "/home/bob");
  EXPECT_EQ(ResolvePath("", user, "/code").value(), "/code");
  EXPECT_EQ(ResolvePath("a/../b", user, "/code").value(), "/home/bob/b");
  EXPECT_EQ(ResolvePath("~/x", user, "/code").value(), "/home/bob/x");
  EXPECT_EQ(ResolvePath("/x//y", user, "").value(), "/x//y");
  EXPECT_FALSE(ResolvePath("~alice", user, ""));
}

TEST(Modes, AreWrittenAsGoDoes) {
  EXPECT_EQ(GoModeString(S_IFREG | 0644), "-rw-r--r--");
  EXPECT_EQ(GoModeString(S_IFDIR | 01777), "dtrwxrwxrwx");
  EXPECT_EQ(GoModeString(S_IFREG | 04755), "urwxr-xr-x");
  EXPECT_EQ(GoModeString(S_IFREG | 02755), "grwxr-xr-x");
  EXPECT_EQ(GoModeString(S_IFLNK | 0777), "Lrwxrwxrwx");
  EXPECT_EQ(GoModeString(S_IFCHR | 0666), "Dcrw-rw-rw-");
  EXPECT_EQ(GoModeString(S_IFBLK | 0660), "Drw-rw----");
  EXPECT_EQ(GoModeString(S_IFSOCK | 0755), "Srwxr-xr-x");
  EXPECT_EQ(GoModeString(S_IFIFO | 0600), "prw-------");
}

TEST(Timestamps, HaveThreeSixOrNineDigits) {
  EXPECT_EQ(FormatTimestamp({0, 0}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatTimestamp({1, 500'000'000}), "1970-01-01T00:00:01.500Z");
  EXPECT_EQ(FormatTimestamp({1, 1000}), "1970-01-01T00:00:01.000001Z");
  EXPECT_EQ(FormatTimestamp({1, 1}), "1970-01-01T00:00:01.000000001Z");
}

}  // namespace
}  // namespace caisson::envd
