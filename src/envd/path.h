// How paths of requests become paths of files (contract 3.4), and directories on the way.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "envd/user.h"

namespace caisson::envd {

// The lexical clean-up of "..", "." and repeated slashes; links are not looked at. "" gives ".".
std::string CleanPath(std::string_view path);
// The directory part and the last component, as if the path had been cleaned.
std::string DirName(std::string_view path);
std::string BaseName(std::string_view path);
std::string JoinPath(std::string_view directory, std::string_view name);

// "" is `workdir` (or home), "~" and "~/x" are under home, absolute paths stay as they are, and
// everything else is below home. "~bob" and NUL bytes are kInvalidArgument.
Result<std::string> ResolvePath(std::string_view path, const User& user, std::string_view workdir);

// Makes `path` and what is missing above it with mode 0755, owned by `user`. Existing directories
// are left alone. kResourceExhausted when the disk is full.
Status EnsureDirs(const std::string& path, const User& user);

// Gives a file to the user. Succeeds when it already is (so it works without root, too).
Status ChownPath(const std::string& path, const User& user);

}  // namespace caisson::envd
