#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/testing.h"
#include "events/gzip.h"
#include "events/log.h"
#include "events/output_archiver.h"

namespace caisson::events {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class OutputArchiveTest : public ::testing::Test {
 protected:
  OutputArchiveTest() {
    config_.database_url = "sqlite://" + (dir_ / "a.db");
    config_.log_archive_hours = 0;  // only when a test says so
    store_ = store::OpenStore(config_.database_url, io_.get_executor()).value();
    log_ = std::make_unique<Log>(io_.get_executor(), *store_, config_);
    EXPECT_TRUE(Wait(log_->Start()));
  }
  ~OutputArchiveTest() override {
    Wait(log_->Stop());
    EXPECT_TRUE(Wait(store_->Close()));
  }

  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }
  void Say(const std::string& text, Time at, const std::string& type = "command_output") {
    std::string data =
        type == "log"
            ? R"({"level":"info","message":"x"})"
            : fmt::format(R"({{"output":"{}","stream":"stdout","end":{}}})", text, text.size());
    Wait(log_->Publish(
        {.at = at, .type = type, .owner_id = "ann", .execution_id = "e1", .data = data}));
  }
  std::vector<Event> Shown() { return Wait(log_->After({}, 0, 100'000)).value(); }
  std::vector<std::string> Stored() {
    return Wait(store_->Read([](store::Transaction& tx) -> Result<std::vector<std::string>> {
             TRY_ASSIGN(auto rows, tx.List(store::Select<Event>().Order(&Event::id)));
             std::vector<std::string> data;
             for (const Event& row : rows) data.push_back(row.data);
             return data;
           }))
        .value();
  }
  // A server that begins anew and moves what there is to move.
  void Archive() {
    OutputArchive archive(Directory());
    OutputArchiver archiver(*store_, archive, 1h);
    for (;;) {
      auto more = Wait(archiver.Some());
      ASSERT_TRUE(more) << more.error().message();
      if (!*more) return;
    }
  }
  std::string Directory() const { return OutputArchive::DirectoryFor(config_); }
  size_t Files() const {
    std::error_code ec;
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(Directory(), ec),
                                             std::filesystem::directory_iterator()));
  }

  testing::TempDir dir_;
  asio::io_context io_;
  Config config_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Log> log_;
};

TEST_F(OutputArchiveTest, WhoReadsDoesNotNotice) {
  Say("one", Now() - 3h);
  Say("", Now() - 3h, "log");
  Say("two", Now() - 2h);
  Say("new", Now());
  auto before = Shown();
  Archive();
  EXPECT_EQ(Files(), 1u);
  auto stored = Stored();
  EXPECT_THAT(stored[0], Not(HasSubstr("one")));
  EXPECT_THAT(stored[0], HasSubstr(R"("end":3)"));  // for a step that is taken up again
  EXPECT_THAT(stored[2], Not(HasSubstr("two")));
  EXPECT_THAT(stored[3], HasSubstr("new"));
  auto after = Shown();
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].data, before[i].data) << i;
  EXPECT_EQ(Wait(log_->Recent({.types = {"command_output"}}, 2)).value()[0].data, before[2].data);
  auto reader = Wait(log_->Follow({}, 0)).value();
  EXPECT_EQ(Wait(reader->Next(10s)).value().events[0].data, before[0].data);
  Archive();  // a second time changes nothing
  EXPECT_EQ(Files(), 1u);
  EXPECT_EQ(Stored(), stored);
}

TEST_F(OutputArchiveTest, ACrashBetweenFileAndRowsIsMended) {
  Say("one", Now() - 3h);
  Say("two", Now() - 2h);
  auto before = Shown();
  OutputArchive archive(Directory());
  ASSERT_TRUE(archive.Write(before));  // and the rows still have it
  Archive();
  EXPECT_EQ(Files(), 1u);
  EXPECT_THAT(Stored()[0], Not(HasSubstr("one")));
  EXPECT_EQ(Shown()[1].data, before[1].data);
}

TEST_F(OutputArchiveTest, FilesAreOfABoundedSizeAndGoWithTheirEvents) {
  std::string long_text(300 << 10, 'x');
  for (int i = 0; i < 10; ++i) Say(long_text, Now() - 2h);
  Archive();
  EXPECT_GE(Files(), 2u);
  for (const Event& event : Shown()) EXPECT_THAT(event.data, HasSubstr("xxxx"));
  int64_t newest = Shown().back().id;
  ASSERT_TRUE(Wait(store_->Write([newest](store::Transaction& tx) {
    return tx.Delete(store::Select<Event>().Less(&Event::id, newest));
  })));
  Archive();
  EXPECT_EQ(Files(), 1u);
  EXPECT_THAT(Shown().front().data, HasSubstr("xxxx"));
  ASSERT_TRUE(Wait(
      store_->Write([](store::Transaction& tx) { return tx.Delete(store::Select<Event>()); })));
  Archive();
  EXPECT_EQ(Files(), 0u);
}

TEST_F(OutputArchiveTest, ALostOrBrokenFileIsTold) {
  Say("one", Now() - 3h);
  Archive();
  for (const auto& file : std::filesystem::directory_iterator(Directory()))
    ASSERT_TRUE(WriteFileAtomic(file.path(), "no gzip", 0600));
  auto shown = Shown();
  EXPECT_THAT(shown[0].data, HasSubstr("its file is gone"));
  EXPECT_THAT(shown[0].data, HasSubstr(R"("stream":"stdout")"));
}

TEST_F(OutputArchiveTest, NotWithoutAPlaceOrATime) {
  Say("one", Now() - 3h);
  OutputArchive nowhere("");
  OutputArchiver first(*store_, nowhere, 1h);
  EXPECT_FALSE(Wait(first.Some()).value());
  OutputArchive archive(Directory());
  OutputArchiver second(*store_, archive, 0h);
  EXPECT_FALSE(Wait(second.Some()).value());
  EXPECT_THAT(Stored()[0], HasSubstr("one"));
  config_.database_url = "postgresql://host/db";
  EXPECT_EQ(Directory(), "");
}

TEST(GzipTest, ThereAndBack) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("line {}\n", i);
  std::string packed = Gzip(text);
  EXPECT_LT(packed.size(), text.size() / 3);
  EXPECT_EQ(Gunzip(packed, text.size()).value(), text);
  EXPECT_EQ(Gunzip(packed, 1'000).error().code(), Code::kOutOfRange);
  EXPECT_EQ(Gunzip(packed.substr(0, packed.size() / 2), 1 << 30).error().code(), Code::kDataLoss);
  EXPECT_EQ(Gunzip("plain", 100).error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace caisson::events
