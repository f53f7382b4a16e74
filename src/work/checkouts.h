// Git in the sandboxes of the platform: the broker is opened for what may be done, and everything
// that is done is written down and told.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "forge/github.h"
#include "git/broker.h"
#include "git/git.h"
#include "git/lock.h"
#include "work/platform.h"
#include "work/sandboxes.h"

namespace caisson::work {

// For whom git works, and where.
struct GitSubject {
  std::string owner_id, sandbox_id;
  std::string task_id, agent_id, execution_id, session_id;  // "" if it is for none
};

class Checkouts {
 public:
  // All outlive it.
  Checkouts(Platform platform, Sandboxes& sandboxes, git::Broker& broker, git::Locks& locks,
            forge::GitHub& github)
      : platform_(platform),
        sandboxes_(sandboxes),
        broker_(broker),
        locks_(locks),
        github_(github) {}

  // From now on the sandbox can fetch this repository, and push branches that are `push_prefix` or
  // begin with it ("" = none).
  Task<Status> Grant(GitSubject subject, git::Repository repository, std::string push_prefix);
  void Revoke(const std::string& sandbox_id);

  // Runs `work` with git at `path`; what it did is recorded whatever came of it.
  template <class T>
  Task<Result<T>> With(GitSubject subject, std::string path,
                       std::function<Task<Result<T>>(git::Git&)> work) {
    std::vector<git::Operation> done;
    CO_TRY_ASSIGN(auto connection,
                  co_await sandboxes_.Connect(subject.owner_id, subject.sandbox_id));
    Result<T> result = Fail(Code::kInternal, "nothing was done");
    {
      git::Git git(connection.envd, platform_.config, path, Watch(subject, done),
                   locks_.For(subject.sandbox_id, path));
      result = co_await work(git);
    }
    CO_TRY(co_await Record(subject, std::move(done)));
    co_return result;
  }

  // The same for work that only looks, and may do so often: nothing is recorded or told, and no
  // other work waits for it.
  template <class T>
  Task<Result<T>> Look(std::string owner_id, std::string sandbox_id, std::string path,
                       std::function<Task<Result<T>>(git::Git&)> work) {
    CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(owner_id, sandbox_id));
    git::Git git(connection.envd, platform_.config, path, {},
                 locks_.For(sandbox_id, path + " look"));
    co_return co_await work(git);
  }

  // Where the sandbox has it, or would have it.
  std::string PathOf(const std::string& sandbox_id, const git::Repository& repository) const {
    std::string own = sandboxes_.provider().Workspace(sandbox_id);
    return (own.empty() ? platform_.config.workspace : own) + "/" + repository.name;
  }

 private:
  git::CredentialSource CredentialFor(const git::Repository& repository) const;
  git::Observer Watch(const GitSubject& subject, std::vector<git::Operation>& done) const;
  Task<Status> Record(GitSubject subject, std::vector<git::Operation> operations);

  Platform platform_;
  Sandboxes& sandboxes_;
  git::Broker& broker_;
  git::Locks& locks_;
  forge::GitHub& github_;
  struct Granted {
    std::string what, backend_id;
  };
  std::map<std::string, Granted> grants_;  // what the open brokers let pass, and where
};

}  // namespace caisson::work
