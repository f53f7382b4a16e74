#include "events/log.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/testing.h"
#include "events/types.h"

namespace caisson::events {
namespace {

using std::chrono::milliseconds;

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    config_.sse_queue = 50;
    store_ = store::OpenStore("sqlite://" + (dir_ / "a.db"), io_.get_executor()).value();
    Open();
  }
  ~LogTest() override {
    Wait(log_->Stop());
    EXPECT_TRUE(Wait(store_->Close()));
  }

  void Open() {
    log_ = std::make_unique<Log>(io_.get_executor(), *store_, config_);
    EXPECT_TRUE(Wait(log_->Start()));
  }
  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }
  static Event Line(int n, std::string task = "t1") {
    return {.type = "log",
            .owner_id = "ann",
            .task_id = std::move(task),
            .data = fmt::format(R"({{"level":"info","message":"{}"}})", n)};
  }
  void Publish(int from, int to, const std::string& task = "t1") {
    for (int n = from; n < to; ++n) Wait(log_->Publish(Line(n, task)));
  }
  static int NumberOf(const Event& event) {
    return std::stoi(std::string(boost::json::parse(event.data).at("message").as_string()));
  }
  // Waits for so many events, and then reads until nothing comes for a while.
  std::vector<int> Drain(Subscription& subscription, size_t count, int64_t* missed = nullptr) {
    std::vector<int> numbers;
    for (;;) {
      auto batch = Wait(subscription.Next(milliseconds(numbers.size() < count ? 30'000 : 150)));
      EXPECT_TRUE(batch);
      if (!batch) return numbers;
      if (missed) *missed += batch->missed;
      if (batch->events.empty() && batch->missed == 0) return numbers;
      for (const Event& event : batch->events) numbers.push_back(NumberOf(event));
    }
  }
  static std::vector<int> Range(int from, int to) {
    std::vector<int> numbers;
    for (int n = from; n < to; ++n) numbers.push_back(n);
    return numbers;
  }

  testing::TempDir dir_;
  Config config_;
  asio::io_context io_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Log> log_;
};

TEST_F(LogTest, FollowersGetWhatComesInOrder) {
  Publish(0, 3);
  auto now = Wait(log_->Follow({}, std::nullopt)).value();
  auto all = Wait(log_->Follow({}, 0)).value();
  Publish(3, 10);
  EXPECT_EQ(Drain(*now, 7), Range(3, 10));
  EXPECT_EQ(Drain(*all, 10), Range(0, 10));
  EXPECT_EQ(log_->numbers().subscriptions, 2u);
}

TEST_F(LogTest, GoesOnAfterTheLastOneSeenAlsoAfterARestart) {
  Publish(0, 5);
  int64_t seen = Wait(log_->Recent({}, 3)).value().front().id;  // number 2
  Wait(log_->Stop());
  Open();
  auto rest = Wait(log_->Follow({}, seen)).value();
  Publish(5, 8);
  EXPECT_EQ(Drain(*rest, 5), Range(3, 8));
}

TEST_F(LogTest, ASlowReaderIsToldAndMissesNothing) {
  auto slow = Wait(log_->Follow({}, std::nullopt)).value();
  Publish(0, 20);
  int64_t missed = 0;
  EXPECT_EQ(Drain(*slow, 20, &missed), Range(0, 20));
  EXPECT_EQ(missed, 0);
  Publish(20, 150);  // more than memory holds
  EXPECT_EQ(Drain(*slow, 130, &missed), Range(20, 150));
  EXPECT_GE(missed, 100);
}

TEST_F(LogTest, FiltersByEverythingAtOnce) {
  Publish(0, 2, "t1");
  Publish(2, 4, "t2");
  Publish(4, 6, "t3");
  auto two = Wait(log_->Follow({.owner_id = "ann", .task_ids = {"t1", "t3"}}, 0)).value();
  EXPECT_EQ(Drain(*two, 4), (std::vector<int>{0, 1, 4, 5}));
  auto none = Wait(log_->Follow({.owner_id = "bob", .task_ids = {"t1"}}, 0)).value();
  EXPECT_TRUE(Drain(*none, 0).empty());
  EXPECT_EQ(Wait(log_->Recent({.task_ids = {"t2"}}, 1)).value().size(), 1u);
}

TEST_F(LogTest, SaysWhenTheLogHasForgotten) {
  Publish(0, 100);
  ASSERT_TRUE(Wait(store_->Write([](store::Transaction& tx) {
    return tx.Delete(store::Select<Event>().Less(&Event::id, 40));
  })));
  EXPECT_EQ(Wait(log_->Follow({}, 10)).error().code(), Code::kOutOfRange);
  EXPECT_EQ(Wait(log_->Follow({}, 1'000'000)).error().code(), Code::kOutOfRange);
  EXPECT_TRUE(Wait(log_->Follow({}, 39)));
  EXPECT_TRUE(Wait(log_->Follow({}, 0)));
}

TEST_F(LogTest, GatheredOutputIsWrittenInOrderBeforeWhatFollowsAFlush) {
  auto reader = Wait(log_->Follow({}, std::nullopt)).value();
  for (int n = 0; n < 700; ++n) log_->Gather(Line(n));
  Wait(log_->Flush());
  Publish(700, 701);
  EXPECT_EQ(Drain(*reader, 701), Range(0, 701));
}

TEST_F(LogTest, WhatComesTooFastIsCountedForWhatItWasAbout) {
  auto print = [&](std::string task) {
    log_->Gather({.type = "command_output",
                  .owner_id = "ann",
                  .task_id = std::move(task),
                  .data = R"({"output":"one\ntwo\n","stream":"stdout"})"});
  };
  // Nobody writes them meanwhile.
  for (int n = 0; n < 50'000; ++n) print("t1");
  print("t2");
  for (int n = 0; n < 30; ++n) print("t3");
  Wait(log_->Flush());
  EXPECT_EQ(log_->numbers().dropped, 31u);
  auto said = [&](const std::string& task) {
    auto events = Wait(log_->Recent({.task_ids = {task}, .types = {"log"}}, 10)).value();
    return events.empty() ? std::string() : events[0].data;
  };
  EXPECT_EQ(said("t1"), "");
  EXPECT_EQ(said("t2"),
            R"({"level":"warn","message":"1 pieces of output came too fast and were dropped",)"
            R"("cut_lines":2,"cut_bytes":8})");
  EXPECT_EQ(said("t3"),
            R"({"level":"warn","message":"30 pieces of output came too fast and were dropped",)"
            R"("cut_lines":60,"cut_bytes":240})");
}

TEST_F(LogTest, AnEventThatCannotBeWrittenFailsNobody) {
  auto reader = Wait(log_->Follow({}, std::nullopt)).value();
  log_->Gather({.type = "no_such_type", .data = "{}"});
  Wait(log_->Flush());
  Wait(log_->Publish({.type = "error", .data = "broken"}));
  // A reader that goes away while something is on its way to it.
  auto gone = Wait(log_->Follow({}, std::nullopt)).value();
  log_->Gather(Line(0));
  gone.reset();
  Wait(log_->Flush());
  Publish(1, 3);
  EXPECT_EQ(Drain(*reader, 3), Range(0, 3));
}

TEST_F(LogTest, NothingSecretAndNothingMisshapenGetsIn) {
  log_->redactor().Add("the-planted-secret");
  auto emit = [&](std::string type, std::string data) {
    return Wait(store_->Write(
        [&](store::Transaction& tx) { return log_->Emit(tx, {.type = type, .data = data}); }));
  };
  EXPECT_TRUE(emit("error", R"({"message":"it was the-planted-secret"})"));
  EXPECT_EQ(Wait(log_->Recent({}, 1)).value()[0].data, R"({"message":"it was ***"})");
  EXPECT_FALSE(emit("error", "{}"));
  EXPECT_FALSE(emit("error", R"({"message":1})"));
  EXPECT_FALSE(emit("no_such_type", "{}"));
  EXPECT_FALSE(emit("heartbeat", "{}"));
  EXPECT_FALSE(emit("error", "broken"));
}

TEST(EventTypes, HaveNamesOfTheirOwnAndASchema) {
  for (const Type& type : Types()) {
    EXPECT_EQ(FindType(type.name), &type);
    EXPECT_EQ(SchemaOf(type).at("type"), "object");
  }
}

}  // namespace
}  // namespace caisson::events
