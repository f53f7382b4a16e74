"""Becomes Chromium, without the kernel's news about network links: chromium_without_netlink.py CHROMIUM ARG...

Chromium drops all its connections when a link of the machine comes or goes (ERR_NETWORK_CHANGED), and every
sandbox has a link. Without netlink sockets it takes the network for steady.
"""

import ctypes
import os
import struct
import sys

AF_NETLINK = 16
EAFNOSUPPORT = 97
SYS_SOCKET = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2

# seccomp's view of a call: its number at 0, its first argument at 16.
FILTER = [(LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 3, SYS_SOCKET), (LOAD, 0, 0, 16), (JUMP_EQUAL, 0, 1, AF_NETLINK),
          (RETURN, 0, 0, ERRNO | EAFNOSUPPORT), (RETURN, 0, 0, ALLOW)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


code = b"".join(struct.pack("HBBI", *instruction) for instruction in FILTER)
libc = ctypes.CDLL(None, use_errno=True)
program = Program(len(FILTER), code)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
    sys.exit(f"the filter was refused: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
