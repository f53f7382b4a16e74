#include "work/pull_request_text.h"

#include <gtest/gtest.h>

namespace caisson::work {
namespace {

PullRequestText Text() {
  return {.title = "Mend the fence",
          .description = "Ask @foreman first. <!-- hidden --> <script>x</script>",
          .summary = "The fence is mended.\n\nIt has a gate now.",
          .commits = {"feat: add a gate\n\nCaisson-Task: t1\n", "fix: mend the fence\n"},
          .agent = "Ada",
          .task_id = "t1",
          .task_number = 7,
          .at = ParseTime("2026-11-15T16:14:42Z").value()};
}

constexpr std::string_view kGolden = R"(## Summary

The fence is mended.

It has a gate now.

## Description

**Mend the fence**

Ask @)"
                                     "\u200b"
                                     R"(foreman first. &lt;!-- hidden --> &lt;script>x&lt;/script>

## Changes

- fix: mend the fence
- feat: add a gate

## Checklist

- [ ] The changes do what the task asks for
- [ ] Tests cover the changes
- [ ] Documentation is up to date

---
Made by the agent **Ada** for task #7 (`t1`) at 2026-11-15T16:14:42Z with Caisson.
)";

TEST(PullRequestText, HasItsParts) {
  EXPECT_EQ(PullRequestBody(Text()), kGolden);
  EXPECT_EQ(PullRequestTitle(Text()), "feat: add a gate");
}

TEST(PullRequestText, IsBounded) {
  PullRequestText text = Text();
  text.summary = std::string(100'000, 'x');
  text.commits.assign(1'000, "feat: " + std::string(300, 'y'));
  EXPECT_LT(PullRequestBody(text).size(), 60'000);
  EXPECT_LE(PullRequestTitle(text).size(), 256);
  EXPECT_NE(PullRequestBody(text).find("and 950 more"), std::string::npos);
  text.commits.clear();
  EXPECT_EQ(PullRequestTitle(text), "Mend the fence");
}

}  // namespace
}  // namespace caisson::work
