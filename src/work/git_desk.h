// Git in a sandbox at a user's request: which repository and checkout are meant, what the row
// remembers of them, and the pull request at the end.
#pragma once

#include "work/authors.h"
#include "work/checkouts.h"

namespace caisson::work {

class GitDesk {
 public:
  // All outlive it.
  GitDesk(Platform platform, Sandboxes& sandboxes, Checkouts& checkouts, forge::GitHub& github,
          Authors& authors)
      : platform_(platform),
        sandboxes_(sandboxes),
        checkouts_(checkouts),
        github_(github),
        authors_(authors) {}

  // Whose sandbox, and which of its repositories: "owner/name", "" if it has only one.
  struct Place {
    std::string owner_id, sandbox_id, repo;
  };
  struct CommitRequest {
    std::string message, author_name, author_email;  // the last two: "" = the settings
    bool stage_all = true;
  };
  struct PullRequestText {
    std::string title, body, base;  // "" = the last commit, the commits, the base of the branch
    bool draft = false;
    std::vector<std::string> labels, reviewers;
  };
  struct Pushed {
    std::string branch, sha;
  };

  Task<Result<git::CloneResult>> Clone(Place place, std::string repo_url, std::string branch,
                                       int64_t depth);
  // "" = the name that the branch template gives the sandbox's task.
  Task<Result<git::BranchResult>> Branch(Place place, std::string name, std::string base);
  Task<Result<std::vector<std::string>>> Stage(Place place, std::vector<std::string> patterns);
  Task<Result<git::CommitResult>> Commit(Place place, CommitRequest request);
  // "" = the branch that is checked out. kFailedPrecondition: it is a protected one.
  Task<Result<Pushed>> Push(Place place, std::string branch);
  Task<Result<git::StatusResult>> Status(Place place);
  Task<Result<git::DiffResult>> Diff(Place place, std::string base, std::vector<std::string> files);
  Task<Result<std::vector<git::CommitInfo>>> History(Place place, int count);
  Task<Result<git::PullResult>> Pull(Place place, bool rebase);
  Task<Result<std::string>> Tag(Place place, std::string name, std::string message);
  // kFailedPrecondition "nothing_to_review": the branch has no commit of its own.
  Task<Result<forge::GitHub::Made>> OpenPullRequest(Place place, PullRequestText text);

 private:
  // What is meant, found out once per request.
  struct Spot {
    GitSubject subject;
    SandboxRow row;
    git::Repository repository;
    std::string path;
  };
  Task<Result<Spot>> Find(Place place);
  static GitSubject SubjectOf(const SandboxRow& row);
  Task<caisson::Status> Remember(std::string sandbox_id,
                                 std::vector<store::Assignment> assignments);
  Task<Result<std::string>> BranchOfTask(const SandboxRow& row);

  Platform platform_;
  Sandboxes& sandboxes_;
  Checkouts& checkouts_;
  forge::GitHub& github_;
  Authors& authors_;
};

}  // namespace caisson::work
