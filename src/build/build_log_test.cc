#include "build/build_log.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "build/build_fixture.h"
#include "build/log_archive.h"

namespace caisson::build {
namespace {

using store::BuildLogRow;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuildLogTest : public BuildTest {
 protected:
  BuildLogTest() : BuildTest([](Config& config) { config.build_log_lines = 100; }) {
    BuildRow row{.id = "b", .owner_id = "ann", .project = "p", .state = "failed"};
    row.enqueued_at = Now();
    row.completed_at = Now();
    EXPECT_TRUE(Write([row](Tx& tx) { return tx.Insert(row); }));
  }
  std::unique_ptr<LogWriter> Open(const std::string& title) {
    return std::move(Wait(logs_->Open("b", "deps", title)).value());
  }
  void Close(std::unique_ptr<LogWriter> writer) {
    Wait(Flush(*writer));
    writer.reset();
  }
  static Task<Status> Flush(LogWriter& writer) {
    co_await writer.Flush();
    co_return Status();
  }
  std::vector<BuildLogRow> Rows() {
    return Write([](Tx& tx) { return LinesFrom(tx, "", "b", 0, 10'000); }).value();
  }
};

TEST_F(BuildLogTest, LinesHaveSourcePhaseAndNumber) {
  auto writer = Open("Installing");
  writer->Take(sdk::Stream::kStdout, "added 1 pack");
  writer->Take(sdk::Stream::kStderr, "\x1b[31mwarn\x1b[0m\n");
  writer->Take(sdk::Stream::kStdout, "age\nrest");
  writer->EndOfOutput();
  EXPECT_EQ(writer->tail(), "warn\nadded 1 package\nrest\n");
  Close(std::move(writer));
  auto rows = Rows();
  ASSERT_EQ(rows.size(), 4U);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].line, static_cast<int64_t>(i));
  EXPECT_EQ(rows[0].source, "system");
  EXPECT_EQ(rows[1].text, "warn");
  EXPECT_EQ(rows[1].source, "stderr");
  EXPECT_THAT(rows[1].raw, HasSubstr("\x1b[31m"));
  EXPECT_EQ(rows[2].text, "added 1 package");
  EXPECT_EQ(rows[2].phase, "deps");
}

TEST_F(BuildLogTest, SecretsAreCutOut) {
  log_->redactor().Add("a-secret-of-the-server");
  auto writer = Open("Installing");
  writer->Take(sdk::Stream::kStdout, "token a-secret-of-the-server and API_KEY=abcdefgh1234\n");
  Close(std::move(writer));
  EXPECT_THAT(Rows().at(1).text, Not(HasSubstr("a-secret-of-the-server")));
  EXPECT_THAT(Rows().at(1).text, Not(HasSubstr("abcdefgh1234")));
}

// A command whose server died is told from its first byte again.
TEST_F(BuildLogTest, WhatIsToldAgainIsThereOnce) {
  auto first = Open("Installing");
  first->Say("$ npm install");
  first->Take(sdk::Stream::kStdout, "one\ntwo\n");
  Close(std::move(first));
  auto second = Open("Installing");
  second->Say("$ npm install");
  second->Take(sdk::Stream::kStdout, "one\ntwo\nthree\n");
  Close(std::move(second));
  std::vector<std::string> texts;
  for (const BuildLogRow& row : Rows()) texts.push_back(row.text);
  EXPECT_THAT(texts, ElementsAre("Installing", "$ npm install", "one", "two", "three"));
}

TEST_F(BuildLogTest, AnotherStepBeginsAnew) {
  Close(Open("Installing"));
  auto next = Open("Checking");
  next->Take(sdk::Stream::kStdout, "one\n");
  Close(std::move(next));
  EXPECT_EQ(Rows().size(), 3U);
}

TEST_F(BuildLogTest, TooManyLinesAreLeftOutAndToldSo) {
  auto writer = Open("Installing");
  for (int i = 0; i < 300; ++i) writer->Take(sdk::Stream::kStdout, fmt::format("{}\n", i));
  Close(std::move(writer));
  auto rows = Rows();
  ASSERT_EQ(rows.size(), 102U);
  EXPECT_THAT(rows[100].text, HasSubstr("left out"));
  // The title and 99 lines are there.
  EXPECT_EQ(rows[101].text, "Output cut: 201 lines omitted.");
  Close(Open("Next"));
  EXPECT_EQ(Rows().size(), 102U);
}

TEST_F(BuildLogTest, PagesGoBackwards) {
  auto writer = Open("Installing");
  for (int i = 1; i < 50; ++i) writer->Take(sdk::Stream::kStdout, fmt::format("{}\n", i));
  Close(std::move(writer));
  std::vector<int64_t> seen;
  for (int64_t before = -1;;) {
    auto page = Write([before](Tx& tx) { return LinesBefore(tx, "", "b", before, 20); }).value();
    ASSERT_FALSE(page.lines.empty());
    for (auto it = page.lines.rbegin(); it != page.lines.rend(); ++it) seen.push_back(it->line);
    before = page.lines.front().line;
    if (!page.has_more) break;
  }
  ASSERT_EQ(seen.size(), 50U);
  EXPECT_EQ(seen.front(), 49);
  EXPECT_EQ(seen.back(), 0);
}

TEST_F(BuildLogTest, OldOnesAreArchivedAndDeleted) {
  auto writer = Open("Installing");
  writer->Take(sdk::Stream::kStdout, "kept\n");
  Close(std::move(writer));
  std::string archive = dir_ / "archive";
  auto none = Wait(DeleteOldLogs(*store_, Now() - std::chrono::hours(1), archive));
  EXPECT_EQ(none.value(), 0);
  auto one = Wait(DeleteOldLogs(*store_, Now() + std::chrono::hours(1), archive));
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(*one, 1);
  EXPECT_TRUE(Rows().empty());
  std::string text = ReadFile(archive + "/b.ndjson").value();
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_THAT(text, HasSubstr(R"("text":"kept")"));
}

TEST(LogArchive, LiesBesideTheDatabaseOrNowhere) {
  testing::TempDir dir;
  Config config;
  config.database_url = "sqlite://" + dir.path() + "/caisson.db";
  EXPECT_TRUE(CheckLogArchive(config));
  config.build_log_archive = "old/logs";
  EXPECT_TRUE(CheckLogArchive(config));
  EXPECT_EQ(LogArchiveOf(config), dir.path() + "/old/logs");
  config.build_log_archive = "/proc/none";
  EXPECT_THAT(CheckLogArchive(config).error().message(), HasSubstr("'/proc/none' cannot work"));
  config.database_url = "postgresql://localhost/caisson";
  for (const char* name : {"logs", "/var/logs"}) {
    config.build_log_archive = name;
    EXPECT_THAT(CheckLogArchive(config).error().message(), HasSubstr("this server has none"));
  }
  config.build_log_archive = "";
  EXPECT_TRUE(CheckLogArchive(config));
}

TEST_F(BuildLogTest, AnArchivedLogIsReadAsBefore) {
  auto writer = Open("Installing");
  for (int i = 1; i < 50; ++i)
    writer->Take(sdk::Stream::kStdout, fmt::format("\x1b[31mline {}\x1b[0m\n", i));
  Close(std::move(writer));
  std::string archive = dir_ / "archive";
  auto before = [&](int64_t line) {
    return Write([&](Tx& tx) { return LinesBefore(tx, archive, "b", line, 20); }).value();
  };
  auto from = [&](int64_t line) {
    return Write([&](Tx& tx) { return LinesFrom(tx, archive, "b", line, 20); }).value();
  };
  auto numbers = [](const std::vector<BuildLogRow>& lines) {
    std::vector<int64_t> list;
    for (const BuildLogRow& line : lines) list.push_back(line.line);
    return list;
  };
  auto newest = before(-1), older = before(30), oldest = before(20);
  auto first = from(0), last = from(40);
  ASSERT_EQ(Wait(DeleteOldLogs(*store_, Now() + std::chrono::hours(1), archive)).value(), 1);
  ASSERT_TRUE(Rows().empty());
  EXPECT_EQ(numbers(before(-1).lines), numbers(newest.lines));
  EXPECT_EQ(numbers(before(30).lines), numbers(older.lines));
  EXPECT_EQ(numbers(before(20).lines), numbers(oldest.lines));
  EXPECT_TRUE(before(30).has_more);
  EXPECT_FALSE(before(20).has_more);
  EXPECT_EQ(numbers(from(0)), numbers(first));
  EXPECT_EQ(numbers(from(40)), numbers(last));
  EXPECT_TRUE(from(50).empty());
  BuildLogRow line = from(3).front();
  EXPECT_EQ(line.text, "line 3");
  EXPECT_EQ(line.raw, first[3].raw);
  EXPECT_EQ(line.at, first[3].at);
  EXPECT_TRUE(Write([&](Tx& tx) { return LinesFrom(tx, archive, "other", 0, 20); })->empty());
}

TEST_F(BuildLogTest, TheLogOfABuildThatGoesOnStays) {
  ASSERT_TRUE(Write([](Tx& tx) -> Status {
    TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>("b", "build"));
    row.completed_at.reset();
    return tx.Update(row);
  }));
  Close(Open("Installing"));
  EXPECT_EQ(Wait(DeleteOldLogs(*store_, Now() + std::chrono::hours(1), "")).value(), 0);
  EXPECT_EQ(Rows().size(), 1U);
}

}  // namespace
}  // namespace caisson::build
