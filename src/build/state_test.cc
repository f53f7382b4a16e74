#include "build/state.h"

#include <gtest/gtest.h>

#include <set>

#include "base/testing.h"
#include "store/account_rows.h"
#include "store/store.h"

namespace caisson::build {
namespace {

using store::BuildRow;
using store::Transaction;

// Every pair that is not here must be refused.
const std::set<std::pair<std::string_view, std::string_view>> kAllowed = {
    {"queued", "starting"},   {"queued", "scheduled"}, {"scheduled", "queued"},
    {"starting", "scaffold"}, {"scaffold", "code"},    {"code", "deps"},
    {"deps", "checks"},       {"checks", "ready"},     {"checks", "scaffold"},
    {"queued", "failed"},     {"scheduled", "failed"}, {"starting", "failed"},
    {"scaffold", "failed"},   {"code", "failed"},      {"deps", "failed"},
    {"checks", "failed"},
};

TEST(BuildState, TheWholeMatrix) {
  EXPECT_EQ(AllStates().size(), 9U);
  for (std::string_view from : AllStates())
    for (std::string_view to : AllStates())
      EXPECT_EQ(MayFollow(from, to), kAllowed.contains({from, to})) << from << " -> " << to;
  EXPECT_FALSE(MayFollow("queued", "nonsense"));
  EXPECT_FALSE(MayFollow("nonsense", "failed"));
  EXPECT_FALSE(MayFollow("queued", ""));
}

TEST(BuildState, OnlyTwoAreTheEnd) {
  for (std::string_view state : AllStates())
    EXPECT_EQ(IsTerminal(state), state == "ready" || state == "failed") << state;
}

TEST(BuildState, LabelsAreForPeople) {
  const std::vector<std::string_view> labels = {"Queued",         "Scheduled",
                                                "Starting",       "Scaffolding workspace",
                                                "Writing code",   "Installing dependencies",
                                                "Running checks", "Build complete",
                                                "Build failed"};
  std::vector<std::string_view> shown;
  for (std::string_view state : AllStates()) shown.push_back(StageLabel(state));
  EXPECT_EQ(shown, labels);
  EXPECT_EQ(StageLabel("nonsense"), "");
}

class MoveToTest : public ::testing::Test {
 protected:
  // Up here because its type is deduced: it has to be known where it is used.
  template <class Job>
  auto Write(Job job) {
    return testing::Await(io_, store_->Write(std::move(job)));
  }

  MoveToTest() {
    store_ = store::OpenStore("sqlite://" + (dir_ / "a.db"), io_.get_executor()).value();
    EXPECT_TRUE(Write([](Transaction& tx) {
      return tx.Insert(store::UserRow{.id = "ann", .name = "ann", .role = "member"});
    }));
  }
  ~MoveToTest() override { EXPECT_TRUE(testing::Await(io_, store_->Close())); }

  BuildRow Stored(const std::string& id) {
    return Write([id](Transaction& tx) { return tx.Need<BuildRow>(id, "build"); }).value();
  }

  testing::TempDir dir_;
  asio::io_context io_;
  std::unique_ptr<store::Store> store_;
};

// Each pair once more, by what the database says afterwards.
TEST_F(MoveToTest, TheDatabaseFollowsTheMatrix) {
  for (std::string_view from : AllStates())
    for (std::string_view to : AllStates()) {
      BuildRow row{.id = fmt::format("{}-{}", from, to), .owner_id = "ann", .project = "p"};
      row.state = from;
      Status moved = Write([row, from, to](Transaction& tx) mutable -> Status {
        TRY(tx.Insert(row));
        Status done = MoveTo(tx, row, to);
        EXPECT_EQ(done.has_value(), kAllowed.contains({from, to}));
        if (!done) EXPECT_EQ(done.error().code(), Code::kFailedPrecondition);
        return {};
      });
      ASSERT_TRUE(moved) << moved.error().message();
      bool allowed = kAllowed.contains({from, to});
      EXPECT_EQ(Stored(row.id).state, allowed ? to : from);
    }
}

TEST_F(MoveToTest, WhoComesLateChangesNothing) {
  BuildRow row{.id = "b", .owner_id = "ann", .project = "p"};
  ASSERT_TRUE(Write([row](Transaction& tx) { return tx.Insert(row); }));
  BuildRow first = row, second = row;
  ASSERT_TRUE(Write([&first](Transaction& tx) { return MoveTo(tx, first, "starting"); }));
  EXPECT_EQ(first.state, "starting");
  Status late = Write([&second](Transaction& tx) { return MoveTo(tx, second, "scheduled"); });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Stored("b").state, "starting");
}

TEST_F(MoveToTest, TheRowIsWrittenWithIt) {
  BuildRow row{.id = "b", .owner_id = "ann", .project = "p"};
  ASSERT_TRUE(Write([row](Transaction& tx) { return tx.Insert(row); }));
  row.sandbox_id = "s";
  ASSERT_TRUE(Write([&row](Transaction& tx) { return MoveTo(tx, row, "starting"); }));
  EXPECT_EQ(Stored("b").sandbox_id, "s");
}

}  // namespace
}  // namespace caisson::build
