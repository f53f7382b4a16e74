#include "base/config.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace caisson {
namespace {

Status Load(Config& config, std::string_view text) {
  std::string path = testing::TempDir() + "/caisson-config-test.toml";
  EXPECT_TRUE(WriteFileAtomic(path, text, 0600));
  return LoadConfigFile(config, path);
}

TEST(Config, FileThenEnvironmentWins) {
  Config config;
  ASSERT_TRUE(Load(config, "listen = \"127.0.0.1:1\"\nmax_sandboxes = 7\nnesting = true\n"));
  ASSERT_TRUE(ApplyEnvironment(config, {{"CAISSON_LISTEN", "127.0.0.1:2"}, {"CAISSON_X", "y"}}));
  EXPECT_EQ(config.listen, "127.0.0.1:2");
  EXPECT_EQ(config.max_sandboxes, 7);
  EXPECT_TRUE(config.nesting);
}

TEST(Config, ErrorsNameTheLine) {
  Config config;
  EXPECT_NE(Load(config, "\nlisten = 5\n").error().message().find("line 2"), std::string::npos);
  EXPECT_NE(Load(config, "lissten = \"x\"").error().message().find("'lissten'"), std::string::npos);
  EXPECT_FALSE(Load(config, "listen = "));
  EXPECT_FALSE(Load(config, "[\n"));
  EXPECT_TRUE(Load(config, "# d\u00e9j\u00e0\ndata_dir = \"/donn\u00e9es\"\n"));
  EXPECT_EQ(config.data_dir, "/donn\u00e9es");
}

TEST(Config, FinishDerivesAndChecks) {
  Config config;
  config.data_dir = "/x/y/";
  ASSERT_TRUE(FinishConfig(config));
  EXPECT_EQ(config.database_url, "sqlite:////x/y/db/caisson.db");
  EXPECT_EQ(config.template_dir, "/x/y/templates");
  config.tls = "maybe";
  EXPECT_FALSE(FinishConfig(config));
  config.tls = "off";
  config.max_sandboxes = -1;
  EXPECT_FALSE(FinishConfig(config));
}

TEST(Config, RefusesWrongValues) {
  Config config;
  EXPECT_FALSE(SetConfigField(config, "max_sandboxes", "many"));
  EXPECT_FALSE(SetConfigField(config, "nesting", "perhaps"));
  EXPECT_FALSE(SetConfigField(config, "no_such", "1"));
}

}  // namespace
}  // namespace caisson
