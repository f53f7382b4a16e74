// Pseudo-terminals.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "envd/user.h"

namespace caisson::envd {

struct PtySize {
  uint32_t cols = 0;
  uint32_t rows = 0;
};

struct Pty {
  UniqueFd master;  // non-blocking
  UniqueFd slave;   // owned by the user, so that programs can open it again by name
};

// kResourceExhausted when there are no terminals left.
Result<Pty> OpenPty(PtySize size, const User& user);
// Changes the size; the foreground programs get SIGWINCH.
Status ResizePty(int master, PtySize size);

}  // namespace caisson::envd
