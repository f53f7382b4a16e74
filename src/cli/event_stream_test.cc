#include "cli/event_stream.h"

#include <gtest/gtest.h>

namespace caisson::cli {
namespace {

TEST(EventStream, IsReadWhereverItIsCut) {
  constexpr std::string_view kText =
      "retry: 1000\n\n: a comment\nid: 7\nevent: progress\ndata: {\"a\":1}\r\n\r\n"
      "data: one\ndata:two\n\nevent: empty\n\n";
  for (size_t size : {size_t{1}, size_t{5}, kText.size()}) {
    EventStreamParser parser;
    std::vector<StreamEvent> all;
    for (size_t at = 0; at < kText.size(); at += size)
      for (StreamEvent& event : parser.Feed(kText.substr(at, size))) all.push_back(event);
    ASSERT_EQ(all.size(), 2);
    EXPECT_EQ(all[0].id, "7");
    EXPECT_EQ(all[0].type, "progress");
    EXPECT_EQ(all[0].data, "{\"a\":1}");
    EXPECT_EQ(all[1].type, "message");
    EXPECT_EQ(all[1].data, "one\ntwo");
  }
}

}  // namespace
}  // namespace caisson::cli
