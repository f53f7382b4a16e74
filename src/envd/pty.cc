#include "envd/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace caisson::envd {

Result<Pty> OpenPty(PtySize size, const User& user) {
  Pty pty;
  pty.master.Reset(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!pty.master) return FailErrno("cannot open a terminal");
  int locked = 0;
  if (ioctl(pty.master.get(), TIOCSPTLCK, &locked) != 0)
    return FailErrno("cannot unlock the terminal");
  // By descriptor, not by name: what is mounted at /dev/pts inside the sandbox does not matter.
  pty.slave.Reset(ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave) return FailErrno("cannot open the terminal's other side");
  (void)!fchown(pty.slave.get(), user.uid, static_cast<gid_t>(-1));
  TRY(ResizePty(pty.master.get(), size));
  return pty;
}

Status ResizePty(int master, PtySize size) {
  winsize window{};
  window.ws_col = static_cast<unsigned short>(std::min<uint32_t>(size.cols, UINT16_MAX));
  window.ws_row = static_cast<unsigned short>(std::min<uint32_t>(size.rows, UINT16_MAX));
  if (ioctl(master, TIOCSWINSZ, &window) != 0) return FailErrno("error resizing tty");
  return {};
}

}  // namespace caisson::envd
