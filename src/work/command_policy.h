// What /api/v1/sandboxes/{id}/execute may run, for each role: command_policy and command_list. A
// guard rail for people and agents that mean well: what a sandbox may do is enforced by the
// sandbox.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"

namespace caisson::work {

class CommandPolicy {
 public:
  explicit CommandPolicy(const Config& config);

  // `role` of who asks: "member", "admin". kPermissionDenied with the name of what is refused. A
  // text for a shell ("sh -c TEXT") is looked through word by word; where only some programs are
  // allowed it may hold no shell syntax at all.
  Status Check(const std::string& role, const std::vector<std::string>& argv) const;

 private:
  enum class Mode { kOff, kDeny, kAllow };
  Mode ModeOf(const std::string& role) const;
  Status CheckProgram(Mode mode, std::string_view word) const;
  Status CheckScript(Mode mode, std::string_view script) const;

  std::map<std::string, Mode> modes_;  // by role; "" = of those that are not named
  std::set<std::string, std::less<>> programs_;
};

}  // namespace caisson::work
