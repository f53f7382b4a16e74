#include "events/redactor.h"

#include <gtest/gtest.h>

#include "base/encoding.h"

namespace caisson::events {
namespace {

TEST(Redactor, CutsASecretInEveryFormItTravelsIn) {
  Redactor redactor;
  const std::string secret = "s3cret/with+odd=chars";
  redactor.Add(secret);
  EXPECT_EQ(redactor.Redact("a " + secret + " b " + secret), "a *** b ***");
  EXPECT_EQ(redactor.Redact("u=" + PercentEncode(secret)), "u=***");
  for (const char* user : {"", "u", "us", "x-access-token"}) {
    std::string header = Base64Encode(std::string(user) + ":" + secret);
    EXPECT_NE(redactor.Redact("Basic " + header), "Basic " + header);
    // What is left is too little to guess the secret from.
    EXPECT_LT(redactor.Redact(header).size(), header.size() / 2) << user;
  }
}

TEST(Redactor, CutsTokensOfWellKnownKinds) {
  Redactor redactor;
  EXPECT_EQ(redactor.Redact("token ghp_0123456789abcdefghijABCDEFGHIJ done"), "token *** done");
  EXPECT_EQ(redactor.Redact("{\"k\":\"sk-" + std::string(24, 'a') + "\"}"), "{\"k\":\"***\"}");
  EXPECT_EQ(redactor.Redact("e2b_0123456789abcdef0123456789abcdef01234567"), "***");
  EXPECT_EQ(redactor.Redact("https://x-access-token:abc@host/o/r.git"),
            "https://x-access-token:***@host/o/r.git");
  EXPECT_EQ(redactor.Redact("https://abcdef@host/"), "https://***@host/");
}

TEST(Redactor, LeavesOrdinaryTextAlone) {
  Redactor redactor;
  redactor.Add("short");
  for (const char* text : {"short words stay", "task-1 risk-averse eyJust", "ssh://git@host/a/b",
                           "see https://host:80/a@b", "e2b_sandbox", "", "mail me@host"})
    EXPECT_EQ(redactor.Redact(text), text);
}

}  // namespace
}  // namespace caisson::events
