#include "account/github_tokens.h"

#include <gtest/gtest.h>

#include "account/sealed_text.h"
#include "base/encoding.h"
#include "base/testing.h"
#include "store/account_rows.h"

namespace caisson::account {
namespace {

constexpr const char* kToken = "ghp_a-token-of-ann";

TEST(SealedText, OpensOnlyForWhatItIsAbout) {
  auto sealed = Seal("a secret", "ann", kToken);
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->find(kToken), std::string::npos);
  EXPECT_EQ(Unseal("a secret", "ann", *sealed).value(), kToken);
  EXPECT_NE(*sealed, Seal("a secret", "ann", kToken).value());  // never twice the same
  EXPECT_EQ(Unseal("another", "ann", *sealed).error().code(), Code::kDataLoss);
  EXPECT_EQ(Unseal("a secret", "bob", *sealed).error().code(), Code::kDataLoss);
  EXPECT_EQ(Unseal("a secret", "ann", Seal("a secret", "ann", "").value()).value(), "");
}

TEST(SealedText, NoChangedByteOpens) {
  auto opens = [](const std::string& text) { return Unseal("a secret", "ann", text).has_value(); };
  std::string sealed = Seal("a secret", "ann", kToken).value();
  std::string bytes = Base64Decode(sealed.substr(2)).value();
  ASSERT_TRUE(opens("1:" + Base64Encode(bytes)));
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(opens("1:" + Base64Encode(changed))) << at;
    EXPECT_FALSE(opens("1:" + Base64Encode(bytes.substr(0, at)))) << at;
  }
  for (const char* none : {"", "1", "1:", "1:*", kToken}) EXPECT_FALSE(opens(none)) << none;
}

class GithubTokensTest : public ::testing::Test {
 protected:
  GithubTokensTest() {
    store_ = store::OpenStore("sqlite:///" + (dir_ / "a.db"), io_.get_executor()).value();
    EXPECT_TRUE(Wait(store_->Write([](store::Transaction& tx) {
      return tx.Insert(store::UserRow{.id = "ann", .name = "ann", .role = "member"});
    })));
  }
  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }
  Status Need(const std::string& user_id) {
    return Wait(store_->Read([this, user_id](store::Transaction& tx) -> Status {
      return NeedGithubToken(tx, store_->node(), user_id);
    }));
  }

  asio::io_context io_;
  testing::TempDir dir_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(GithubTokensTest, KeepsOnePerUserUntilItIsDeleted) {
  GithubTokens tokens(*store_, "a secret");
  EXPECT_EQ(Wait(tokens.Open("ann")).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(Need("ann").error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Wait(tokens.Set("ann", "the first one", "ann-1")));
  ASSERT_TRUE(Wait(tokens.Set("ann", kToken, "ann-2")));
  EXPECT_EQ(Wait(tokens.Open("ann")).value(), kToken);
  EXPECT_TRUE(Need("ann"));
  EXPECT_FALSE(Need("bob"));
  auto row = Wait(tokens.Find("ann")).value();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->login, "ann-2");
  EXPECT_EQ(row->sealed.find(kToken), std::string::npos);
  ASSERT_TRUE(Wait(tokens.Delete("ann")));
  ASSERT_TRUE(Wait(tokens.Delete("ann")));
  EXPECT_FALSE(Wait(tokens.Find("ann")).value());
}

TEST_F(GithubTokensTest, AnotherSecretOpensNothingAndSaysWhatToDo) {
  ASSERT_TRUE(Wait(GithubTokens(*store_, "a secret").Set("ann", kToken, "ann-gh")));
  auto opened = Wait(GithubTokens(*store_, "a new one").Open("ann"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kUnauthenticated);
  EXPECT_NE(opened.error().message().find("ann-gh"), std::string::npos);
  EXPECT_NE(opened.error().message().find("a new one"), std::string::npos);
}

}  // namespace
}  // namespace caisson::account
