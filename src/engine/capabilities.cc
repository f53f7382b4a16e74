#include "engine/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace caisson::engine {
namespace {

constexpr CapabilitySet Bit(int capability) { return CapabilitySet{1} << capability; }

struct Sets {
  CapabilitySet effective = 0, permitted = 0, inheritable = 0;
};

Sets Get() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  auto join = [](uint32_t low, uint32_t high) { return low | CapabilitySet{high} << 32; };
  return {join(data[0].effective, data[1].effective), join(data[0].permitted, data[1].permitted),
          join(data[0].inheritable, data[1].inheritable)};
}

Status Set(const Sets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  for (int i = 0; i < 2; ++i)
    data[i] = {static_cast<uint32_t>(sets.effective >> (32 * i)),
               static_cast<uint32_t>(sets.permitted >> (32 * i)),
               static_cast<uint32_t>(sets.inheritable >> (32 * i))};
  if (syscall(SYS_capset, &header, data)) return FailErrno("changing capabilities");
  return {};
}

}  // namespace

CapabilitySet EngineCapabilities() {
  return Bit(CAP_SYS_ADMIN)       // namespaces, mounts, loop devices, entering a sandbox's network
         | Bit(CAP_NET_ADMIN)     // interfaces, routes, nftables; larger socket buffers
         | Bit(CAP_SETUID)        // uid maps; the owner of an overlay's work directory
         | Bit(CAP_SETGID)        // the same for groups
         | Bit(CAP_SETPCAP)       // to drop the rest
         | Bit(CAP_KILL)          // processes in sandboxes run under other uids
         | Bit(CAP_SYS_NICE)      // envd runs ahead of what it guards
         | Bit(CAP_SYS_PTRACE)    // to look at /proc/<pid> of sandboxes of an earlier engine
         | Bit(CAP_DAC_OVERRIDE)  // a data directory inside a user's home
         | Bit(CAP_SYS_CHROOT)    // CRIU enters the mount namespaces it restores
         // CRIU finds what inotify watches by handle, which kernels before 6.11 allow only so.
         | Bit(CAP_DAC_READ_SEARCH)
         // An overlay acts on its layers with the rights of who mounted it, so what a sandbox's
         // root may do to its files must be allowed here. (Not CAP_SYS_RESOURCE: it would let a
         // sandbox use the reserve of its disk.)
         | Bit(CAP_CHOWN) | Bit(CAP_FOWNER) | Bit(CAP_FSETID) | Bit(CAP_SETFCAP) | Bit(CAP_MKNOD);
}

CapabilitySet SandboxCapabilities(bool nesting) {
  CapabilitySet set = Bit(CAP_CHOWN)               // package managers, tar
                      | Bit(CAP_DAC_OVERRIDE)      // root reads and writes every file, as expected
                      | Bit(CAP_FOWNER)            // chmod of files of others
                      | Bit(CAP_FSETID)            // keeps setuid bits when files change
                      | Bit(CAP_KILL)              // root ends any process
                      | Bit(CAP_SETUID)            // sudo, su, running commands as a user
                      | Bit(CAP_SETGID)            // the same
                      | Bit(CAP_SETPCAP)           // daemons that drop rights themselves
                      | Bit(CAP_SETFCAP)           // packages whose programs carry capabilities
                      | Bit(CAP_NET_BIND_SERVICE)  // ports below 1024
                      | Bit(CAP_NET_RAW)           // ping, traceroute: in its own network only
                      | Bit(CAP_SYS_CHROOT)        // chroot, debootstrap
                      | Bit(CAP_SYS_PTRACE)        // gdb and strace on any process inside
                      | Bit(CAP_AUDIT_WRITE);      // sudo and login log through it
  // SECURITY: inside the sandbox's user namespace these reach nothing of the host by design, but
  // they open much more of the kernel to attack; only on the operator's word.
  if (nesting) set |= Bit(CAP_SYS_ADMIN) | Bit(CAP_NET_ADMIN);
  return set;
}

Status LimitBoundingSet(CapabilitySet keep) {
  for (int capability = 0; capability < 64; ++capability) {
    if (keep & Bit(capability)) continue;
    int has = prctl(PR_CAPBSET_READ, capability);
    if (has < 0) break;  // the kernel knows no more
    if (has > 0 && prctl(PR_CAPBSET_DROP, capability))
      return FailErrno("dropping capability {}", capability);
  }
  return {};
}

Status KeepOnly(CapabilitySet keep) {
  TRY(LimitBoundingSet(keep));
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  Sets now = Get();
  return Set({now.permitted & keep, now.permitted & keep, 0});
}

Status RaiseEffective() {
  Sets now = Get();
  now.effective = now.permitted;
  return Set(now);
}

CapabilitySet EffectiveCapabilities() { return Get().effective; }

}  // namespace caisson::engine
