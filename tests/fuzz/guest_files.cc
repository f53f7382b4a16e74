// Files that root of a sandbox can write and envd reads: /etc/passwd, /etc/group, /proc/PID/stat.
#include "envd/proc.h"
#include "envd/user.h"
#include "fuzz/support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  FuzzedDataProvider input(data, size);
  std::string passwd = input.ConsumeRandomLengthString(size);
  std::string group = input.ConsumeRemainingBytesAsString();
  envd::Accounts accounts = envd::Accounts::Parse(passwd, group);
  for (std::string_view name : {"root", "user", ""}) {
    const envd::User* user = accounts.Find(name);
    if (user == nullptr) continue;
    fuzz::Check(user->name == name, "another user was found");
    auto groups = accounts.GroupsOf(*user);
    fuzz::Check(!groups.empty() && groups[0] == user->gid, "a user is not in the own group");
  }
  (void)accounts.UserName(1000);
  (void)accounts.GroupName(1000);
  if (auto stat = envd::ParseProcStat(passwd))
    fuzz::Check(stat->pid > 0, "a process without a pid");
  return 0;
}
