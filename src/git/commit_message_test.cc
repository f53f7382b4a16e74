#include "git/commit_message.h"

#include <gtest/gtest.h>

#include <random>

namespace caisson::git {
namespace {

TEST(CommitMessage, AllElevenTypes) {
  for (std::string type : {"feat", "fix", "chore", "docs", "style", "refactor", "test", "build",
                           "ci", "perf", "revert"})
    for (std::string rest : {": x", "(api): x", "!: x", "(a b/c:d)!: x", ": x\n\nbody\n# kept"}) {
      auto checked = CheckCommitMessage(type + rest);
      EXPECT_TRUE(checked) << type + rest << ": " << checked.error().message();
    }
}

TEST(CommitMessage, OneToAHundredCharacters) {
  EXPECT_TRUE(CheckCommitMessage("fix: " + std::string(100, 'x')));
  EXPECT_FALSE(CheckCommitMessage("fix: " + std::string(101, 'x')));
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\xc3\xa9";
  EXPECT_TRUE(CheckCommitMessage("fix: " + wide));
  EXPECT_FALSE(CheckCommitMessage("fix: " + wide + "\xc3\xa9"));
}

TEST(CommitMessage, OthersAreRefusedWithASuggestion) {
  using namespace std::string_literals;
  for (const std::string& message :
       {""s,           " "s,         "update"s,     "Fix the bug"s, "feat"s,
        "feat:"s,      "feat: "s,    "feat:x"s,     "feat:  x"s,    "Feat: x"s,
        "feature: x"s, "feat(): x"s, "feat(a: x"s,  "feat (a): x"s, "wip: x"s,
        "feat!!: x"s,  "\nfeat: x"s, "feat: a\tb"s, "feat: a\0b"s,  "feat: \xff"s}) {
    auto checked = CheckCommitMessage(message);
    ASSERT_FALSE(checked) << message;
    EXPECT_EQ(checked.error().code(), Code::kInvalidArgument);
    std::string text = checked.error().message();
    std::string suggestion = text.substr(text.find("Suggestion: ") + 12);
    EXPECT_TRUE(CheckCommitMessage(suggestion)) << message << " -> " << suggestion;
  }
}

TEST(CommitMessage, SuggestionsKeepWhatWasMeant) {
  EXPECT_EQ(SuggestCommitMessage("Fix the bug"), "fix: Fix the bug");
  EXPECT_EQ(SuggestCommitMessage("Feature(api)!: add x"), "feat(api)!: add x");
  EXPECT_EQ(SuggestCommitMessage("DOCS:explain"), "docs: explain");
  EXPECT_EQ(SuggestCommitMessage("whatever happened"), "chore: whatever happened");
  EXPECT_EQ(SuggestCommitMessage(""), "chore: update");
  EXPECT_EQ(SuggestCommitMessage("feat: kept as it is"), "feat: kept as it is");
}

std::string Rendered(std::string_view pattern, const CommitSubject& subject) {
  auto message = RenderCommitMessage(pattern, subject);
  return message ? *message : message.error().message();
}

TEST(CommitMessage, TemplatesAreFilledInAndValid) {
  CommitSubject subject{.title = "Fix the fence", .number = 7, .agent = "Ada", .id = "t-1"};
  EXPECT_EQ(Rendered("{type}: {title}", subject), "fix: Fix the fence");
  EXPECT_EQ(Rendered("{type}: {title} (#{number})\n\nBy {agent} for {id}.", subject),
            "fix: Fix the fence (#7)\n\nBy Ada for t-1.");
  EXPECT_EQ(Rendered("chore(task-{number}): {title}", subject), "chore(task-7): Fix the fence");
  subject.title = "feat(api)!: say {agent}";
  EXPECT_EQ(Rendered("{type}: {title}", subject), "feat(api)!: say {agent}");
  // The title gives way, the rest stays.
  for (const char* word : {"word ", "\xc3\xa9", "x"}) {
    subject.title.clear();
    for (int i = 0; i < 150; ++i) subject.title += word;
    auto message = RenderCommitMessage("{type}: {title} (#{number})", subject);
    ASSERT_TRUE(message) << message.error().message();
    EXPECT_TRUE(CheckCommitMessage(*message)) << *message;
    EXPECT_TRUE(message->ends_with(" (#7)")) << *message;
  }
}

TEST(CommitMessage, BadTemplatesAreTold) {
  CommitSubject subject{.title = "Fix the fence", .number = 7, .agent = "Ada", .id = "t-1"};
  for (std::string pattern : {"{title}", "{type} {title}", "{type}:", "", "done: {title}",
                              "{type}: {nothing}", "{type}: {title", "{type}: {}"}) {
    auto message = RenderCommitMessage(pattern, subject);
    ASSERT_FALSE(message) << *message;
    EXPECT_EQ(message.error().code(), Code::kFailedPrecondition);
    EXPECT_TRUE(message.error().message().starts_with("commit_template")) << pattern;
  }
  EXPECT_NE(Rendered("{type}: {nothing}", subject).find("{nothing}"), std::string::npos);
  // One that leaves no place for any title.
  EXPECT_FALSE(RenderCommitMessage("{type}: {title}" + std::string(100, 'x'), subject));
}

TEST(CommitMessage, AnySuggestionPasses) {
  std::mt19937 random(7);
  const std::string alphabet = "abF:!() \n\t\xc3\xa9\xff" + std::string(1, '\0') + "feat fix";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t n = random() % 150; n > 0; --n) text += alphabet[random() % alphabet.size()];
    std::string suggestion = SuggestCommitMessage(text);
    auto checked = CheckCommitMessage(suggestion);
    ASSERT_TRUE(checked) << suggestion;
  }
}

}  // namespace
}  // namespace caisson::git
