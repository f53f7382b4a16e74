#include "git/failure.h"

#include <array>
#include <vector>

#include "base/text.h"

namespace caisson::git {
namespace {

struct Sign {
  Failure failure;
  std::string_view text;  // lower case
};

// The first that is found decides, so the order is from the special to the general: a refused push
// also says "failed to push", a broken transfer also says "hung up".
constexpr std::array kSigns = {
    Sign{Failure::kLocked, ".lock': file exists"},
    Sign{Failure::kLocked, "another git process seems to be running"},

    Sign{Failure::kConflict, "conflict ("},
    Sign{Failure::kConflict, "automatic merge failed"},
    Sign{Failure::kConflict, "could not apply"},
    Sign{Failure::kConflict, "unmerged files"},
    Sign{Failure::kConflict, "you need to resolve your current index first"},
    Sign{Failure::kConflict, "would be overwritten by"},
    Sign{Failure::kConflict, "not possible to fast-forward"},
    Sign{Failure::kConflict, "diverging branches can't be fast-forwarded"},
    Sign{Failure::kConflict, "need to specify how to reconcile divergent branches"},
    Sign{Failure::kConflict, "refusing to merge unrelated histories"},

    Sign{Failure::kRejected, "[rejected]"},
    Sign{Failure::kRejected, "[remote rejected]"},
    Sign{Failure::kRejected, "non-fast-forward"},
    Sign{Failure::kRejected, "hook declined"},
    Sign{Failure::kRejected, "protected branch"},

    Sign{Failure::kAuth, "authentication failed"},
    Sign{Failure::kAuth, "could not read username"},
    Sign{Failure::kAuth, "could not read password"},
    Sign{Failure::kAuth, "terminal prompts disabled"},
    Sign{Failure::kAuth, "permission denied (publickey"},
    Sign{Failure::kAuth, "host key verification failed"},
    Sign{Failure::kAuth, "returned error: 401"},
    Sign{Failure::kAuth, "returned error: 403"},
    Sign{Failure::kAuth, "http 401"},
    Sign{Failure::kAuth, "http 403"},
    Sign{Failure::kAuth, "invalid username or password"},
    Sign{Failure::kAuth, "write access to repository not granted"},

    Sign{Failure::kNetwork, "could not resolve host"},
    Sign{Failure::kNetwork, "could not resolve proxy"},
    Sign{Failure::kNetwork, "temporary failure in name resolution"},
    Sign{Failure::kNetwork, "failed to connect to"},
    Sign{Failure::kNetwork, "couldn't connect to server"},
    Sign{Failure::kNetwork, "connection refused"},
    Sign{Failure::kNetwork, "connection reset"},
    Sign{Failure::kNetwork, "connection timed out"},
    Sign{Failure::kNetwork, "operation timed out"},
    Sign{Failure::kNetwork, "network is unreachable"},
    Sign{Failure::kNetwork, "no route to host"},
    Sign{Failure::kNetwork, "empty reply from server"},
    Sign{Failure::kNetwork, "recv failure"},
    Sign{Failure::kNetwork, "send failure"},
    Sign{Failure::kNetwork, "transfer closed"},
    Sign{Failure::kNetwork, "early eof"},
    Sign{Failure::kNetwork, "hung up unexpectedly"},
    Sign{Failure::kNetwork, "unexpected disconnect"},
    Sign{Failure::kNetwork, "gnutls_handshake"},
    Sign{Failure::kNetwork, "gnutls recv error"},
    Sign{Failure::kNetwork, "ssl_error_syscall"},
    Sign{Failure::kNetwork, "rpc failed; http 5"},
    Sign{Failure::kNetwork, "rpc failed; curl"},
    Sign{Failure::kNetwork, "rpc failed; http 429"},
    Sign{Failure::kNetwork, "returned error: 5"},
    Sign{Failure::kNetwork, "returned error: 429"},

    Sign{Failure::kNotFound, "repository not found"},
    Sign{Failure::kNotFound, "returned error: 404"},
    Sign{Failure::kNotFound, "http 404"},
    Sign{Failure::kNotFound, "' not found"},
    Sign{Failure::kNotFound, "' does not exist"},
    Sign{Failure::kNotFound, "does not appear to be a git repository"},
    Sign{Failure::kNotFound, "not a git repository"},
    Sign{Failure::kNotFound, "not found in upstream"},
    Sign{Failure::kNotFound, "couldn't find remote ref"},
    Sign{Failure::kNotFound, "did not match any file"},
    Sign{Failure::kNotFound, "unknown revision"},
    Sign{Failure::kNotFound, "bad revision"},
    Sign{Failure::kNotFound, "not a valid object name"},
    Sign{Failure::kNotFound, "invalid reference"},
    Sign{Failure::kNotFound, "does not match any"},
    Sign{Failure::kNotFound, "no such remote"},
    Sign{Failure::kNotFound, "needed a single revision"},
    Sign{Failure::kNotFound, "no such file or directory"},

    Sign{Failure::kRejected, "failed to push some refs"},
};

}  // namespace

std::string_view FailureName(Failure failure) {
  switch (failure) {
    case Failure::kNone:
      return "";
    case Failure::kAuth:
      return "auth";
    case Failure::kNetwork:
      return "network";
    case Failure::kConflict:
      return "conflict";
    case Failure::kNotFound:
      return "not_found";
    case Failure::kRejected:
      return "rejected";
    case Failure::kLocked:
      return "locked";
    case Failure::kOther:
      return "other";
  }
  return "other";
}

Failure ClassifyStderr(std::string_view text) {
  std::string lower = ToLower(text);
  for (const Sign& sign : kSigns)
    if (lower.find(sign.text) != std::string::npos) return sign.failure;
  return Failure::kOther;
}

Code CodeOf(Failure failure) {
  switch (failure) {
    case Failure::kAuth:
      return Code::kUnauthenticated;
    case Failure::kNetwork:
    case Failure::kLocked:
      return Code::kUnavailable;
    case Failure::kConflict:
      return Code::kAborted;
    case Failure::kNotFound:
      return Code::kNotFound;
    case Failure::kRejected:
      return Code::kFailedPrecondition;
    case Failure::kNone:
    case Failure::kOther:
      break;
  }
  return Code::kUnknown;
}

std::string GitsOwnWords(std::string_view text, size_t max) {
  std::string words;
  for (std::string_view line : Split(text, '\n')) {
    // Progress overwrites itself; what is left of a line is behind its last return.
    while (line.ends_with('\r')) line.remove_suffix(1);
    line = Trim(line.substr(line.rfind('\r') + 1));
    bool noise = line.empty() || line.starts_with("hint:") || line.starts_with("Cloning into") ||
                 line.find("% (") != std::string_view::npos;
    if (noise || words.size() + line.size() > max) continue;
    if (!words.empty()) words += "; ";
    words += line;
  }
  return ToUtf8(words);
}

}  // namespace caisson::git
