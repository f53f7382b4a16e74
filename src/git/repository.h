// Which repository a URL means, and names that git must never take for an option.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace caisson::git {

struct Repository {
  std::string base_url;  // "https://github.com", or where else it is
  std::string owner;
  std::string name;  // without ".git"
  std::string ssh;   // "host[:port]" if the address was one of SSH

  // One that is made inside a sandbox and is nowhere else.
  bool is_scratch() const { return owner.empty(); }
  std::string full_name() const { return owner + "/" + name; }
  // "https://host/owner/name.git".
  std::string clone_url() const { return base_url + "/" + full_name() + ".git"; }
  // What ParseRepository() makes the same of again.
  std::string address() const {
    return ssh.empty() ? clone_url() : "ssh://git@" + ssh + "/" + full_name() + ".git";
  }
};

// https://host[:port]/owner/name[.git][/], git@host:owner/name[.git],
// ssh://git@host[:port]/owner/name, and the short form owner/name, which is at `default_base`.
// Credentials in a URL, other schemes and names that are no names are kInvalidArgument with a
// sentence. http:// only where `default_base` itself is reached that way.
Result<Repository> ParseRepository(std::string_view url, std::string_view default_base);

// Nothing that a fetch or a push could reach; `name` is its directory.
inline Repository ScratchRepository(std::string_view default_base) {
  return {.base_url = std::string(default_base), .name = "project"};
}

// A branch name that git accepts and that is no option and no path out of refs/.
Status CheckBranchName(std::string_view name);
// From a template with {id}, {number}, {agent}, {slug}; always a valid name.
std::string BranchName(std::string_view pattern, std::string_view id, int64_t number,
                       std::string_view agent, std::string_view title);
// "task-7" is taken: "task-7-1763224800", with the seconds of `now`.
std::string BranchNameAt(std::string_view name, Time now);

}  // namespace caisson::git
