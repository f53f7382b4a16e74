#include "work/chat_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::work {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Completion, IsRead) {
  auto read = ReadCompletion(
      R"({"model":"m-1","choices":[{"finish_reason":"stop","message":{"content":"hi"}}],
          "usage":{"prompt_tokens":10,"completion_tokens":-2}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->content, "hi");
  EXPECT_EQ(read->finish_reason, "stop");
  EXPECT_EQ(read->model, "m-1");
  EXPECT_EQ(read->tokens_in, 10);
  EXPECT_EQ(read->tokens_out, 0);
  for (const char* body :
       {"", "<html>", "[]", "{}", R"({"choices":[]})", R"({"choices":[1]})", R"({"choices":{}})"})
    EXPECT_EQ(ReadCompletion(body).error().code(), Code::kDataLoss) << body;
}

TEST(ModelError, HasACodeAndNoKey) {
  struct Case {
    unsigned status;
    Code code;
  };
  for (const Case& one : {Case{301, Code::kFailedPrecondition}, Case{400, Code::kInvalidArgument},
                          Case{401, Code::kUnauthenticated}, Case{403, Code::kPermissionDenied},
                          Case{404, Code::kNotFound}, Case{422, Code::kInvalidArgument},
                          Case{429, Code::kUnavailable}, Case{500, Code::kUnavailable},
                          Case{503, Code::kUnavailable}}) {
    Error error = ErrorOf(http::Response::Text(
        one.status, R"({"error":{"message":"Wrong key: sk-abcdefgh12345678"}})"));
    EXPECT_EQ(error.code(), one.code) << one.status;
    EXPECT_THAT(error.message(), Not(HasSubstr("sk-")));
  }
  EXPECT_THAT(ErrorOf(http::Response::Text(400, R"({"error":"too long"})")).message(),
              HasSubstr("too long"));
  EXPECT_LT(ErrorOf(http::Response::Text(400, R"({"message":")" + std::string(9'000, 'x') + "\"}"))
                .message()
                .size(),
            500u);
}

TEST(Completion, HasToolCalls) {
  auto read = ReadCompletion(
      R"({"choices":[{"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[
          {"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}}]})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->content, "");
  EXPECT_EQ(read->tool_calls.size(), 1u);
}

}  // namespace
}  // namespace caisson::work
