// What git prints in a sandbox, which may be made up, and the names and texts that users give.
#include "base/text.h"
#include "fuzz/support.h"
#include "git/commit_message.h"
#include "git/failure.h"
#include "git/porcelain.h"
#include "git/repository.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& name : git::ParseStatus(text).untracked)
    fuzz::Check(ToUtf8(name) == name, "a name that is not UTF-8");
  auto files = git::ParseNumstat(text);
  git::SetChanges(files, text);
  for (const auto& file : files)
    fuzz::Check(ToUtf8(file.path) == file.path && !file.change.empty(), "a file that is none");
  (void)git::ParseLog(text);
  (void)git::ParseNames(text);
  git::ProgressParser progress;
  for (const auto& step : progress.Feed(text))
    fuzz::Check(step.percent >= -1 && step.percent <= 100 && ToUtf8(step.text) == step.text,
                "a step that is none");
  (void)git::ClassifyStderr(text);
  (void)git::GitsOwnWords(text);
  fuzz::Check(git::CheckCommitMessage(git::SuggestCommitMessage(text)).has_value(),
              "a suggestion that is refused");
  if (auto repository = git::ParseRepository(text, "https://forge.example")) {
    fuzz::Check(repository->clone_url().find_first_of(" \t\n@\\?#%") == std::string::npos,
                "a URL with more than a name in it");
    fuzz::Check(git::ParseRepository(repository->clone_url(), "https://forge.example").has_value(),
                "a repository that cannot be named again");
  }
  if (git::CheckBranchName(text))
    fuzz::Check(!text.starts_with('-') && text.find("..") == text.npos, "no name of a branch");
  fuzz::Check(
      git::CheckBranchName(git::BranchName("x/{slug}-{id}", text, 1, text, text)).has_value(),
      "a made name that is none");
  return 0;
}
