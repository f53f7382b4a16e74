// Servers that share a database: a run that has something at one of them goes on there.
#include <gmock/gmock.h>

#include "flow/flow_fixture.h"
#include "flow/ledger.h"

namespace caisson::flow {
namespace {

using store::NodeRow;
using store::Transaction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NodesTest : public FlowTest {
 protected:
  NodesTest() {
    Steps({"one", "two"});
    definition_.home = [this](Transaction&, const store::RunRow&) -> Result<std::string> {
      return home_;
    };
    definition_.leave = [this](Transaction&, const store::RunRow&,
                               const std::string& node) -> Status {
      left_.push_back(node);
      home_.clear();
      return {};
    };
    definitions_ = {{"test", definition_}};
  }
  void StartAt(Ledger& ledger) {
    Write([&](Transaction& tx) {
      return ledger.StartRun(tx, {.id = "r1", .definition = "test", .owner_id = "ann"});
    });
  }
  // Whether the server could take the step.
  bool Takes(Ledger& ledger) {
    return !Write([&](Transaction& tx) { return ledger.Claim(tx, 1); })->empty();
  }
  void SeenAt(Ledger& ledger, Time time) {
    Write([&](Transaction& tx) { return ledger.Beat(tx, time, {}); });
  }
  std::optional<NodeRow> Node(const std::string& id) {
    return Write([&](Transaction& tx) { return tx.Get<NodeRow>(id); }).value();
  }

  std::map<std::string, Definition> definitions_;
  std::string home_;
  std::vector<std::string> left_;
};
CAISSON_ON_BOTH_DATABASES(NodesTest);

TEST_P(NodesTest, AStepIsLeftToTheServerThatHasItsRun) {
  Ledger a(config_, definitions_, "a"), b(config_, definitions_, "b");
  SeenAt(a, Now());
  StartAt(b);
  home_ = "a";
  EXPECT_FALSE(Takes(b));
  EXPECT_EQ(Run("r1").node, "a");
  EXPECT_EQ(Step("r1", "one").state, "ready");
  EXPECT_EQ(Step("r1", "one").attempt, 0) << "as if it had never been claimed";
  EXPECT_TRUE(Takes(a));
  EXPECT_EQ(Step("r1", "one").attempt, 1);
  EXPECT_THAT(left_, IsEmpty());
}

TEST_P(NodesTest, ARunWithoutAHomeIsAnybodys) {
  Ledger a(config_, definitions_, "a"), b(config_, definitions_, "b");
  StartAt(a);
  EXPECT_TRUE(Takes(b));
  EXPECT_EQ(Run("r1").node, "");
}

TEST_P(NodesTest, ARunThatIsCanceledNeedsItsServerOnlyToCleanUp) {
  Ledger a(config_, definitions_, "a"), b(config_, definitions_, "b");
  SeenAt(a, Now());
  StartAt(b);
  home_ = "a";
  Write([&](Transaction& tx) -> Status {
    store::ClaimQuery dead{.lease_owner = "x", .now = Now(), .lease_until = Now()};
    TRY(store::ClaimStep(tx, dead));
    TRY(b.Cancel(tx, "r1", "enough"));
    return {};
  });
  EXPECT_FALSE(Takes(b));
  EXPECT_EQ(Run("r1").state, "canceled");
}

TEST_P(NodesTest, ARunOfALostServerIsTakenOver) {
  config_.node_lost_s = 60;
  Ledger a(config_, definitions_, "a"), b(config_, definitions_, "b");
  SeenAt(a, Now() - 30s);
  StartAt(b);
  home_ = "a";
  EXPECT_FALSE(Takes(b)) << "it may come back";
  SeenAt(a, Now() - 2min);
  EXPECT_TRUE(Takes(b));
  EXPECT_THAT(left_, ElementsAre("a"));
  EXPECT_EQ(Run("r1").node, "");
}

TEST_P(NodesTest, WithoutALimitALostServerIsWaitedFor) {
  config_.node_lost_s = 0;
  Ledger a(config_, definitions_, "a"), b(config_, definitions_, "b");
  SeenAt(a, Now() - 1000h);
  StartAt(b);
  home_ = "a";
  EXPECT_FALSE(Takes(b));
  EXPECT_TRUE(Takes(a));
}

TEST_P(NodesTest, AServerThatNeverSaidThatItIsThereHasItsTime) {
  config_.node_lost_s = 60;
  Ledger b(config_, definitions_, "b");
  StartAt(b);
  home_ = "old";
  EXPECT_FALSE(Takes(b));
  ASSERT_TRUE(Node("old"));
  b.clock().Follow(Now() + 2min);
  EXPECT_TRUE(Takes(b));
  EXPECT_THAT(left_, ElementsAre("old"));
}

TEST_P(NodesTest, TheOnlyServerNeedNotAsk) {
  Ledger alone(config_, definitions_);
  StartAt(alone);
  definitions_["test"].home = [](Transaction&, const store::RunRow&) -> Result<std::string> {
    return Fail(Code::kInternal, "it was asked");
  };
  EXPECT_TRUE(Takes(alone));
}

TEST_P(NodesTest, AServerSaysThatItIsThere) {
  Ledger a(config_, definitions_, "a"), alone(config_, definitions_);
  Time before = Now();
  SeenAt(a, before);
  EXPECT_EQ(Node("a")->seen_at, before);
  SeenAt(a, before + 1s);
  EXPECT_EQ(Node("a")->seen_at, before + 1s);
  SeenAt(alone, before);
  EXPECT_FALSE(Node("")) << "who is alone tells nobody";
}

}  // namespace
}  // namespace caisson::flow
