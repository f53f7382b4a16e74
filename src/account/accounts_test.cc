#include "account/accounts.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace caisson::account {
namespace {

class AccountsTest : public ::testing::Test {
 protected:
  AccountsTest() {
    store_ = store::OpenStore("sqlite:///" + (dir_ / "a.db"), io_.get_executor()).value();
    Begin();
  }
  ~AccountsTest() override { End(); }

  void Begin() {
    keys_ = KeyRing::Open(dir_.path(), kKey).value();
    accounts_ = std::make_unique<Accounts>(io_.get_executor(), *store_, keys_, "a secret", config_);
    ASSERT_TRUE(Wait(accounts_->Start()));
  }
  void End() {
    testing::Await(io_, accounts_->Stop());
    accounts_.reset();
  }
  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }
  std::string UserBy(std::string_view key) {
    auto identity = accounts_->ByKey(key);
    return identity ? identity->user_id : "";
  }
  Result<LoginTokens> Login(std::string name, std::string password,
                            std::string address = "127.0.0.1") {
    return Wait(accounts_->Login(std::move(name), std::move(password), std::move(address)));
  }

  static constexpr const char* kKey = "e2b_0123456789abcdef0123456789abcdef01234567";
  static constexpr const char* kPassword = "a long password";
  asio::io_context io_;
  testing::TempDir dir_;
  Config config_;
  std::unique_ptr<store::Store> store_;
  KeyRing keys_;
  std::unique_ptr<Accounts> accounts_;
};

TEST_F(AccountsTest, TheFirstKeyIsTheAdmins) {
  auto identity = accounts_->ByKey(kKey);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->user_id, "admin");
  EXPECT_EQ(identity->role, "admin");
  ASSERT_TRUE(accounts_->FindUser("admin"));
  for (Accounts::UserChange change :
       {Accounts::UserChange{.role = "member"}, Accounts::UserChange{.disabled = true}})
    EXPECT_EQ(Wait(accounts_->ChangeUser("admin", change)).error().code(),
              Code::kFailedPrecondition);
}

TEST_F(AccountsTest, AllKeysOfAUserAreThatUser) {
  auto user = Wait(accounts_->AddUser({.name = "mia"})).value();
  auto one = Wait(accounts_->AddKey("one", user.id, {})).value();
  auto two = Wait(accounts_->AddKey("two", user.id, {})).value();
  EXPECT_EQ(UserBy(one.text), user.id);
  EXPECT_EQ(UserBy(two.text), user.id);
  EXPECT_EQ(Wait(accounts_->ListKeys(user.id))->size(), 2u);
  // Revoked at once, without a restart.
  ASSERT_TRUE(Wait(accounts_->ChangeKey(user.id, one.row.id, {.revoke = true})));
  EXPECT_EQ(UserBy(one.text), "");
  EXPECT_EQ(UserBy(two.text), user.id);
  // Somebody else's key does not exist.
  EXPECT_EQ(Wait(accounts_->ChangeKey("admin", two.row.id, {.revoke = true})).error().code(),
            Code::kNotFound);
  ASSERT_TRUE(Wait(accounts_->ChangeUser(user.id, {.disabled = true})));
  EXPECT_EQ(UserBy(two.text), "");
  ASSERT_TRUE(Wait(accounts_->ChangeUser(user.id, {.role = "viewer", .disabled = false})));
  EXPECT_EQ(accounts_->ByKey(two.text)->role, "viewer");
}

TEST_F(AccountsTest, AKeyWithoutAUserIsAUserOfItsOwn) {
  auto made = Wait(accounts_->AddKey("ci", "", {})).value();
  EXPECT_EQ(UserBy(made.text), made.row.id);
  ASSERT_TRUE(accounts_->FindUser(made.row.id));
  EXPECT_EQ(accounts_->FindUser(made.row.id)->role, "member");
  // One of an older version has no user yet; its name is taken by now.
  NewKey old = MakeApiKey("ci");
  ASSERT_TRUE(Wait(store_->AddApiKey(old.row)));
  End();
  Begin();
  EXPECT_EQ(UserBy(old.text), old.row.id);
  ASSERT_TRUE(accounts_->FindUser(old.row.id));
  EXPECT_EQ(accounts_->FindUser(old.row.id)->name, "ci-" + old.row.id);
}

TEST_F(AccountsTest, TheUseOfAKeyIsWrittenDownOnceAMinute) {
  auto made = Wait(accounts_->AddKey("ci", "", {})).value();
  EXPECT_FALSE(Wait(accounts_->ListKeys("")).value()[0].last_used_at);
  EXPECT_EQ(UserBy(made.text), made.row.id);
  std::optional<Time> used;
  for (int i = 0; i < 10'000 && !used; ++i) {
    testing::Await(io_, SleepFor(std::chrono::milliseconds(2)));
    used = Wait(accounts_->ListKeys("")).value()[0].last_used_at;
  }
  ASSERT_TRUE(used);
  EXPECT_EQ(UserBy(made.text), made.row.id);
  testing::Await(io_, SleepFor(std::chrono::milliseconds(20)));
  EXPECT_EQ(Wait(accounts_->ListKeys("")).value()[0].last_used_at, used);
}

TEST_F(AccountsTest, ALoginHasTokensThatAreRenewed) {
  auto user = Wait(accounts_->AddUser({.name = "mia", .password = kPassword})).value();
  EXPECT_TRUE(user.password_hash.starts_with("$argon2id$"));
  auto first = Login("mia", kPassword).value();
  auto identity = accounts_->ByAccessToken(first.access);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->user_id, user.id);
  EXPECT_EQ(accounts_->CsrfOf(identity->login_id), first.csrf);
  auto second = Wait(accounts_->Refresh(first.refresh)).value();
  EXPECT_NE(second.refresh, first.refresh);
  EXPECT_TRUE(accounts_->ByAccessToken(second.access));
  // The first refresh token again: somebody has stolen it, so the login ends for all.
  EXPECT_FALSE(Wait(accounts_->Refresh(first.refresh)));
  EXPECT_FALSE(accounts_->ByAccessToken(second.access));
  EXPECT_FALSE(Wait(accounts_->Refresh(second.refresh)));
  End();
  Begin();
  EXPECT_FALSE(accounts_->ByAccessToken(second.access));
}

TEST_F(AccountsTest, TokensThatWereChangedAreNone) {
  ASSERT_TRUE(Wait(accounts_->AddUser({.name = "mia", .password = kPassword})));
  std::string token = Login("mia", kPassword).value().access;
  ASSERT_TRUE(accounts_->ByAccessToken(token));
  for (size_t at : {size_t(3), token.find('.') + 5, token.size() - 5}) {
    std::string changed = token;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(accounts_->ByAccessToken(changed)) << at;
  }
  for (std::string none : {"", ".", "..", "a.b.c"}) EXPECT_FALSE(accounts_->ByAccessToken(none));
  config_.login_access_minutes = 0;
  EXPECT_FALSE(accounts_->ByAccessToken(Login("mia", kPassword).value().access));
}

TEST_F(AccountsTest, LogoutAndANewPasswordEndLogins) {
  auto user = Wait(accounts_->AddUser({.name = "mia", .password = kPassword})).value();
  auto one = Login("mia", kPassword).value(), two = Login("mia", kPassword).value();
  ASSERT_TRUE(Wait(accounts_->Logout(Accounts::LoginOf(one.refresh))));
  EXPECT_FALSE(accounts_->ByAccessToken(one.access));
  EXPECT_FALSE(Wait(accounts_->Refresh(one.refresh)));
  EXPECT_TRUE(accounts_->ByAccessToken(two.access));
  ASSERT_TRUE(Wait(accounts_->ChangeUser(user.id, {.password = "another password"})));
  EXPECT_FALSE(accounts_->ByAccessToken(two.access));
  EXPECT_FALSE(Login("mia", kPassword));
  EXPECT_TRUE(Login("mia", "another password"));
  EXPECT_EQ(Wait(accounts_->ChangeUser(user.id, {.password = "short"})).error().code(),
            Code::kInvalidArgument);
}

TEST_F(AccountsTest, FailuresAreAlikeAndLimited) {
  config_.login_failures_per_minute = 3;
  End();
  Begin();
  ASSERT_TRUE(Wait(accounts_->AddUser({.name = "mia", .password = kPassword})));
  auto wrong = Login("mia", "not the password").error();
  EXPECT_EQ(wrong.code(), Code::kUnauthenticated);
  EXPECT_EQ(Login("nobody", kPassword).error().message(), wrong.message());
  EXPECT_EQ(Login("admin", "").error().message(), wrong.message());  // has no password
  EXPECT_EQ(Login("mia", kPassword).error().code(), Code::kResourceExhausted);
  EXPECT_GE(accounts_->LoginWait("mia", "127.0.0.1").count(), 1);
  // From elsewhere it still works, until the name has failed too often as well.
  EXPECT_TRUE(Login("mia", kPassword, "10.0.0.1"));
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(Login("mia", "wrong again", fmt::format("10.0.1.{}", i)));
  EXPECT_EQ(Login("mia", kPassword, "10.0.0.2").error().code(), Code::kResourceExhausted);
}

TEST(FailureLimit, TheNextMinuteIsANewOne) {
  FailureLimit::Clock::time_point now{};
  FailureLimit limit(2, [&] { return now; });
  limit.Add("a");
  EXPECT_EQ(limit.Wait("a").count(), 0);
  limit.Add("a");
  EXPECT_EQ(limit.Wait("a").count(), 60);
  EXPECT_EQ(limit.Wait("b").count(), 0);
  now += std::chrono::seconds(59);
  EXPECT_EQ(limit.Wait("a").count(), 1);
  now += std::chrono::seconds(1);
  EXPECT_EQ(limit.Wait("a").count(), 0);
}

}  // namespace
}  // namespace caisson::account
