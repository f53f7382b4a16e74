#include "sandbox/template.h"

#include <gtest/gtest.h>

#include "sandbox/manager_fixture.h"

namespace caisson::sandbox {
namespace {

namespace fs = std::filesystem;

TEST(TemplateCatalog, ReadsWhatIsThere) {
  testing::TempDir dir;
  WriteTemplate(dir.path(), "b",
                R"({"id":"b","aliases":["other"],"env":{"X":"1"},"workspace":"/srv/work",
                    "tools":[{"name":"git","version":"2.47"},{"name":"own"}]})");
  WriteTemplate(dir / "elsewhere", "a",
                R"({"id":"a","cpuCount":4,"memoryMB":2048,"diskSizeMB":100,"user":"me"})");
  fs::create_directory_symlink(dir / "elsewhere/a", dir / "a");
  fs::create_directories(dir / "half-done/rootfs");
  auto catalog = TemplateCatalog::Load(dir.path());
  ASSERT_TRUE(catalog) << catalog.error().message();
  ASSERT_EQ(catalog->all().size(), 2u);
  const Template* a = catalog->Find("a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->cpus, 4);
  EXPECT_EQ(a->memory_mb, 2048);
  EXPECT_EQ(a->disk_mb, 100);
  EXPECT_EQ(a->user, "me");
  EXPECT_EQ(a->root_dir, fs::canonical(dir / "elsewhere/a/rootfs").string());
  EXPECT_LT(Now() - a->created_at, std::chrono::minutes(5));
  EXPECT_EQ(catalog->Find("b")->env.at("X"), "1");
  EXPECT_EQ(catalog->Find("b")->user, "user");
  EXPECT_EQ(catalog->Find("b")->workspace, "/srv/work");
  EXPECT_EQ(a->workspace, "");
  ASSERT_EQ(catalog->Find("b")->tools.size(), 2u);
  EXPECT_EQ(catalog->Find("b")->tools[0].version, "2.47");
  EXPECT_EQ(catalog->Find("b")->tools[1].name, "own");
}

TEST(TemplateCatalog, FindsByIdAliasAndDefaultTag) {
  testing::TempDir dir;
  WriteTemplate(dir.path(), "x", R"({"id":"t1","aliases":["base"]})");
  auto catalog = TemplateCatalog::Load(dir.path()).value();
  for (const char* name : {"t1", "base", "base:default", "t1:default", " Base "})
    EXPECT_TRUE(catalog.Find(name)) << name;
  for (const char* name : {"", "bas", "base:", "base:v1", "team/base", ":default", "../x"})
    EXPECT_FALSE(catalog.Find(name)) << name;
}

TEST(TemplateCatalog, NamesTheFileThatIsBroken) {
  for (auto [json, text] : {
           std::pair{"{", "not a JSON object"},
           {"[]", "not a JSON object"},
           {"{}", "id must be"},
           {R"({"id":"A B"})", "id must be"},
           {R"({"id":"a","cpuCount":"2"})", "cpuCount must be a positive integer"},
           {R"({"id":"a","memoryMB":0})", "memoryMB must be a positive integer"},
           {R"({"id":"a","aliases":"b"})", "aliases must be"},
           {R"({"id":"a","env":{"X":1}})", "env.X must be a string"},
           {R"({"id":"a","user":1})", "user must be a string"},
           {R"({"id":"a","workspace":"work"})", "workspace must be a path"},
           {R"({"id":"a","workspace":"/"})", "workspace must be a path"},
           {R"({"id":"a","tools":{}})", "tools must be a list"},
           {R"({"id":"a","tools":["git"]})", "tools must be objects"},
           {R"({"id":"a","tools":[{"version":"1"}]})", "must have a name"},
       }) {
    testing::TempDir dir;
    WriteTemplate(dir.path(), "t", json);
    auto loaded = TemplateCatalog::Load(dir.path());
    ASSERT_FALSE(loaded) << json;
    EXPECT_NE(loaded.error().message().find(text), std::string::npos) << loaded.error().message();
    EXPECT_NE(loaded.error().message().find(dir / "t/template.json"), std::string::npos);
  }
}

TEST(TemplateCatalog, RefusesDoubleNamesMissingRootsAndMissingDirectories) {
  testing::TempDir dir;
  WriteTemplate(dir.path(), "a", R"({"id":"a","aliases":["same"]})");
  WriteTemplate(dir.path(), "b", R"({"id":"same"})");
  EXPECT_EQ(TemplateCatalog::Load(dir.path()).error().code(), Code::kAlreadyExists);
  fs::remove_all(dir / "b");
  fs::remove_all(dir / "a/rootfs");
  auto rootless = TemplateCatalog::Load(dir.path());
  ASSERT_FALSE(rootless);
  EXPECT_NE(rootless.error().message().find("no directory rootfs"), std::string::npos);
  EXPECT_EQ(TemplateCatalog::Load(dir / "missing").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace caisson::sandbox
