#include "envd/user.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace caisson::envd {
namespace {

constexpr char kPasswd[] = "/etc/passwd";
constexpr char kGroup[] = "/etc/group";
constexpr size_t kMaxFile = 4 << 20;

// Changes whenever the file is replaced or written.
struct Version {
  ino_t inode = 0;
  off_t size = 0;
  timespec changed{};

  bool operator==(const Version& other) const {
    return inode == other.inode && size == other.size && changed.tv_sec == other.changed.tv_sec &&
           changed.tv_nsec == other.changed.tv_nsec;
  }
};

Version VersionOf(const char* path) {
  struct stat st{};
  if (stat(path, &st) != 0) return {};
  return {st.st_ino, st.st_size, st.st_ctim};
}

}  // namespace

std::shared_ptr<const Accounts> Accounts::Current() {
  static std::shared_ptr<const Accounts> cached;
  static Version passwd_version, group_version;
  Version passwd = VersionOf(kPasswd), group = VersionOf(kGroup);
  if (!cached || !(passwd == passwd_version) || !(group == group_version)) {
    cached = std::make_shared<Accounts>(
        Parse(ReadFile(kPasswd, kMaxFile).value_or(""), ReadFile(kGroup, kMaxFile).value_or("")));
    passwd_version = passwd;
    group_version = group;
  }
  return cached;
}

Accounts Accounts::Parse(std::string_view passwd, std::string_view group) {
  Accounts accounts;
  for (std::string_view line : Split(passwd, '\n')) {
    auto field = Split(line, ':');
    if (field.size() < 6 || field[0].empty()) continue;
    auto uid = ParseInt<uid_t>(field[2]);
    auto gid = ParseInt<gid_t>(field[3]);
    if (!uid || !gid) continue;
    accounts.users_.push_back({std::string(field[0]), *uid, *gid, std::string(field[5])});
  }
  for (std::string_view line : Split(group, '\n')) {
    auto field = Split(line, ':');
    if (field.size() < 4 || field[0].empty()) continue;
    auto gid = ParseInt<gid_t>(field[2]);
    if (!gid) continue;
    Group entry{std::string(field[0]), *gid, {}};
    for (std::string_view member : Split(field[3], ',')) {
      if (!Trim(member).empty()) entry.members.emplace_back(Trim(member));
    }
    accounts.groups_.push_back(std::move(entry));
  }
  return accounts;
}

const User* Accounts::Find(std::string_view name) const {
  for (const User& user : users_) {
    if (user.name == name) return &user;
  }
  return nullptr;
}

std::vector<gid_t> Accounts::GroupsOf(const User& user) const {
  std::vector<gid_t> groups{user.gid};
  for (const Group& group : groups_) {
    bool member = std::ranges::find(group.members, user.name) != group.members.end();
    if (member && std::ranges::find(groups, group.gid) == groups.end()) groups.push_back(group.gid);
  }
  return groups;
}

std::string Accounts::UserName(uid_t uid) const {
  for (const User& user : users_) {
    if (user.uid == uid) return user.name;
  }
  return std::to_string(uid);
}

std::string Accounts::GroupName(gid_t gid) const {
  for (const Group& group : groups_) {
    if (group.gid == gid) return group.name;
  }
  return std::to_string(gid);
}

}  // namespace caisson::envd
