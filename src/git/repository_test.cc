#include "git/repository.h"

#include <gtest/gtest.h>

#include "git/test_support.h"

namespace caisson::git {
namespace {

constexpr std::string_view kBase = "https://github.com";

TEST(Repository, AllSpellingsMeanTheSame) {
  for (std::string_view url :
       {"https://github.com/o/r", "https://github.com/o/r.git", "https://github.com/o/r/",
        "https://github.com/o/r.git/", "git@github.com:o/r.git", "git@github.com:o/r",
        "ssh://git@github.com/o/r.git", "ssh://git@github.com:22/o/r", "o/r", " o/r ",
        "HTTPS://GitHub.com/o/r"}) {
    auto repository = ParseRepository(url, kBase);
    ASSERT_TRUE(repository) << url << ": " << repository.error().message();
    EXPECT_EQ(repository->full_name(), "o/r") << url;
    EXPECT_EQ(repository->clone_url(), "https://github.com/o/r.git") << url;
  }
}

TEST(Repository, TheSuffixIsTakenOffAsAWhole) {
  EXPECT_EQ(ParseRepository("o/widget", kBase)->name, "widget");
  EXPECT_EQ(ParseRepository("o/widget.git", kBase)->name, "widget");
  EXPECT_EQ(ParseRepository("https://github.com/o/tig", kBase)->name, "tig");
  EXPECT_EQ(ParseRepository("o/a.b.git", kBase)->name, "a.b");
}

TEST(Repository, OtherHostsKeepTheirs) {
  EXPECT_EQ(ParseRepository("https://git.example.com:8443/o/r", kBase)->clone_url(),
            "https://git.example.com:8443/o/r.git");
  EXPECT_EQ(ParseRepository("git@git.example.com:o/r", kBase)->base_url, "https://git.example.com");
}

TEST(Repository, AddressesOfSshAreRemembered) {
  EXPECT_EQ(ParseRepository("https://github.com/o/r", kBase)->ssh, "");
  for (auto [url, ssh] : {std::pair{"git@github.com:o/r", "github.com"},
                          {"ssh://git@github.com:2222/o/r.git", "github.com:2222"},
                          {"ssh://git@[::1]:2222/o/r", "[::1]:2222"}}) {
    auto repository = ParseRepository(url, kBase);
    ASSERT_TRUE(repository) << url;
    EXPECT_EQ(repository->ssh, ssh);
    auto again = ParseRepository(repository->address(), kBase);
    ASSERT_TRUE(again) << repository->address();
    EXPECT_EQ(again->ssh, ssh);
    EXPECT_EQ(again->clone_url(), repository->clone_url());
  }
  // The port of SSH says nothing about the host.
  EXPECT_EQ(ParseRepository("ssh://git@h:2222/o/r", "http://h:3000")->base_url, "http://h:3000");
  for (std::string_view bad : {"ssh://git@h:x/o/r", "ssh://git@h:-1/o/r", "ssh://git@h:/o/r",
                               "ssh://git@::1/o/r", "ssh://git@-oProxy/o/r", "git@-v:o/r"})
    EXPECT_FALSE(ParseRepository(bad, kBase)) << bad;
}

TEST(Repository, PlainHttpOnlyWhereItIsConfigured) {
  EXPECT_FALSE(ParseRepository("http://github.com/o/r", kBase));
  auto local = ParseRepository("http://127.0.0.1:3000/o/r", "http://127.0.0.1:3000/");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->clone_url(), "http://127.0.0.1:3000/o/r.git");
  EXPECT_EQ(ParseRepository("o/r", "http://127.0.0.1:3000")->base_url, "http://127.0.0.1:3000");
}

TEST(Repository, EverythingElseIsRefused) {
  for (std::string_view url : {"",
                               "r",
                               "/o/r",
                               "o/r/x",
                               "https://github.com/o",
                               "https://github.com/",
                               "o/..",
                               "../r",
                               "o/.git",
                               "-o/r",
                               "o/-r",
                               "o/r;rm",
                               "o/$(id)",
                               "o/r r",
                               "file:///etc",
                               "ext::sh",
                               "ftp://h/o/r",
                               "git://h/o/r",
                               "https://-h/o/r",
                               "https:///o/r",
                               "https://h/o/%2e%2e",
                               "https://h/o/r?x",
                               "https://h/o/r#x",
                               "git@:o/r",
                               "git@h/o/r",
                               "ssh://h@x/o/r"})
    EXPECT_FALSE(ParseRepository(url, kBase)) << url;
}

TEST(Repository, CredentialsAreRefusedAndNotRepeated) {
  for (std::string_view url :
       {"https://x-access-token:s3cret@github.com/o/r", "https://s3cret@github.com/o/r"}) {
    auto parsed = ParseRepository(url, kBase);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().message().find("s3cret"), std::string::npos);
  }
}

TEST(BranchNames, AreWhatGitAccepts) {
  // Git itself is asked about each of them.
  for (const char* name :
       {"main", "task-7", "a/b", "feature/x-1_y", "release-1.2", "caf\xc3\xa9", "a@b", "x{y}"}) {
    EXPECT_TRUE(CheckBranchName(name)) << name;
    Must({"git", "check-ref-format", "--branch", name});
  }
}

TEST(BranchNames, OfOtherKindsAreRefused) {
  using namespace std::string_literals;
  for (const std::string& name : {""s,
                                  "-f"s,
                                  "--upload-pack=x"s,
                                  "a..b"s,
                                  "a b"s,
                                  "a~1"s,
                                  "a^"s,
                                  "a:b"s,
                                  "a?"s,
                                  "a*"s,
                                  "a["s,
                                  "a\\b"s,
                                  "a\nb"s,
                                  "a\x7f"s,
                                  "a\0b"s,
                                  "refs/heads/main"s,
                                  "HEAD"s,
                                  "@"s,
                                  "a@{1}"s,
                                  "x.lock"s,
                                  "x.lock/y"s,
                                  ".x"s,
                                  "a/.x"s,
                                  "a."s,
                                  "a/"s,
                                  "/a"s,
                                  "a//b"s,
                                  "\xff"s,
                                  std::string(201, 'a'),
                                  std::string(40, 'a')}) {
    auto checked = CheckBranchName(name);
    EXPECT_FALSE(checked) << name;
    if (!checked) EXPECT_EQ(checked.error().code(), Code::kInvalidArgument);
  }
}

TEST(BranchNames, ComeFromATemplate) {
  EXPECT_EQ(BranchName("task-{id}", "0f3a", 7, "claude", "Fix it"), "task-0f3a");
  EXPECT_EQ(BranchName("{agent}/{number}-{slug}", "x", 7, "Claude Code", "Fix: the \"bug\"!"),
            "claude-code/7-fix-the-bug");
  // Whatever is put in, a valid name comes out.
  EXPECT_EQ(BranchName("{slug}", "1", 7, "", "..//"), "task-1");
  EXPECT_EQ(BranchName("-{id}", "", 7, "", ""), "task-7");
  EXPECT_TRUE(CheckBranchName(BranchName("x/{slug}", "1", 1, "", std::string(500, 'a'))));
}

TEST(BranchNames, ThatAreTakenGetTheTime) {
  Time now = FromUnixNanos(1'763'224'800'000'000'000);
  EXPECT_EQ(BranchNameAt("task-7", now), "task-7-1763224800");
  EXPECT_TRUE(CheckBranchName(BranchNameAt(std::string(200, 'x'), now)));
}

}  // namespace
}  // namespace caisson::git
