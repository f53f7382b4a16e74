#include "session/idle_watch.h"

#include "session/session_fixture.h"

namespace caisson::session {
namespace {

using namespace std::chrono_literals;

class IdleWatchTest : public SessionTest {
 protected:
  ~IdleWatchTest() override { testing::Await(io_, watch_->Stop()); }

  // Sessions with a sandbox that nobody has used for `age`.
  std::vector<std::string> BeginIdle(size_t count, std::chrono::seconds age) {
    std::vector<std::string> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(Begin().row.id);
    for (const std::string& id : ids) {
      AwaitStatus(id, "active");
      Age(id, age);
    }
    return ids;
  }
  void Look() { testing::Await(io_, watch_->CheckIdle()); }
  size_t CountPaused(const std::vector<std::string>& ids) {
    return static_cast<size_t>(std::ranges::count_if(
        ids, [&](const std::string& id) { return RowOf(id).status == "paused"; }));
  }
};

TEST_F(IdleWatchTest, SeveralArePutAwayAtTheSameTimeButNotAll) {
  auto ids = BeginIdle(IdleWatch::kAtOnce + 4, 301s);
  provider_.pauses_meet = IdleWatch::kAtOnce;  // whoever waits for the one before waits in vain
  Look();
  EXPECT_EQ(CountPaused(ids), ids.size());
  EXPECT_EQ(provider_.most_pausing, static_cast<int>(IdleWatch::kAtOnce));
}

TEST_F(IdleWatchTest, ThoseThatCannotBePausedDoNotStandInTheWay) {
  auto stuck = BeginIdle(IdleWatch::kAtOnce + 1, 3'000s);
  for (const std::string& id : stuck) provider_.cannot_pause.insert(RowOf(id).sandbox_id);
  auto others = BeginIdle(2, 301s);
  Look();
  EXPECT_EQ(CountPaused(others), others.size());
  EXPECT_EQ(CountPaused(stuck), 0u);
  int pauses = provider_.pauses;
  EXPECT_EQ(pauses, static_cast<int>(stuck.size() + others.size()));
  // They are not tried again at every look, and whoever comes has its turn.
  auto later = BeginIdle(1, 301s);
  Look();
  EXPECT_EQ(CountPaused(later), 1u);
  EXPECT_EQ(provider_.pauses, pauses + 1);
}

TEST_F(IdleWatchTest, OneThatCannotBePausedIsTriedAgainLater) {
  config_.session_check_interval_ms = 1;
  auto stuck = BeginIdle(1, 301s);
  provider_.pause_fails = Error(Code::kUnavailable, "not now");
  Until([&] {
    Look();
    return provider_.pauses > 2;
  });
  provider_.pause_fails.reset();
  Until([&] {
    Look();
    return CountPaused(stuck) == 1;
  });
}

TEST_F(IdleWatchTest, OneThatCannotBePausedEndsByThePolicy) {
  config_.session_check_interval_ms = 1;
  auto stuck = BeginIdle(1, 3'601s);
  provider_.pause_fails = Error(Code::kUnavailable, "never");
  Look();
  EXPECT_EQ(provider_.sandboxes.size(), 1u);  // "keep"
  EXPECT_EQ(RowOf(stuck[0]).status, "active");
  config_.session_idle_end = "destroy";
  Until([&] {
    Look();
    return provider_.sandboxes.empty();
  });
  EXPECT_EQ(RowOf(stuck[0]).status, "paused");
  EXPECT_EQ(RowOf(stuck[0]).status_reason, "idle_end");
  EXPECT_EQ(RowOf(stuck[0]).sandbox_id, "");
}

}  // namespace
}  // namespace caisson::session
