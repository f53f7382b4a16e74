#include "gateway/target.h"

#include <gtest/gtest.h>

namespace caisson::gateway {
namespace {

using Kind = Target::Kind;

http::RequestHead Request(std::string host, http::Headers headers = {}, std::string target = "/") {
  http::RequestHead head{
      .method = "GET", .target = std::move(target), .headers = std::move(headers)};
  if (!host.empty()) head.headers.Set("Host", host);
  return head;
}

http::Headers Both(std::string id, std::string port) {
  return {{"e2b-sandbox-id", std::move(id)}, {"e2b-sandbox-port", std::move(port)}};
}

struct HostCase {
  const char* host;
  Kind kind;
  const char* id = "";
  int port = 0;
};

class TargetByHost : public testing::TestWithParam<HostCase> {};

TEST_P(TargetByHost, IsFound) {
  const HostCase& c = GetParam();
  Target target = FindTarget(Request(c.host), "boxes.example:8443");
  EXPECT_EQ(target.kind, c.kind) << target.message;
  EXPECT_EQ(target.sandbox_id, c.id);
  EXPECT_EQ(target.port, c.port);
  EXPECT_EQ(target.kind == Kind::kInvalid, !target.message.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Hosts, TargetByHost,
    testing::Values(HostCase{"3000-iabc.boxes.example", Kind::kSandbox, "iabc", 3000},
                    HostCase{"3000-iabc.boxes.example:8443", Kind::kSandbox, "iabc", 3000},
                    HostCase{"3000-iabc.BOXES.example:9", Kind::kSandbox, "iabc", 3000},
                    HostCase{"3000-iabc.boxes.example.", Kind::kSandbox, "iabc", 3000},
                    HostCase{"49983-iabc-6532622b.boxes.example", Kind::kSandbox, "iabc", 49983},
                    HostCase{"1-i.localhost", Kind::kSandbox, "i", 1},
                    HostCase{"65535-i9.localhost:8000", Kind::kSandbox, "i9", 65535},
                    HostCase{"80-i9.caisson.localhost:8000", Kind::kSandbox, "i9", 80},
                    HostCase{"0-iabc.localhost", Kind::kInvalid},
                    HostCase{"65536-iabc.localhost", Kind::kInvalid},
                    HostCase{"99999999999999999999-iabc.localhost", Kind::kInvalid},
                    HostCase{"80-.localhost", Kind::kInvalid},
                    HostCase{"80-i_x.localhost", Kind::kInvalid},
                    // Names that are not of a sandbox.
                    HostCase{"", Kind::kControlPlane}, HostCase{"localhost", Kind::kControlPlane},
                    HostCase{"127.0.0.1:8000", Kind::kControlPlane},
                    HostCase{"[::1]:8000", Kind::kControlPlane},
                    HostCase{"[::1", Kind::kControlPlane},
                    HostCase{"boxes.example", Kind::kControlPlane},
                    HostCase{"api.boxes.example", Kind::kControlPlane},
                    HostCase{"my-api.boxes.example", Kind::kControlPlane},
                    HostCase{"-iabc.boxes.example", Kind::kControlPlane},
                    HostCase{"3000.boxes.example", Kind::kControlPlane},
                    HostCase{"3000-iabc.elsewhere.example", Kind::kControlPlane},
                    HostCase{"3000-iabc.notlocalhost", Kind::kControlPlane},
                    HostCase{"3000-iabc", Kind::kControlPlane}));

TEST(Target, HeadersNameASandboxOnAnyOtherHost) {
  for (std::string host : {"localhost:8000", "127.0.0.1", "[::1]:8000", "sandbox.boxes.example",
                           "boxes.example", "a-machine.lan:8000", ""}) {
    Target target = FindTarget(Request(host, Both("iabc", "49983")), "boxes.example");
    EXPECT_EQ(target.kind, Kind::kSandbox) << host;
    EXPECT_EQ(target.sandbox_id, "iabc");
    EXPECT_EQ(target.port, 49983);
  }
}

TEST(Target, HostWinsOverHeaders) {
  Target target = FindTarget(Request("80-ione.localhost", Both("itwo", "49983")), "boxes.example");
  EXPECT_EQ(target.sandbox_id, "ione");
  EXPECT_EQ(target.port, 80);
}

TEST(Target, HalfOrBadHeadersAreInvalid) {
  for (const http::Headers& headers :
       {http::Headers{{"E2b-Sandbox-Id", "iabc"}}, http::Headers{{"E2b-Sandbox-Port", "80"}},
        Both("iabc", ""), Both("iabc", "0"), Both("iabc", "65536"), Both("iabc", "-1"),
        Both("iabc", "80x"), Both("", "80"), Both("iABC", "80"), Both("../etc", "80"),
        Both("iabc-client", "80"), Both(std::string(64, 'a'), "80")}) {
    Target target = FindTarget(Request("localhost", headers), "boxes.example");
    EXPECT_EQ(target.kind, Kind::kInvalid);
    EXPECT_NE(target.message, "");
  }
}

TEST(Target, SignedUrlsWithoutAnAddress) {
  auto kind = [](std::string target, http::Headers headers = {}) {
    return FindTarget(Request("localhost", std::move(headers), std::move(target)), "d").kind;
  };
  EXPECT_EQ(kind("/files?path=a&signature=v1_x"), Kind::kSignedUrl);
  EXPECT_EQ(kind("/files?path=a"), Kind::kControlPlane);
  EXPECT_EQ(kind("/files/x?signature=v1_x"), Kind::kControlPlane);
  EXPECT_EQ(kind("/other?signature=v1_x"), Kind::kControlPlane);
  EXPECT_EQ(kind("/files?path=a&signature=v1_x", Both("iabc", "49983")), Kind::kSandbox);
}

}  // namespace
}  // namespace caisson::gateway
