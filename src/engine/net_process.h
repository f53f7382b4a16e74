// The program caisson-net: what parses the packets of sandboxes, or talks for them to the network.
//
// SECURITY: it is started by execve with no environment, so nothing of the engine's memory, and of
// the server's before it, is within reach of whoever takes it over. It has a user id of its own, no
// right, no way to start a program or to open a file, and the limits of net_process.cc.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/process.h"
#include "engine/protocol.h"

namespace caisson::engine {

// How it finds the socket to the engine; the first message there is its settings.
inline constexpr int kNetSocket = 3;

inline constexpr const char* kResolverRole = "resolver";
inline constexpr const char* kRelayRole = "relay";

// Looks for it beside the running program. The descriptor means this very file, also when another
// version is installed in its place.
Result<UniqueFd> OpenNetProgram();

// Starts it in this network namespace and tells it its role, its user and its settings. The
// result's socket is the engine's end.
struct NetProcess {
  Forked forked;
  UniqueFd socket;
};
Result<NetProcess> StartNetProgram(int program, const char* role, uid_t uid, Message settings);

// In the program, when it has read its settings and before it reads anything else: from now on it
// is that user and can do what the role needs.
Status ConfineNetProgram(const Message& settings);

}  // namespace caisson::engine
