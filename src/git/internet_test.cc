#include "git/internet.h"

#include <gmock/gmock.h>

#include "git/broker_fixture_test.h"

namespace caisson::git {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Status Check(const char* text) { return CheckInternet(asio::ip::make_address(text)); }

TEST(Internet, OnlyItsOwnAddressesPass) {
  for (const char* good : {"140.82.121.3", "1.1.1.1", "2606:50c0:8000::153", "::ffff:1.1.1.1"})
    EXPECT_TRUE(Check(good)) << good;
  for (const char* bad : {"127.0.0.1",
                          "127.9.9.9",
                          "0.0.0.0",
                          "10.1.2.3",
                          "172.16.0.1",
                          "192.168.1.1",
                          "169.254.169.254",
                          "100.100.100.200",
                          "198.18.0.1",
                          "224.0.0.1",
                          "255.255.255.255",
                          "::",
                          "::1",
                          "::ffff:127.0.0.1",
                          "::ffff:10.0.0.1",
                          "::127.0.0.1",
                          "64:ff9b::7f00:1",
                          "2002:7f00:1::1",
                          "2001:0:7f00:1::1",
                          "fd00:ec2::254",
                          "fe80::1",
                          "fe80::1%1",
                          "ff02::1"}) {
    Status checked = Check(bad);
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().code(), Code::kFailedPrecondition) << bad;
  }
}

class ClientsHosts : public BrokerTest {};

// Names, ports and notations of the loopback, where the forge listens and sees nobody.
TEST_F(ClientsHosts, AreNotReachedOnTheLoopback) {
  for (std::string host : {"127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001",
                           "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"}) {
    auto repository =
        ParseRepository(fmt::format("https://{}:{}/octo/repo", host, forge->port()), "octo.test");
    ASSERT_TRUE(repository) << host;
    uint16_t where = Open("s2", {.repository = *repository});
    auto listed = Git({"ls-remote", fmt::format("http://127.0.0.1:{}/octo/repo.git", where)});
    EXPECT_EQ(listed.exit_code, 128) << host;
    EXPECT_THAT(listed.stderr_text, HasSubstr("its address is not one of the internet")) << host;
  }
  EXPECT_THAT(forge->seen(), IsEmpty());
}

// Where the operator allows it the answer is about TLS, which the forge does not speak.
TEST_F(ClientsHosts, MayBeInTheOwnNetworkIfTheOperatorSaysSo) {
  config.git_private_hosts = fmt::format("what/ever, LOCALHOST:{}", forge->port());
  loop.Run(broker->Stop());
  loop.Call([this] {
    broker = std::make_unique<Broker>(loop.executor(), config, models);
    return 0;
  });
  for (std::string host : {"localhost", "127.0.0.1"}) {
    auto repository =
        ParseRepository(fmt::format("https://{}:{}/octo/repo", host, forge->port()), "octo.test");
    ASSERT_TRUE(repository) << host;
    uint16_t where = Open("s2", {.repository = *repository});
    auto listed = Git({"ls-remote", fmt::format("http://127.0.0.1:{}/octo/repo.git", where)});
    EXPECT_THAT(listed.stderr_text, HasSubstr(host == "localhost" ? "TLS handshake" : "internet"));
  }
}

TEST_F(ClientsHosts, AreNeverReachedWithoutTls) {
  Grant grant = MakeGrant();
  grant.repository.base_url = fmt::format("http://localhost:{}", forge->port());
  uint16_t where = Open("s2", grant);
  auto listed = Git({"ls-remote", fmt::format("http://127.0.0.1:{}/octo/repo.git", where)});
  EXPECT_THAT(listed.stderr_text, HasSubstr("cannot be reached"));
  EXPECT_THAT(forge->seen(), IsEmpty());
}

}  // namespace
}  // namespace caisson::git
