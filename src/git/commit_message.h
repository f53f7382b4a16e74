// Conventional commits: one of 11 types, optional (scope), optional "!", ": ", a subject of 1 to
// 100 characters.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::git {

// kInvalidArgument; the message ends with a suggestion that would be accepted.
Status CheckCommitMessage(std::string_view message);
// The nearest message that passes, made of any text.
std::string SuggestCommitMessage(std::string_view text);

// What a template of commit messages is filled in with.
struct CommitSubject {
  std::string title;  // any text
  int64_t number = 0;
  std::string agent, id;
};
// {type} and {title} are the two sides of the nearest message that the title gives; a title that is
// too long for its place is cut. kFailedPrecondition: an unknown {name}, or what comes out is no
// conventional commit.
Result<std::string> RenderCommitMessage(std::string_view pattern, const CommitSubject& subject);

}  // namespace caisson::git
