#include "git/known_hosts.h"

#include <gtest/gtest.h>

namespace caisson::git {
namespace {

TEST(KnownHosts, AreNamedPlainly) {
  constexpr std::string_view kFile =
      "# of the company\n"
      "GitHub.com,140.82.121.3 ssh-ed25519 AAAA\n"
      "[git.example]:2222 ssh-ed25519 AAAA\n"
      "*.example.org,!old.example.org ssh-ed25519 AAAA\n"
      "@cert-authority *.signed.example ssh-ed25519 AAAA\n"
      "@revoked revoked.example ssh-ed25519 AAAA\n"
      "@cert-authority\n";
  for (const char* host :
       {"github.com", "GITHUB.COM", "140.82.121.3", "a.example.org", "x.signed.example"})
    EXPECT_TRUE(NamesHost(kFile, host, "22")) << host;
  for (const char* host : {"127.0.0.1", "localhost", "git.example", "old.example.org",
                           "revoked.example", "example.org", "github.com.evil.test", "#", ""})
    EXPECT_FALSE(NamesHost(kFile, host, "22")) << host;
  EXPECT_TRUE(NamesHost(kFile, "git.example", "2222"));
  EXPECT_FALSE(NamesHost(kFile, "git.example", "2223"));
  // As ssh does: a key without a port is good for all of them.
  EXPECT_TRUE(NamesHost(kFile, "github.com", "2222"));
}

TEST(KnownHosts, AreNamedByHashes) {
  // Made by `ssh-keygen -H` of "[git.test]:2222" and "github.com".
  constexpr std::string_view kFile =
      "|1|uYlYysmZyGmkcfgEy1d19y2xdtI=|EXxTTTEsaqrGp6ikL3dPH3ARyP0= ssh-ed25519 AAAA\n"
      "|1|Jb+VN5kcnDN/AV/+xUggzJHYS/M=|s2QUmwQo1mZFUUB+WP2XZxbm+3o= ssh-ed25519 AAAA\n";
  EXPECT_TRUE(NamesHost(kFile, "git.test", "2222"));
  EXPECT_TRUE(NamesHost(kFile, "github.com", "22"));
  EXPECT_FALSE(NamesHost(kFile, "git.test", "22"));
  EXPECT_FALSE(NamesHost(kFile, "127.0.0.1", "22"));
  EXPECT_FALSE(NamesHost("|1|x|y k\n|1|\n|2|a|b k", "git.test", "22"));
}

}  // namespace
}  // namespace caisson::git
