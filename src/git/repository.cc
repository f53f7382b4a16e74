#include "git/repository.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::git {
namespace {

constexpr size_t kMaxUrl = 2000;
constexpr size_t kMaxPart = 100;
constexpr size_t kMaxBranch = 200;
constexpr size_t kMaxSlug = 40;

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// SECURITY: owner and name become parts of paths, both of URLs and of the file system inside, so
// only plain characters pass, no leading dash (an option) and no names made of dots.
bool IsNamePart(std::string_view text) {
  if (text.empty() || text.size() > kMaxPart || text.front() == '-') return false;
  if (text.find_first_not_of('.') == std::string_view::npos) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

// A host name or address with an optional port.
bool IsAuthority(std::string_view text) {
  if (text.empty() || text.size() > 255 || text.front() == '-' || text.front() == ':') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsAlnum(c) || c == '-' || c == '.' || c == ':' || c == '[' || c == ']';
  });
}

std::string_view AuthorityOf(std::string_view base) {
  size_t scheme = base.find("://");
  if (scheme != std::string_view::npos) base.remove_prefix(scheme + 3);
  return base.substr(0, base.find('/'));
}

tl::unexpected<Error> NotARepository() {
  return Fail(Code::kInvalidArgument,
              "This is not the address of a repository. Write https://HOST/OWNER/NAME, "
              "git@HOST:OWNER/NAME or OWNER/NAME.");
}

// "owner/name[.git][/]" at `base`.
Result<Repository> FromPath(std::string_view path, std::string base) {
  while (path.ends_with('/')) path.remove_suffix(1);
  size_t slash = path.find('/');
  if (slash == std::string_view::npos) return NotARepository();
  std::string_view owner = path.substr(0, slash);
  std::string_view name = path.substr(slash + 1);
  // The suffix as a whole: stripping its characters would make "widge" of "widget".
  if (name.ends_with(".git")) name.remove_suffix(4);
  if (!IsNamePart(owner) || !IsNamePart(name)) return NotARepository();
  return Repository{std::move(base), std::string(owner), std::string(name)};
}

// The same host as the default is reached the way the default is.
std::string BaseFor(std::string_view host, std::string_view default_base) {
  if (EqualsIgnoreCase(host, AuthorityOf(default_base))) return std::string(default_base);
  return "https://" + std::string(host);
}

// "host" of "host:22" and of "[::1]:22".
std::string_view WithoutPort(std::string_view authority) {
  size_t colon = authority.rfind(':');
  bool is_port = colon != std::string_view::npos &&
                 authority.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return authority.substr(0, is_port ? colon : authority.npos);
}

// By SSH at "host[:port]". The port is ssh's, so it does not tell one host from another.
Result<Repository> FromSsh(std::string_view path, std::string_view authority,
                           std::string_view default_base) {
  std::string_view host = WithoutPort(authority);
  bool is_host = IsAuthority(authority) && !authority.ends_with(':') &&
                 (host.find(':') == std::string_view::npos || host.ends_with(']'));
  if (!is_host) return NotARepository();
  bool is_default = EqualsIgnoreCase(host, WithoutPort(AuthorityOf(default_base)));
  TRY_ASSIGN(Repository repository,
             FromPath(path, is_default ? std::string(default_base) : BaseFor(host, default_base)));
  repository.ssh = authority;
  return repository;
}

}  // namespace

Result<Repository> ParseRepository(std::string_view url, std::string_view default_base) {
  url = Trim(url);
  while (default_base.ends_with('/')) default_base.remove_suffix(1);
  if (url.empty() || url.size() > kMaxUrl) return NotARepository();
  if (url.starts_with(std::string(default_base) + "/"))
    return FromPath(url.substr(default_base.size() + 1), std::string(default_base));

  size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) {
    if (!url.starts_with("git@")) return FromPath(url, std::string(default_base));
    size_t colon = url.find(':');
    if (colon == std::string_view::npos) return NotARepository();
    return FromSsh(url.substr(colon + 1), url.substr(4, colon - 4), default_base);
  }

  std::string scheme = ToLower(url.substr(0, scheme_end));
  std::string_view rest = url.substr(scheme_end + 3);
  size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return NotARepository();
  std::string_view authority = rest.substr(0, slash);
  if (scheme == "ssh" && authority.starts_with("git@"))
    return FromSsh(rest.substr(slash + 1), authority.substr(4), default_base);
  if (authority.find('@') != std::string_view::npos) {
    // SECURITY: and the sentence does not repeat it.
    return Fail(Code::kInvalidArgument,
                "The address of the repository holds a user name or a password. Give it without; "
                "the server adds its own credential.");
  } else if (scheme == "http") {
    return Fail(Code::kInvalidArgument, "Repositories are reached by https only.");
  } else if (scheme != "https") {
    return NotARepository();
  }
  if (!IsAuthority(authority)) return NotARepository();
  return FromPath(rest.substr(slash + 1), BaseFor(authority, default_base));
}

Status CheckBranchName(std::string_view name) {
  auto refuse = [](std::string_view why) {
    return Fail(Code::kInvalidArgument, "This is not a branch name: {}.", why);
  };
  if (name.empty()) return refuse("it is empty");
  if (name.size() > kMaxBranch)
    return refuse(fmt::format("it is longer than {} characters", kMaxBranch));
  // SECURITY: git would take it for an option.
  if (name.front() == '-') return refuse("it begins with a dash");
  if (name == "HEAD" || name == "@" || name.starts_with("refs/"))
    return refuse("git gives it a meaning of its own");
  if (name.size() >= 40 && name.find_first_not_of("0123456789abcdefABCDEF") == name.npos)
    return refuse("it looks like the id of a commit");
  for (char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return refuse("it holds a control character");
    if (std::string_view(" ~^:?*[\\").find(c) != std::string_view::npos)
      return refuse(fmt::format("it holds \"{}\"", c));
  }
  for (std::string_view bad : {"..", "@{", "//"})
    if (name.find(bad) != name.npos) return refuse(fmt::format("it holds \"{}\"", bad));
  if (name.back() == '.' || name.back() == '/')
    return refuse(fmt::format("it ends with \"{}\"", name.back()));
  for (std::string_view part : Split(name, '/')) {
    if (part.empty()) return refuse("it begins with \"/\"");
    if (part.front() == '.') return refuse("a part of it begins with a dot");
    if (part.ends_with(".lock")) return refuse("a part of it ends with \".lock\"");
  }
  if (ToUtf8(name) != name) return refuse("it is not UTF-8");
  return {};
}

namespace {

// Lower-case letters, digits and single dashes.
std::string Slug(std::string_view text) {
  std::string slug;
  for (char c : ToLower(text)) {
    if (IsAlnum(c))
      slug += c;
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
    if (slug.size() == kMaxSlug) break;
  }
  while (slug.ends_with('-')) slug.pop_back();
  return slug;
}

void ReplaceAll(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

}  // namespace

std::string BranchName(std::string_view pattern, std::string_view id, int64_t number,
                       std::string_view agent, std::string_view title) {
  std::string name(pattern);
  ReplaceAll(name, "{id}", Slug(id));
  ReplaceAll(name, "{number}", std::to_string(number));
  ReplaceAll(name, "{agent}", Slug(agent));
  ReplaceAll(name, "{slug}", Slug(title));
  if (CheckBranchName(name)) return name;
  // A template that cannot be filled in must not keep a task from being done.
  std::string fallback = Slug(id);
  return "task-" + (fallback.empty() ? std::to_string(number) : fallback);
}

std::string BranchNameAt(std::string_view name, Time now) {
  std::string suffix = fmt::format("-{}", UnixSeconds(now));
  return std::string(name.substr(0, kMaxBranch - suffix.size())) + suffix;
}

}  // namespace caisson::git
