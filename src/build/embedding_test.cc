#include "build/embedding.h"

#include <gtest/gtest.h>

namespace caisson::build {
namespace {

const std::string kPreview = "http://3000-abc.example.com:8000";
const std::string kPage = "http://example.com:8000";

std::string Check(http::Headers headers, const std::string& page = kPage,
                  const std::string& preview = kPreview) {
  Embedding found = CheckEmbedding(headers, preview, page);
  EXPECT_EQ(found.embeddable, found.reason.empty());
  return found.reason;
}
std::string Policy(const std::string& sources, const std::string& page = kPage,
                   const std::string& preview = kPreview) {
  return Check({{"Content-Security-Policy", "frame-ancestors " + sources}}, page, preview);
}

TEST(Embedding, IsAllowedUnlessForbidden) {
  EXPECT_EQ(Check({}), "");
  EXPECT_EQ(Check({{"Content-Security-Policy", "default-src 'none'"}}), "");
  EXPECT_EQ(Check({{"Content-Security-Policy-Report-Only", "frame-ancestors 'none'"}}), "");
}

TEST(Embedding, FrameOptions) {
  EXPECT_EQ(Check({{"X-Frame-Options", "DENY"}}), "x_frame_options");
  EXPECT_EQ(Check({{"x-frame-options", " sameorigin "}}), "x_frame_options");
  EXPECT_EQ(Check({{"X-Frame-Options", "SAMEORIGIN"}}, kPreview), "");
  EXPECT_EQ(Check({{"X-Frame-Options", "ALLOW-FROM http://other"}}), "");
  EXPECT_EQ(Check({{"X-Frame-Options", "ALLOWALL"}}), "");
  EXPECT_EQ(Check({{"X-Frame-Options", "SAMEORIGIN, DENY"}}, kPreview), "x_frame_options");
  EXPECT_EQ(Check({{"X-Frame-Options", "SAMEORIGIN"}, {"X-Frame-Options", "SAMEORIGIN"}}, kPreview),
            "");
}

TEST(Embedding, FrameAncestors) {
  EXPECT_EQ(Policy("'none'"), "frame_ancestors");
  EXPECT_EQ(Policy(""), "frame_ancestors");
  EXPECT_EQ(Policy("'self'"), "frame_ancestors");
  EXPECT_EQ(Policy("'self'", kPreview), "");
  EXPECT_EQ(Policy("*"), "");
  EXPECT_EQ(Policy("http:"), "");
  EXPECT_EQ(Policy("https:"), "frame_ancestors");
  EXPECT_EQ(Policy("HTTP://Example.com:8000"), "");
  EXPECT_EQ(Policy("http://example.com:8000/path"), "");
  EXPECT_EQ(Policy("example.com:8000 http://x"), "");
  EXPECT_EQ(Policy("example.com:*"), "");
  EXPECT_EQ(Policy("example.com"), "frame_ancestors");
  EXPECT_EQ(Policy("http://other.com:8000"), "frame_ancestors");
  EXPECT_EQ(Policy("*.example.com:8000"), "frame_ancestors");
  EXPECT_EQ(Policy("*.example.com:8000", "http://app.example.com:8000"), "");
  EXPECT_EQ(Policy("*.example.com:8000", "http://evilexample.com:8000"), "frame_ancestors");
}

TEST(Embedding, UsualPortsNeedNoName) {
  EXPECT_EQ(Policy("https://a.example", "https://a.example"), "");
  EXPECT_EQ(Policy("http://a.example", "https://a.example"), "");
  EXPECT_EQ(Policy("http://a.example:80", "https://a.example"), "");
  EXPECT_EQ(Policy("https://a.example", "http://a.example"), "frame_ancestors");
  EXPECT_EQ(Policy("https://a.example", "https://a.example:8443"), "frame_ancestors");
  EXPECT_EQ(Policy("http://[::1]:8000", "http://[::1]:8000"), "");
}

TEST(Embedding, EveryPolicyCounts) {
  EXPECT_EQ(Check({{"Content-Security-Policy", "frame-ancestors *"},
                   {"Content-Security-Policy", "frame-ancestors 'none'"}}),
            "frame_ancestors");
  EXPECT_EQ(Check({{"Content-Security-Policy", "frame-ancestors *, frame-ancestors 'none'"}}),
            "frame_ancestors");
  // The first of one policy, and the policy before the older header.
  EXPECT_EQ(Check({{"Content-Security-Policy", "frame-ancestors *; frame-ancestors 'none'"}}), "");
  EXPECT_EQ(Check({{"Content-Security-Policy", "default-src x;\tframe-ancestors *"},
                   {"X-Frame-Options", "DENY"}}),
            "");
}

}  // namespace
}  // namespace caisson::build
