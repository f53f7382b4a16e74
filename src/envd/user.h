// Users and groups, read from /etc/passwd and /etc/group. No NSS: it cannot be linked statically,
// and PID 1 must not load the sandbox's libraries.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson::envd {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
};

// An immutable snapshot of both files.
class Accounts {
 public:
  // The snapshot of the files as they are now; read again only when one of them changed.
  static std::shared_ptr<const Accounts> Current();
  static Accounts Parse(std::string_view passwd, std::string_view group);

  // nullptr if there is no such user.
  const User* Find(std::string_view name) const;
  // The user's own group first, then each group that lists the user.
  std::vector<gid_t> GroupsOf(const User& user) const;
  // Names, or the number as text when there is none.
  std::string UserName(uid_t uid) const;
  std::string GroupName(gid_t gid) const;

 private:
  struct Group {
    std::string name;
    gid_t gid = 0;
    std::vector<std::string> members;
  };
  std::vector<User> users_;
  std::vector<Group> groups_;
};

}  // namespace caisson::envd
