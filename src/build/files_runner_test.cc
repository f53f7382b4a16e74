#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/testing.h"
#include "build/runner.h"

namespace caisson::build {
namespace {

Result<RunnerResult> RunFiles(std::string_view options) {
  asio::io_context io;
  auto runner = MakeFilesRunner();
  EXPECT_EQ(runner->name(), "files");
  EXPECT_FALSE(runner->needs_sandbox());
  RunnerJob job;
  job.options = boost::json::parse(options).as_object();
  return testing::Await(io, runner->Run(std::move(job)));
}

TEST(FilesRunner, GivesWhatItGot) {
  auto result = RunFiles(R"({"files":{"index.html":"<p>ü</p>\n","empty":""}})");
  ASSERT_TRUE(result);
  ASSERT_EQ(result->changes.size(), 2u);
  EXPECT_EQ(result->changes[0].path, "index.html");
  EXPECT_EQ(result->changes[0].new_content, "<p>ü</p>\n");
  EXPECT_EQ(result->changes[1].new_content, "");
  result = RunFiles(R"({"files":[{"path":"a","delete":true}]})");
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->changes.at(0).new_content);
}

TEST(FilesRunner, RefusesWhatIsNoFiles) {
  for (const char* options : {"{}", R"({"files":[]})", R"({"files":{}})", R"({"files":"x"})",
                              R"({"files":{"../a":"x"}})", R"({"files":{"a":{"content":"x"}}})"})
    EXPECT_EQ(RunFiles(options).error().code(), Code::kInvalidArgument) << options;
}

}  // namespace
}  // namespace caisson::build
