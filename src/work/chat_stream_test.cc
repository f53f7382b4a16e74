#include "work/chat_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace caisson::work {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Heard {
  std::vector<std::string> pieces;
  int begun = 0;
};

// In pieces of `size` bytes: the meaning must not depend on where the stream is cut.
Result<Completion> Read(std::string_view text, size_t size, Heard* heard = nullptr) {
  ChatStream stream([heard](std::string_view piece, bool first) {
    if (!heard) return;
    heard->pieces.emplace_back(piece);
    heard->begun += first;
  });
  for (size_t at = 0; at < text.size(); at += size) TRY(stream.Feed(text.substr(at, size)));
  return stream.Finish();
}

constexpr std::string_view kWords =
    ": hello\r\n"
    "event: chunk\r\n"
    "data: "
    "{\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"
    "\"\"}}]}\r\n"
    "\r\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"It \"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":\n"
    "data:  {\"content\":\"is done.\"},\"finish_reason\":null}]}\n\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n\n"
    "data: [DONE]\n\n"
    "what comes later is nobody's\n\n";

TEST(ChatStream, IsPutTogether) {
  for (size_t size : {1, 7, 100'000}) {
    Heard heard;
    auto read = Read(kWords, size, &heard);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->content, "It is done.");
    EXPECT_EQ(heard.pieces, (std::vector<std::string>{"It ", "is done."}));
    EXPECT_EQ(heard.begun, 1);
    EXPECT_EQ(read->model, "m-1");
    EXPECT_EQ(read->finish_reason, "stop");
    EXPECT_EQ(read->tokens_in, 12);
    EXPECT_EQ(read->tokens_out, 3);
  }
}

TEST(ChatStream, HasToolCalls) {
  auto read = Read(
      R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"a"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}},{"index":1,"id":"c2","function":{"name":"glob","arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}

)",
      5);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::serialize(read->tool_calls),
            R"([{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"a\":1}"}},)"
            R"({"id":"c2","type":"function","function":{"name":"glob","arguments":"{}"}}])");
}

TEST(ChatStream, ThatEndsEarlyIsNoAnswer) {
  for (std::string_view text :
       {"", "data: {\"choices\":[{\"delta\":{\"content\":\"half \"}}]}\n\n", "data: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}"})
    EXPECT_EQ(Read(text, 9).error().code(), Code::kUnavailable) << text;
  auto broken = Read("data: {\"error\":{\"message\":\"overloaded, sk-abcdefgh12345678\"}}\n\n", 50);
  EXPECT_EQ(broken.error().code(), Code::kUnavailable);
  EXPECT_THAT(broken.error().message(), HasSubstr("overloaded"));
  EXPECT_THAT(broken.error().message(), Not(HasSubstr("sk-")));
}

TEST(ChatStream, ThatIsSomethingElseIsRefused) {
  std::string many = R"(data: {"choices":[{"delta":{"tool_calls":[{"index":1}]}}]})";
  for (const std::string& text :
       {std::string("data: <html>\n\n"), std::string("data: [1]\n\n"),
        std::string("data: {\"choices\":[1]}\n\n"),
        std::string("data: {\"choices\":[{\"delta\":{\"tool_calls\":[1]}}]}\n\n"), many + "\n\n",
        "data: " + std::string(ChatStream::kMaxLine, 'x')})
    EXPECT_EQ(Read(text, 1 << 16).error().code(), Code::kDataLoss) << text.substr(0, 80);
  ChatStream endless({});
  std::string comment = ":" + std::string(ChatStream::kMaxLine / 2, ' ') + "\n";
  Status fed;
  for (size_t n = 0; fed && n <= ChatStream::kMaxBytes; n += comment.size())
    fed = endless.Feed(comment);
  EXPECT_EQ(fed.error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace caisson::work
