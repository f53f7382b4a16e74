#include "store/transaction.h"

#include <gtest/gtest.h>

#include "store/account_rows.h"
#include "store/store.h"
#include "store/testing.h"
#include "store/work_rows.h"

namespace caisson::store {
namespace {

class TransactionTest : public testing::DatabaseTest {
 protected:
  static UserRow User(std::string id) {
    return {.id = id, .name = id, .role = "member", .created_at = Now()};
  }
  static TaskRow ATask(std::string id, int64_t number) {
    return {.id = id,
            .number = number,
            .owner_id = "ann",
            .title = "Mend 100%_of it",
            .position = 0.5 * static_cast<double>(number),
            .created_at = Now(),
            .updated_at = Now()};
  }
  template <class Job>
  auto Run(Job job) {
    return caisson::testing::Await(io_, store_->Write(std::move(job)));
  }

  TransactionTest() {
    store_ = OpenStore(database_.url(), io_.get_executor()).value();
    EXPECT_TRUE(Run([](Transaction& tx) { return tx.Insert(User("ann")); }));
  }
  ~TransactionTest() override { EXPECT_TRUE(caisson::testing::Await(io_, store_->Close())); }

  std::unique_ptr<Store> store_;
};
CAISSON_ON_BOTH_DATABASES(TransactionTest);

TEST_P(TransactionTest, ReadsBackWhatWasWritten) {
  TaskRow task = ATask("t1", 1);
  task.completed_at = Now();
  auto read = Run([&](Transaction& tx) -> Result<TaskRow> {
    TRY(tx.Insert(task));
    task.title = "Other";
    TRY(tx.Update(task));
    return tx.Need<TaskRow>("t1", "task");
  });
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->title, "Other");
  EXPECT_EQ(read->position, 0.5);
  EXPECT_EQ(read->completed_at, task.completed_at);
  EXPECT_EQ(read->squad_id, std::nullopt);
}

TEST_P(TransactionTest, SelectsByConditionsInOrder) {
  auto found = Run([&](Transaction& tx) -> Result<std::vector<TaskRow>> {
    for (int64_t i = 1; i <= 5; ++i) TRY(tx.Insert(ATask("t" + std::to_string(i), i)));
    TRY_ASSIGN(int64_t changed, tx.Set(Select<TaskRow>().Greater(&TaskRow::number, 3),
                                       {Assign(&TaskRow::status, "done")}));
    EXPECT_EQ(changed, 2);
    EXPECT_EQ(tx.Count(Select<TaskRow>().Contains(&TaskRow::title, "100%_OF")).value(), 5);
    EXPECT_EQ(tx.Count(Select<TaskRow>().Contains(&TaskRow::title, "1%0")).value(), 0);
    EXPECT_EQ(tx.Count(Select<TaskRow>().In(&TaskRow::id, std::vector<std::string>())).value(), 0);
    EXPECT_EQ(tx.Delete(Select<TaskRow>().Eq(&TaskRow::id, "t2")).value(), 1);
    return tx.List(Select<TaskRow>()
                       .In(&TaskRow::status, std::vector<std::string>{"pending", "failed"})
                       .IsNull(&TaskRow::squad_id)
                       .Order(&TaskRow::number, true)
                       .Limit(10));
  });
  ASSERT_EQ(found->size(), 2);
  EXPECT_EQ(found->at(0).id, "t3");
  EXPECT_EQ(found->at(1).id, "t1");
}

TEST_P(TransactionTest, SaysWhatIsWrong) {
  EXPECT_EQ(Run([&](Transaction& tx) { return tx.Insert(User("ann")); }).error().code(),
            Code::kAlreadyExists);
  TaskRow orphan = ATask("t1", 1);
  orphan.owner_id = "nobody";
  EXPECT_EQ(Run([&](Transaction& tx) { return tx.Insert(orphan); }).error().code(),
            Code::kNotFound);
  EXPECT_EQ(Run([&](Transaction& tx) { return tx.Update(ATask("t9", 9)); }).error().code(),
            Code::kNotFound);
  auto none = Run([&](Transaction& tx) { return tx.Need<TaskRow>("t9", "task"); });
  EXPECT_EQ(none.error().message(), "there is no task t9");
}

TEST_P(TransactionTest, AFailureLeavesNoTrace) {
  auto failed = Run([&](Transaction& tx) -> Status {
    TRY(tx.Insert(ATask("t1", 1)));
    return Fail(Code::kAborted, "on second thoughts");
  });
  EXPECT_EQ(failed.error().message(), "on second thoughts");
  EXPECT_EQ(Run([](Transaction& tx) { return tx.Count(Select<TaskRow>()); }).value(), 0);
}

TEST_P(TransactionTest, EventsGrowAndAreAnnouncedAfterTheCommit) {
  int announced = 0;
  store_->OnEvents([&] { ++announced; });
  auto emit = [](Transaction& tx) { return tx.Emit({.at = Now(), .type = "log"}); };
  int64_t first = Run(emit).value();
  EXPECT_EQ(Run(emit).value(), first + 1);
  // With PostgreSQL once more: from now on it hears of others.
  int most = database_.postgres() ? 3 : 2;
  EXPECT_GE(announced, 2);
  auto undone = Run([](Transaction& tx) -> Status {
    TRY(tx.Emit({.at = Now(), .type = "log"}));
    return Fail(Code::kAborted, "no");
  });
  EXPECT_FALSE(undone);
  EXPECT_LE(announced, most);
}

// PostgreSQL would end the transaction at its first error.
TEST_P(TransactionTest, AJobMayGoOnAfterAnErrorItExpected) {
  auto found = Run([](Transaction& tx) -> Result<UserRow> {
    TRY(tx.Insert(ATask("t1", 1)));
    Status taken = tx.Insert(User("ann"));
    EXPECT_EQ(taken.error().code(), Code::kAlreadyExists);
    TRY(tx.Insert(User("bob")));
    return tx.Need<UserRow>("ann", "user");
  });
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(Run([](Transaction& tx) { return tx.Count(Select<UserRow>()); }).value(), 2);
  EXPECT_EQ(Run([](Transaction& tx) { return tx.Count(Select<TaskRow>()); }).value(), 1);
}

TEST_P(TransactionTest, JobsSeeEachOtherInOneOrder) {
  auto add = [](Store& store, int& failed) -> Task<void> {
    // Read, then write what depends on it: wrong if two jobs ran side by side.
    auto done = co_await store.Write([](Transaction& tx) -> Status {
      TRY_ASSIGN(int64_t count, tx.Count(Select<TaskRow>()));
      return tx.Insert(ATask("t" + std::to_string(count + 1), count + 1));
    });
    if (!done) ++failed;
  };
  auto other = OpenStore(database_.url(), io_.get_executor()).value();
  int failed = 0;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 100; ++i) group.Spawn("add", add(i % 2 ? *store_ : *other, failed));
  EXPECT_TRUE(caisson::testing::Await(io_, group.Join(std::chrono::seconds(30))));
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Run([](Transaction& tx) { return tx.Count(Select<TaskRow>()); }).value(), 100);
}

}  // namespace
}  // namespace caisson::store
