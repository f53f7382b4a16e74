#include "events/output_lines.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/testing.h"
#include "events/output_search.h"

namespace caisson::events {
namespace {

using ::testing::Test;

class OutputLinesTest : public Test {
 protected:
  OutputLinesTest()
      : store_(store::OpenStore("sqlite://" + (dir_ / "a.db"), io_.get_executor()).value()),
        log_(io_.get_executor(), *store_, config_) {
    config_.database_url = "sqlite://" + (dir_ / "a.db");
    EXPECT_TRUE(Wait(log_.Start()));
  }
  ~OutputLinesTest() override {
    Wait(log_.Stop());
    EXPECT_TRUE(Wait(store_->Close()));
  }

  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }
  void Print(std::string_view output, std::string stream = "stdout", std::string task = "t1") {
    namespace json = boost::json;
    Wait(log_.Publish(
        {.type = "command_output",
         .owner_id = "ann",
         .task_id = std::move(task),
         .data = json::serialize(json::object{{"output", output}, {"stream", stream}})}));
  }
  static Filter OfTask() { return {.owner_id = "ann", .task_ids = {"t1"}}; }
  // "event.place text", and "+" where a line goes on.
  std::vector<std::string> Lines(int64_t after = 0) {
    Reader reader(*store_, config_);
    OutputWalk walk(reader, OfTask(), after);
    auto lines = std::make_shared<std::vector<std::string>>();
    for (bool over = false; !over;) {
      auto part = Wait(walk.Next([lines](OutputLine line) {
        lines->push_back(fmt::format("{}.{} {}{}", line.event, line.place, line.text.substr(0, 20),
                                     line.ends ? "" : "+"));
        return true;
      }));
      EXPECT_TRUE(part);
      over = !part || part->over;
    }
    return *lines;
  }
  OutputHits Find(OutputQuery query) {
    Reader reader(*store_, config_);
    query.filter = OfTask();
    if (query.patience.count() == 0) query.patience = std::chrono::seconds(60);
    auto hits = Wait(FindOutput(reader, std::move(query)));
    EXPECT_TRUE(hits);
    return hits ? *hits : OutputHits();
  }
  static std::vector<std::pair<int64_t, int64_t>> Places(const OutputHits& hits) {
    std::vector<std::pair<int64_t, int64_t>> places;
    for (const OutputLine& line : hits.lines) places.emplace_back(line.event, line.place);
    return places;
  }

  asio::io_context io_;
  testing::TempDir dir_;
  Config config_;
  std::unique_ptr<store::Store> store_;
  Log log_;
};

TEST_F(OutputLinesTest, PiecesBecomeLinesOfTheirStream) {
  Print("one\ntw");
  Print("oops\nthe", "stderr");
  Print("not of this task\n", "stdout", "t2");
  Print("o\nthree\n\n10 %\r20 %");
  Print("\r30 %\r\n\x1b[31mred\x1b[0m end");
  EXPECT_EQ(Lines(), (std::vector<std::string>{"1.0 one", "2.0 oops", "1.1 two", "4.1 three",
                                               "4.2 ", "4.3 30 %", "2.1 the", "5.1 red end"}));
}

TEST_F(OutputLinesTest, AWalkFromTheMiddleKnowsTheLineItIsIn) {
  Print("one\ntw");
  Print("o\nthree\n");
  EXPECT_EQ(Lines(1), (std::vector<std::string>{"1.1 two", "2.1 three"}));
  EXPECT_EQ(Lines(2), std::vector<std::string>());
}

TEST_F(OutputLinesTest, AVeryLongLineComesInParts) {
  for (int n = 0; n < 33; ++n) Print(std::string(32 << 10, 'x'));
  Print("y\n");
  std::string x(20, 'x');
  EXPECT_EQ(Lines(), (std::vector<std::string>{"1.0 " + x + "+", "1.0 y"}));
}

TEST_F(OutputLinesTest, ATextIsFoundOverPiecesWithoutColoursAndInAnyCase) {
  Print("an err");
  Print("or\nfine\nERROR again\n");
  Print("\x1b[1mEr\x1b[0mror\n", "stderr");
  using Hits = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(Places(Find({.text = "Error"})), (Hits{{1, 0}, {2, 2}, {3, 0}}));
  EXPECT_EQ(Places(Find({.text = "error", .stream = "stderr"})), (Hits{{3, 0}}));
  EXPECT_EQ(Places(Find({.text = "error", .stream = "stdout"})), (Hits{{1, 0}, {2, 2}}));
  OutputHits none = Find({.text = "31"});
  EXPECT_TRUE(none.lines.empty());
  EXPECT_EQ(none.looked_at, 4);
  EXPECT_FALSE(none.next);
}

TEST_F(OutputLinesTest, ASearchThatStopsCanGoOn) {
  for (int n = 0; n < 30; ++n) Print("hit\nmi");
  OutputHits first = Find({.text = "hit", .limit = 10});
  EXPECT_EQ(first.lines.size(), 10u);
  ASSERT_TRUE(first.next);
  OutputHits rest = Find({.text = "hit", .after = *first.next});
  EXPECT_EQ(rest.lines.size(), 20u);
  // The line that stood across the two is told once.
  EXPECT_EQ(rest.lines.front().event, first.lines.back().event + 1);
  EXPECT_EQ(rest.lines.front().place, 1);
  EXPECT_FALSE(rest.next);
}

TEST_F(OutputLinesTest, ASearchThatTakesTooLongSaysHowFarItCame) {
  for (int n = 0; n < 250; ++n) Print("line\n");
  OutputHits part = Find({.text = "line", .patience = std::chrono::milliseconds(-1)});
  ASSERT_TRUE(part.next);
  EXPECT_EQ(part.lines.size(), 200u);
  EXPECT_EQ(Find({.text = "line", .after = *part.next}).lines.size(), 50u);
}

TEST_F(OutputLinesTest, PagesGoBothWaysAndLeaveOutTypes) {
  for (int n = 0; n < 4; ++n) Print("line\n");
  Wait(log_.Publish({.type = "log",
                     .owner_id = "ann",
                     .task_id = "t1",
                     .data = R"({"level":"info","message":"a"})"}));
  Reader reader(*store_, config_);
  auto ids = [&](PageQuery query) {
    query.filter = OfTask();
    std::vector<int64_t> found;
    auto events = Wait(reader.Page(std::move(query)));
    EXPECT_TRUE(events);
    for (const Event& event : *events) found.push_back(event.id);
    return found;
  };
  EXPECT_EQ(ids({.limit = 2, .newest = true}), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(ids({.before = 4, .limit = 2, .newest = true}), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(ids({.after = 1, .before = 4}), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(ids({.not_types = {"command_output"}}), (std::vector<int64_t>{5}));
}

}  // namespace
}  // namespace caisson::events
