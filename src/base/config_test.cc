#include "base/config.h"

#include <gtest/gtest.h>

#include <algorithm>

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

const ShownSetting& Find(const std::vector<ShownSetting>& shown, std::string_view name) {
  auto found = std::ranges::find(shown, name, &ShownSetting::name);
  EXPECT_NE(found, shown.end()) << name;
  return *found;
}

TEST(Config, ShowsValuesAndWhereTheyComeFrom) {
  Config config;
  ASSERT_TRUE(Load(config, "max_sandboxes = 7\nrate_limit = 2\n"));
  ASSERT_TRUE(ApplyEnvironment(config, {{"CAISSON_RATE_LIMIT", "3"}, {"GIT_USER_NAME", "Bo"}}));
  ASSERT_TRUE(SetConfigField(config, "nesting", "true"));
  ASSERT_TRUE(FinishConfig(config));
  std::vector<ShownSetting> shown = ShowConfig(config);
  EXPECT_EQ(Find(shown, "max_sandboxes").value, "7");
  EXPECT_EQ(Find(shown, "max_sandboxes").standard, "1000");
  EXPECT_EQ(Find(shown, "max_sandboxes").source, "file");
  EXPECT_EQ(Find(shown, "rate_limit").value, "3");
  EXPECT_EQ(Find(shown, "rate_limit").source, "environment");
  EXPECT_EQ(Find(shown, "git_user_name").source, "environment");
  EXPECT_EQ(Find(shown, "nesting").source, "option");
  EXPECT_EQ(Find(shown, "create_timeout_ms").source, "default");
  EXPECT_EQ(Find(shown, "database_url").standard, Find(shown, "database_url").value);
}

TEST(Config, ShowsNoSecrets) {
  Config config;
  for (const char* name : {"github_token", "github_webhook_secret", "github_app_key_file",
                           "e2b_api_key", "llm_api_key"})
    ASSERT_TRUE(SetConfigField(config, name, "hush"));
  ASSERT_TRUE(SetConfigField(config, "database_url", "postgresql://me:hush@db/x"));
  ASSERT_TRUE(SetConfigField(config, "egress_proxy", "me:hush@proxy:1080"));
  int secrets = 0;
  for (const ShownSetting& one : ShowConfig(config)) {
    EXPECT_EQ((one.value + one.standard).find("hush"), std::string::npos) << one.name;
    secrets += one.secret && one.value == "set";
  }
  EXPECT_EQ(secrets, 7);
  EXPECT_EQ(Find(ShowConfig(Config()), "github_token").value, "");
  EXPECT_TRUE(Find(ShowConfig(Config()), "github_token").secret);
}

TEST(Config, RefusesWrongValues) {
  Config config;
  EXPECT_FALSE(SetConfigField(config, "max_sandboxes", "many"));
  EXPECT_FALSE(SetConfigField(config, "nesting", "perhaps"));
  EXPECT_FALSE(SetConfigField(config, "no_such", "1"));
}

TEST(Config, StreamsAreNotSilentForTooLong) {
  for (const auto& [text, fits] :
       {std::pair{"10000", true}, {"120000", true}, {"120001", false}, {"99", false}}) {
    Config config;
    ASSERT_TRUE(SetConfigField(config, "sse_heartbeat_ms", text));
    EXPECT_EQ(FinishConfig(config).has_value(), fits) << text;
  }
  EXPECT_EQ(Config().clone_timeout_ms, 30'000);
}

TEST(Config, PullRequestsAreOpenedByWhoThereIs) {
  Config config;
  ASSERT_TRUE(SetConfigField(config, "pull_request_identity", "somebody"));
  EXPECT_FALSE(FinishConfig(config));
  for (const char* identity : {"bot", "user"}) {
    ASSERT_TRUE(SetConfigField(config, "pull_request_identity", identity));
    EXPECT_TRUE(FinishConfig(config)) << identity;
  }
  ASSERT_TRUE(SetConfigField(config, "pull_request_identity", "app"));
  for (const char* name : {"github_app_id", "github_installation_id", "github_app_key_file"}) {
    Status finished = FinishConfig(config);
    ASSERT_FALSE(finished);
    EXPECT_NE(finished.error().message().find(name), std::string::npos);
    ASSERT_TRUE(SetConfigField(config, name, "1"));
  }
  EXPECT_TRUE(FinishConfig(config));
}

TEST(Config, APolicyIsForAllOrByRole) {
  for (const auto& [text, fits] : {std::pair{"allow", true},
                                   {"member=deny, admin=off", true},
                                   {"off, member=allow", true},
                                   {"some", false},
                                   {"guest=deny", false},
                                   {"member=", false}}) {
    Config config;
    ASSERT_TRUE(SetConfigField(config, "command_policy", text));
    EXPECT_EQ(FinishConfig(config).has_value(), fits) << text;
  }
}

TEST(Config, NamesThatOtherProgramsUse) {
  Config config;
  EXPECT_EQ(config.command_timeout_s, 300);
  ASSERT_TRUE(ApplyEnvironment(config, {{"E2B_TIMEOUT", "20"}, {"E2B_API_KEY", "k"}}));
  EXPECT_EQ(config.command_timeout_s, 20);
  EXPECT_EQ(config.e2b_api_key, "k");
  ASSERT_TRUE(
      ApplyEnvironment(config, {{"E2B_TIMEOUT", "20"}, {"CAISSON_COMMAND_TIMEOUT_S", "9"}}));
  EXPECT_EQ(config.command_timeout_s, 9);
  auto wrong = ApplyEnvironment(config, {{"E2B_TIMEOUT", "soon"}});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message().find("E2B_TIMEOUT"), std::string::npos);
}

TEST(Config, ThePoolHasNamesThatOtherProgramsUse) {
  struct Case {
    std::map<std::string, std::string> environment;
    std::string pool;
  };
  for (const Case& one :
       {Case{{}, ""}, Case{{{"SANDBOX_POOL_MIN_SIZE", "3"}}, "base=3-10"},
        Case{{{"SANDBOX_POOL_MAX_SIZE", "20"}}, "base=2-20"},
        Case{{{"SANDBOX_POOL_MIN_SIZE", "1"}, {"SANDBOX_POOL_MAX_SIZE", "4"}}, "base=1-4"},
        Case{{{"SANDBOX_POOL_MIN_SIZE", "1"}, {"CAISSON_WARM_POOL", "x=1"}}, "x=1"}}) {
    Config config;
    ASSERT_TRUE(ApplyEnvironment(config, one.environment));
    EXPECT_EQ(config.warm_pool, one.pool);
  }
  Config config;
  auto wrong = ApplyEnvironment(config, {{"SANDBOX_POOL_MIN_SIZE", "many"}});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message().find("SANDBOX_POOL_MIN_SIZE"), std::string::npos);
}

}  // namespace
}  // namespace caisson
