#include "work/kept_checkouts.h"

#include <gmock/gmock.h>

#include "work/checkout_eviction.h"
#include "work/work_fixture.h"

namespace caisson::work {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const Time kNoon = Time(std::chrono::hours(500'000));

// ---- the rules, by the clock -----------------------------------------------------------------

KeptCheckout Row(std::string id, int64_t uses, std::chrono::seconds gap,
                 std::chrono::seconds idle) {
  return {.id = std::move(id),
          .state = "ready",
          .uses = uses,
          .gap_s = gap.count(),
          .last_used_at = kNoon - idle};
}

std::vector<std::string> Gone(const Config& config, std::vector<KeptCheckout> rows) {
  std::vector<std::string> ids;
  for (const KeptCheckout& row : Evicted(config, std::move(rows), kNoon)) ids.push_back(row.id);
  return ids;
}

Config Rules(int64_t keep, int64_t max) {
  Config config;
  config.checkout_cache_keep = keep;
  config.checkout_cache_max = max;
  return config;
}

TEST(CheckoutEviction, HowOftenItWasUsedTellsHowLongItStays) {
  Config config = Rules(0, 100);
  EXPECT_THAT(Gone(config, {Row("often", 5, 599s, 7199s), Row("often late", 5, 599s, 7200s),
                            Row("sometimes", 5, 600s, 1799s), Row("sometimes late", 5, 600s, 1800s),
                            Row("hourly", 5, 3600s, 1799s), Row("seldom", 5, 3601s, 0s)}),
              UnorderedElementsAre("often late", "sometimes late", "seldom"));
}

TEST(CheckoutEviction, ANewOneHasAnHourToBeUsedAgain) {
  EXPECT_THAT(Gone(Rules(0, 100), {Row("new", 1, -1s, 3599s), Row("not used", 1, -1s, 3600s)}),
              ElementsAre("not used"));
}

TEST(CheckoutEviction, TheMostUsedOnesStayForEver) {
  std::vector<KeptCheckout> rows;
  for (int64_t uses = 1; uses <= 12; ++uses)
    rows.push_back(Row(std::to_string(uses), uses, 10'000s, 1'000'000s));
  EXPECT_THAT(Gone(Rules(10, 100), rows), UnorderedElementsAre("1", "2"));
}

TEST(CheckoutEviction, OfTooManyTheLeastUsedGo) {
  EXPECT_THAT(Gone(Rules(10, 2), {Row("a", 3, 1s, 1s), Row("b", 9, 1s, 1s), Row("c", 1, 1s, 1s),
                                  Row("older", 3, 1s, 2s)}),
              UnorderedElementsAre("c", "older"));
  EXPECT_THAT(Gone(Rules(10, 0), {Row("a", 3, 1s, 1s)}), ElementsAre("a"));
}

// ---- the flow --------------------------------------------------------------------------------

class KeptCheckoutsTest : public WorkTest {
 protected:
  KeptCheckoutsTest() {
    config_.checkout_cache_max = 3;
    config_.shutdown_grace_ms = 1000;
    Begin();
  }
  ~KeptCheckoutsTest() override { testing::Await(io_, kept_->Stop()); }

  // A server process begins (again).
  void Begin() {
    if (kept_) testing::Await(io_, kept_->Stop());
    CheckoutShelf shelf;
    shelf.save = [this](std::string owner_id, std::string sandbox_id,
                        std::string name) -> Task<Result<CheckoutShelf::Copy>> {
      ++saves_;
      while (hold_) co_await SleepFor(2ms);
      if (save_fails_) co_return tl::unexpected(*save_fails_);
      std::string snapshot = "s-" + sandbox_id;
      copies_[snapshot] = owner_id + " " + name;
      co_return CheckoutShelf::Copy{snapshot, 1000};
    };
    shelf.remove = [this](std::string, std::string name) -> Task<Status> {
      if (remove_fails_) co_return tl::unexpected(*remove_fails_);
      std::erase_if(copies_, [&](const auto& one) {
        return one.first == name || one.second.ends_with(" " + name);
      });
      co_return Status();
    };
    kept_ = std::make_unique<KeptCheckouts>(io_.get_executor(), platform(), "this server", shelf,
                                            [this] { return now_; });
  }
  static CheckoutKey Key(std::string repository = "https://host/a/b.git",
                         std::string owner = "ann") {
    return {.owner_id = std::move(owner), .repository = std::move(repository)};
  }
  void Keep(CheckoutKey key, std::string sandbox) {
    testing::Await(io_, kept_->Keep(std::move(key), std::move(sandbox)));
  }
  std::string Find(CheckoutKey key) {
    auto found = testing::Await(io_, kept_->Find(std::move(key)));
    return found ? found->snapshot : "";
  }
  void Use(CheckoutKey key) {
    auto found = testing::Await(io_, kept_->Find(std::move(key)));
    ASSERT_TRUE(found);
    testing::Await(io_, kept_->Used(*found));
  }
  bool Failed(Code code) {
    auto found = testing::Await(io_, kept_->Find(Key()));
    return testing::Await(io_, kept_->Failed(found.value(), Error(code, "no")));
  }
  void Sweep() {
    auto swept = Wait(kept_->Sweep());
    EXPECT_TRUE(swept) << swept.error().message();
  }
  std::vector<KeptCheckout> Rows() {
    return Write([](Tx& tx) { return tx.List(store::Select<KeptCheckout>()); }).value();
  }
  std::vector<std::string> Copies() {
    std::vector<std::string> names;
    for (const auto& [name, about] : copies_) names.push_back(name);
    return names;
  }

  Time now_ = kNoon;
  std::map<std::string, std::string> copies_;  // owner and name
  std::optional<Error> save_fails_, remove_fails_;
  bool hold_ = false;
  int saves_ = 0;
  std::unique_ptr<KeptCheckouts> kept_;
};

TEST_F(KeptCheckoutsTest, AreForTheirOwnerRepositoryAndTemplateOnly) {
  EXPECT_EQ(Find(Key()), "");
  Keep(Key(), "one");
  EXPECT_EQ(Find(Key()), "s-one");
  EXPECT_EQ(Find(Key("https://host/a/b.git", "bob")), "");
  EXPECT_EQ(Find(Key("https://host/a/c.git")), "");
  CheckoutKey other = Key();
  other.template_name = "another";
  EXPECT_EQ(Find(other), "");
  CheckoutKey shallow = Key();
  shallow.depth = 1;
  EXPECT_EQ(Find(shallow), "");
  // One that is fresh is enough.
  Keep(Key(), "two");
  EXPECT_EQ(saves_, 1);
  EXPECT_EQ(kept_->numbers().misses, 5u);
  EXPECT_EQ(kept_->numbers().hits, 0u);
}

TEST_F(KeptCheckoutsTest, UsesAreCountedAndTimed) {
  Keep(Key(), "one");
  now_ += 60s;
  Use(Key());
  now_ += 300s;
  Use(Key());
  auto rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].uses, 3);
  EXPECT_EQ(rows[0].gap_s, 300);
  EXPECT_EQ(rows[0].last_used_at, now_);
  EXPECT_EQ(kept_->numbers().hits, 2u);
}

TEST_F(KeptCheckoutsTest, AreEvictedByTheClock) {
  config_.checkout_cache_keep = 1;
  Begin();
  Keep(Key("most"), "most");
  for (int i = 0; i < 3; ++i) Use(Key("most"));
  Keep(Key("busy"), "busy");
  Keep(Key("idle"), "idle");
  now_ += 300s;
  Use(Key("busy"));
  now_ += 900s;
  Use(Key("idle"));
  now_ += 1799s;
  Sweep();
  EXPECT_THAT(Copies(), ElementsAre("s-busy", "s-idle", "s-most"));
  now_ += 1s;
  Sweep();
  EXPECT_THAT(Copies(), ElementsAre("s-busy", "s-most"));
  now_ += 7200s;
  Sweep();
  EXPECT_THAT(Copies(), ElementsAre("s-most"));
  now_ += 1'000'000s;
  Sweep();
  EXPECT_THAT(Copies(), ElementsAre("s-most"));
  EXPECT_EQ(Rows().size(), 1u);
}

TEST_F(KeptCheckoutsTest, TheLeastUsedMakesRoomForANewOne) {
  for (const char* name : {"a", "b", "c"}) Keep(Key(name), name);
  Use(Key("a"));
  Use(Key("c"));
  Keep(Key("d"), "d");
  EXPECT_THAT(Copies(), ElementsAre("s-a", "s-c", "s-d"));
  EXPECT_EQ(Find(Key("b")), "");
  EXPECT_EQ(Rows().size(), 3u);
}

TEST_F(KeptCheckoutsTest, OnesThatAreBrokenAreForgotten) {
  Keep(Key(), "one");
  // What says nothing of the copy leaves it there.
  EXPECT_FALSE(Failed(Code::kResourceExhausted));
  EXPECT_TRUE(Failed(Code::kUnavailable));
  EXPECT_EQ(Find(Key()), "s-one");
  for (Code code : {Code::kNotFound, Code::kDataLoss, Code::kInternal}) {
    Keep(Key(), "one");
    EXPECT_TRUE(Failed(code));
    EXPECT_EQ(Find(Key()), "");
    EXPECT_THAT(Rows(), IsEmpty());
    EXPECT_THAT(copies_, IsEmpty());
  }
}

TEST_F(KeptCheckoutsTest, ACopyThatIsRefusedConcernsNobody) {
  save_fails_ = Error(Code::kResourceExhausted, "the disk is full");
  Keep(Key(), "one");
  EXPECT_THAT(Rows(), IsEmpty());
  save_fails_.reset();
  Keep(Key(), "two");
  EXPECT_EQ(Find(Key()), "s-two");
}

TEST_F(KeptCheckoutsTest, OldOnesAreReplacedByWhatWasMadeFromThem) {
  Keep(Key(), "one");
  now_ += 7199s;
  Use(Key());
  Keep(Key(), "two");
  EXPECT_EQ(Find(Key()), "s-one");
  now_ += 1s;
  Keep(Key(), "two");
  EXPECT_THAT(Copies(), ElementsAre("s-two"));
  auto rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].uses, 2);  // it is the same checkout to its user
  EXPECT_EQ(rows[0].gap_s, 7199);
  // As many copies deep as may be: the next task begins anew.
  now_ += 7200s;
  save_fails_ = Error(Code::kFailedPrecondition, "no deeper is allowed");
  Keep(Key(), "three");
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(copies_, IsEmpty());
}

TEST_F(KeptCheckoutsTest, ACrashLeavesNoCopyThatNobodyKnows) {
  Keep(Key("kept"), "kept");
  KeptCheckout before{.id = "c1", .installation = "this server", .owner_id = "ann"};
  KeptCheckout after{.id = "c2", .installation = "this server", .owner_id = "ann"};
  KeptCheckout doomed{.id = "c3",
                      .installation = "this server",
                      .owner_id = "ann",
                      .state = "doomed",
                      .snapshot = "s-doomed"};
  KeptCheckout foreign{.id = "c4", .installation = "another server", .owner_id = "ann"};
  EXPECT_TRUE(Write([&](Tx& tx) -> Status {
    for (const KeptCheckout* row : {&before, &after, &doomed, &foreign}) TRY(tx.Insert(*row));
    return {};
  }));
  copies_["s-after"] = "ann checkout-c2";  // made, and its id was not written down
  copies_["s-doomed"] = "ann checkout-c3";
  Begin();
  testing::Await(io_, kept_->Start());
  EXPECT_THAT(Copies(), ElementsAre("s-kept"));
  std::vector<std::string> left;
  for (const KeptCheckout& row : Rows()) left.push_back(row.repository + row.id);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_THAT(left, ::testing::Contains("c4"));
  EXPECT_EQ(Find(Key("kept")), "s-kept");
}

TEST_F(KeptCheckoutsTest, WhatCannotBeDeletedIsTriedAgain) {
  Keep(Key(), "one");
  remove_fails_ = Error(Code::kUnavailable, "not now");
  EXPECT_TRUE(Failed(Code::kDataLoss));
  EXPECT_EQ(Find(Key()), "");
  EXPECT_EQ(Rows().size(), 1u);
  Sweep();
  EXPECT_EQ(Rows().size(), 1u);
  remove_fails_.reset();
  Sweep();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(copies_, IsEmpty());
}

TEST_F(KeptCheckoutsTest, ASweepLeavesWhatIsBeingMade) {
  hold_ = true;
  TaskGroup tasks(io_.get_executor());
  tasks.Spawn("keep", kept_->Keep(Key(), "one"));
  while (saves_ == 0) Wait(Pause());
  Sweep();
  EXPECT_EQ(Rows().size(), 1u);
  Keep(Key(), "two");  // one is enough
  EXPECT_EQ(saves_, 1);
  // Whoever waited for it goes away; the copy comes to its end.
  tasks.Cancel();
  testing::Await(io_, tasks.Join(30s));
  // Who comes again for the same sandbox waits for it.
  bool waited = false;
  tasks.Spawn("again", [](KeptCheckouts& kept, bool& done) -> Task<void> {
    co_await kept.Keep(Key(), "one");
    done = true;
  }(*kept_, waited));
  for (int i = 0; i < 20; ++i) Wait(Pause());
  EXPECT_FALSE(waited);
  hold_ = false;
  while (!waited) Wait(Pause());
  while (copies_.empty() || Rows()[0].state != "ready") Wait(Pause());
  EXPECT_EQ(Find(Key()), "s-one");
}

TEST_F(KeptCheckoutsTest, CanBeSwitchedOff) {
  Keep(Key(), "one");
  config_.checkout_cache_max = 0;
  Begin();
  EXPECT_EQ(kept_->WhyOff(), "checkout_cache_max is 0");
  testing::Await(io_, kept_->Start());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(copies_, IsEmpty());
  Keep(Key(), "two");
  EXPECT_EQ(saves_, 1);
  EXPECT_EQ(kept_->numbers().misses, 0u);
  config_.checkout_cache_max = 3;
  config_.provider = "e2b";
  Begin();
  EXPECT_THAT(kept_->WhyOff(), ::testing::HasSubstr("e2b"));
  Keep(Key(), "two");
  EXPECT_EQ(saves_, 1);
}

TEST_F(KeptCheckoutsTest, AreListedAndRemovedByTheirOwners) {
  Keep(Key("a"), "a");
  now_ += 1s;
  Keep(Key("b", "bob"), "b");
  auto mine = Wait(kept_->List("ann", {})).value();
  ASSERT_EQ(mine.total, 1);
  EXPECT_EQ(mine.items[0].repository, "a");
  auto all = Wait(kept_->List("", {})).value();
  ASSERT_EQ(all.total, 2);
  EXPECT_EQ(all.items[0].repository, "b");
  std::string id = mine.items[0].id;
  EXPECT_EQ(Wait(kept_->Remove("bob", id)).error().code(), Code::kNotFound);
  EXPECT_TRUE(Wait(kept_->Remove("ann", id)));
  EXPECT_EQ(Wait(kept_->Remove("ann", id)).error().code(), Code::kNotFound);
  EXPECT_TRUE(Wait(kept_->Remove("", all.items[0].id)));
  EXPECT_THAT(copies_, IsEmpty());
}

}  // namespace
}  // namespace caisson::work
