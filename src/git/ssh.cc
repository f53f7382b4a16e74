#include "git/ssh.h"

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "git/known_hosts.h"

namespace caisson::git {
namespace {

constexpr size_t kMaxSaid = 500;
constexpr size_t kMaxProtocol = 64;

Status CheckReadable(std::string_view setting, const std::string& file) {
  if (access(file.c_str(), R_OK) == 0) return {};
  return FailErrno("setting {}: {} must be readable for the user of the server", setting, file);
}

struct HostPort {
  std::string host, port;
};

// "host", "host:22", "[::1]:22".
HostPort SplitHost(std::string_view text) {
  size_t colon = text.rfind(':'), bracket = text.rfind(']');
  bool has_port = colon != std::string_view::npos &&
                  (bracket == std::string_view::npos ? text.find(':') == colon : colon > bracket);
  HostPort parts{std::string(text.substr(0, has_port ? colon : text.npos)),
                 has_port ? std::string(text.substr(colon + 1)) : "22"};
  if (parts.host.starts_with('[')) parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

// The last thing it said; the lines before are mostly warnings.
std::string LastLine(std::string_view said) {
  std::string last;
  for (std::string_view line : Split(said, '\n'))
    if (!Trim(line).empty()) last = Trim(line);
  return ToUtf8(std::string_view(last).substr(0, kMaxSaid));
}

// The first line that says more than that something failed.
std::string LineWith(std::string_view said, std::string_view part) {
  for (std::string_view line : Split(said, '\n'))
    if (ToLower(line).find(part) != std::string::npos)
      return ToUtf8(Trim(line).substr(0, kMaxSaid));
  return "";
}

SshFailure UnknownHost(std::string_view host) {
  return {403, fmt::format("The host key of {} is not known: the server connects only to hosts "
                           "in git_ssh_known_hosts.",
                           host)};
}

}  // namespace

SshAccess SshAccessOf(const Config& config) {
  return {.key_file = config.git_ssh_key_file,
          .known_hosts = config.git_ssh_known_hosts,
          .connect_timeout = std::chrono::milliseconds(config.github_timeout_ms)};
}

Status CheckSsh(const SshAccess& access) {
  if (!access.configured()) return {};
  if (access.known_hosts.empty())
    return Fail(Code::kInvalidArgument,
                "setting git_ssh_key_file needs git_ssh_known_hosts: a file with the host keys "
                "that are trusted");
  TRY(CheckReadable("git_ssh_key_file", access.key_file));
  TRY(CheckReadable("git_ssh_known_hosts", access.known_hosts));
  return {};
}

std::vector<std::string> SshCommand(const SshAccess& access, const Repository& repository,
                                    std::string_view service) {
  HostPort to = SplitHost(repository.ssh);
  auto seconds = std::max<int64_t>(access.connect_timeout.count() / 1000, 1);
  std::vector<std::string> argv = {"ssh", "-F", "/dev/null", "-T", "-p", to.port};
  for (std::string option :
       {std::string("BatchMode=yes"), std::string("StrictHostKeyChecking=yes"),
        "UserKnownHostsFile=" + access.known_hosts, std::string("GlobalKnownHostsFile=/dev/null"),
        std::string("UpdateHostKeys=no"), "IdentityFile=" + access.key_file,
        // SECURITY: this key and no other, for this connection and no other.
        std::string("IdentitiesOnly=yes"), std::string("IdentityAgent=none"),
        std::string("PreferredAuthentications=publickey"), std::string("ForwardAgent=no"),
        std::string("ClearAllForwardings=yes"), std::string("ControlPath=none"),
        std::string("SendEnv=GIT_PROTOCOL"), std::string("LogLevel=ERROR"),
        fmt::format("ConnectTimeout={}", seconds), std::string("ServerAliveInterval=15"),
        std::string("ServerAliveCountMax=4")}) {
    argv.emplace_back("-o");
    argv.push_back(std::move(option));
  }
  argv.insert(argv.end(), {"--", "git@" + to.host});
  // Owner and name are plain characters (ParseRepository), so the quotes hold.
  argv.push_back(fmt::format("{} '{}.git'", service, repository.full_name()));
  return argv;
}

std::vector<std::string> SshEnvironment(std::string_view git_protocol) {
  std::vector<std::string> environment = {"LC_ALL=C"};
  bool plain = !git_protocol.empty() && git_protocol.size() <= kMaxProtocol &&
               std::all_of(git_protocol.begin(), git_protocol.end(), [](char c) {
                 return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '=' || c == ':';
               });
  if (plain) environment.push_back("GIT_PROTOCOL=" + std::string(git_protocol));
  return environment;
}

SshFailure ExplainSsh(std::string_view host, std::string_view said) {
  std::string lower = ToLower(said);
  auto has = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
  if (has("remote host identification has changed"))
    return {403, fmt::format("The host key of {} is not the one in git_ssh_known_hosts. Somebody "
                             "may be in between; the server does not connect.",
                             host)};
  if (has("host key verification failed") || has("host key is known")) return UnknownHost(host);
  if (has("permission denied (") || has("too many authentication failures"))
    return {403, fmt::format("{} refused the server's SSH key.", host)};
  if (has("load key") || has("invalid format"))
    return {503, "The server's SSH key cannot be used."};
  for (std::string_view sign : {"repository not found", "does not appear to be a git repository",
                                "not a git repository", "project you were looking for"})
    if (has(sign)) return {404, fmt::format("{} says: {}", host, LineWith(said, sign))};
  for (std::string_view sign : {"write access", "read-only", "read only", "not allowed", "denied"})
    if (has(sign)) return {403, fmt::format("{} says: {}", host, LineWith(said, sign))};
  std::string last = LastLine(said);
  return {502, last.empty() ? fmt::format("{} ended the SSH connection without a word.", host)
                            : fmt::format("{} did not answer by SSH: {}", host, last)};
}

std::optional<SshFailure> WhyNotSsh(const SshAccess& access, const Repository& repository) {
  HostPort to = SplitHost(repository.ssh);
  auto known = ReadFile(access.known_hosts);
  if (!known) return SshFailure{503, "The server cannot read its git_ssh_known_hosts."};
  // SECURITY: ssh would refuse it as well, but after connecting, and a client could ask by that
  // which ports of the server's own network are open.
  if (!NamesHost(*known, to.host, to.port)) return UnknownHost(repository.ssh);
  return std::nullopt;
}

}  // namespace caisson::git
