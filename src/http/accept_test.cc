#include "http/accept.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

TEST(AcceptsCoding, WhatIsNamedAndNotRefused) {
  for (const char* yes : {"gzip", "GZIP", "br, gzip", "gzip, deflate, br", "gzip;q=0.5",
                          "identity;q=1, gzip ; q=0.001"})
    EXPECT_TRUE(AcceptsCoding(yes, "gzip")) << yes;
  for (const char* no :
       {"", "br", "gzipped", "x-gzip", "*", "gzip;q=0", "gzip; q=0.000", "br;q=1, gzip;Q=0"})
    EXPECT_FALSE(AcceptsCoding(no, "gzip")) << no;
}

}  // namespace
}  // namespace caisson::http
