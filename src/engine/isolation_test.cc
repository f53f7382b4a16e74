// What a sandbox looks like from the inside: what it must not see, and what a development machine
// must be able to do all the same. Ways out are tried in tests/attack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/file.h"
#include "engine/test_support.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

// One sandbox for all tests of this file; none of them changes it.
class IsolationTest : public testing::Test {
 protected:
  struct World {
    World() {
      spec.limits.memory_bytes = 512 << 20;
      auto instance = engine.Create(spec);
      if (!instance) ADD_FAILURE() << instance.error().message();
      if (instance) pid = instance->pid;
    }
    TempDir dir;
    TestEngine engine{TestConfig(dir)};
    Spec spec = TestSpec(engine.config());
    int pid = 0;
  };
  static void SetUpTestSuite() { world_ = std::make_unique<World>(); }
  static void TearDownTestSuite() { world_.reset(); }

  static std::string Inside(const std::string& command) {
    return world_->engine.Run(world_->spec.id, command).output;
  }
  static std::string AsUser(const std::string& command) {
    return Inside("setpriv --reuid 1000 --regid 1000 --init-groups sh -c '" + command + "'");
  }
  // Makes a system call by number and says how it ended: "0" or an errno's name.
  static std::string Syscall(const std::string& arguments) {
    return Inside(
        "python3 -c 'import ctypes,errno\n"
        "libc=ctypes.CDLL(None,use_errno=True)\n"
        "r=libc.syscall(" +
        arguments +
        ")\n"
        "print(0 if r>=0 else errno.errorcode[ctypes.get_errno()])'");
  }

  static std::unique_ptr<World> world_;
};
std::unique_ptr<IsolationTest::World> IsolationTest::world_;

TEST_F(IsolationTest, EveryNamespaceIsItsOwn) {
  std::error_code ec;
  for (const char* name : {"user", "pid", "mnt", "net", "uts", "ipc", "cgroup"}) {
    std::string ours = std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", name), ec);
    std::string theirs =
        std::filesystem::read_symlink(fmt::format("/proc/{}/ns/{}", world_->pid, name), ec);
    EXPECT_FALSE(theirs.empty()) << name;
    EXPECT_NE(ours, theirs) << name;
  }
  EXPECT_EQ(Inside("hostname"), "caisson");
  EXPECT_EQ(Inside("cat /proc/1/comm"), "envd");
  // Of the hundreds on the host: init, its child, sh and what that runs.
  // One that has just answered may still be on its way out.
  EXPECT_EQ(Inside("test $(ls -d /proc/[0-9]* | wc -l) -le 12 && echo few"), "few");
  EXPECT_EQ(Inside("cut -d: -f3 /proc/1/cgroup | sort -u"), "/");
}

TEST_F(IsolationTest, RootInsideIsNobodyOutside) {
  auto status = ReadFile(fmt::format("/proc/{}/status", world_->pid));
  ASSERT_TRUE(status);
  EXPECT_THAT(*status, Not(HasSubstr("Uid:\t0")));
  EXPECT_EQ(Inside("id -u; id -g; id -G"), "0\n0\n0");
  EXPECT_EQ(Inside("awk '{print $1, $3}' /proc/self/uid_map /proc/self/gid_map"),
            "0 65536\n0 65536");
  // Owners of the template's files are what they are in the template.
  EXPECT_EQ(Inside("stat -c '%u:%g %a' / /etc/passwd /home/user"),
            "0:0 755\n0:0 644\n1000:1000 755");
}

TEST_F(IsolationTest, OnlyStandardDescriptorsAndNothingOfTheHost) {
  EXPECT_EQ(Inside("readlink /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2"),
            "/dev/null\n/dev/null\n/dev/null");
  // The rest is the init's own listening socket; this connection's it closes soon.
  EXPECT_EQ(Inside("for i in $(seq 300); do n=$(ls /proc/1/fd | wc -l); [ $n = 4 ] && break; "
                   "sleep 0.1; done; echo $n"),
            "4");
  EXPECT_EQ(Inside("tr '\\0' '\\n' < /proc/1/environ | cut -d= -f1"),
            "PATH\nCAISSON_MEMORY_BYTES\nCAISSON_CPUS");
  // The root, what the kernel provides, and our few covers; no path of the host.
  EXPECT_EQ(Inside("awk '$2==\"/\" {print $3}' /proc/self/mounts"), "overlay");
  // What is not the sandbox's own covers single paths of the kernel, or is envd; all read-only.
  EXPECT_EQ(
      Inside("awk '$3 !~ /^(overlay|proc|sysfs|devpts)$/ && !($2 ~ "
             "/^(\\/proc\\/|\\/sys\\/|\\/.caisson\\/(envd|ca-certificates.crt)$)/ && $4 ~ /^ro,/)' "
             "/proc/self/mounts"),
      "");
}

TEST_F(IsolationTest, MemoryShownIsTheLimit) {
  EXPECT_EQ(Inside("awk '/MemTotal/ {print $2}' /proc/meminfo"), "524288");
  EXPECT_EQ(Inside("free -m | awk '/Mem/ {print $2}'"), "512");
  EXPECT_EQ(Inside("df -B1M --output=size / | tail -1 | awk '{print ($1 < 256)}'"), "1");
}

TEST_F(IsolationTest, ArgumentsOfSystemCallsAreChecked) {
  // socket: AF_PACKET, AF_ALG, AF_VSOCK, and AF_PACKET with high bits that the kernel would ignore
  EXPECT_EQ(Syscall("41,17,3,0"), "EAFNOSUPPORT");
  EXPECT_EQ(Syscall("41,38,5,0"), "EAFNOSUPPORT");
  EXPECT_EQ(Syscall("41,40,1,0"), "EAFNOSUPPORT");
  EXPECT_EQ(Syscall("41,ctypes.c_ulong(0x100000011),3,0"), "EAFNOSUPPORT");
  for (const char* family : {"1", "2", "10", "16"})
    EXPECT_EQ(Syscall(fmt::format("41,{},2,0", family)), "0") << family;
  // MPTCP, SCTP, a raw socket of no protocol; netlink's generic family; pairs of TIPC; TCP_ULP
  for (const char* kind : {"2,1,262", "2,1,132", "2,3,0", "10,5,0", "16,3,16"})
    EXPECT_EQ(Syscall(fmt::format("41,{}", kind)), "EPROTONOSUPPORT") << kind;
  EXPECT_EQ(Syscall("53,30,1,0,b\"12345678\""), "ENOTSUP");
  EXPECT_EQ(Syscall("54,0,6,31,b\"tls\",3"), "ENOPROTOOPT");
  // mbind, kcmp, io_setup, remap_file_pages
  for (const char* call :
       {"237,0,0,0,0,0,0", "312,1,1,0,0,0", "206,1,b\"12345678\"", "216,0,0,0,0,0"})
    EXPECT_EQ(Syscall(call), "ENOSYS") << call;
  // ioctl TIOCSTI, also with high bits
  EXPECT_EQ(Syscall("16,0,0x5412,b\"x\""), "EPERM");
  EXPECT_EQ(Syscall("16,0,ctypes.c_ulong(0x100005412),b\"x\""), "EPERM");
  // personality: ADDR_NO_RANDOMIZE yes, READ_IMPLIES_EXEC no
  EXPECT_EQ(Syscall("135,0x40000"), "0");
  EXPECT_EQ(Syscall("135,0x400000"), "ENOSYS");
  // unshare without namespaces is harmless
  EXPECT_EQ(Syscall("272,0x400"), "0");
}

TEST_F(IsolationTest, CapabilitiesAreTrimmed) {
  // chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot
  // sys_ptrace audit_write setfcap
  constexpr const char* kExpected = "00000000a00c25fb";
  for (const char* set : {"CapPrm", "CapEff", "CapBnd"})
    EXPECT_EQ(Inside(fmt::format("awk '/{}/ {{print $2}}' /proc/1/status", set)), kExpected) << set;
  EXPECT_EQ(Inside("awk '/CapInh|CapAmb/ {print $2}' /proc/1/status"),
            "0000000000000000\n0000000000000000");
  EXPECT_EQ(Inside("awk '/NoNewPrivs/ {print $2}' /proc/1/status"), "0");
  EXPECT_EQ(Inside("awk '/^Seccomp:/ {print $2}' /proc/1/status"), "2");
  EXPECT_THAT(Inside("mknod /tmp/disk b 7 0"), HasSubstr("not permitted"));
  EXPECT_THAT(Inside("date -s 2000-01-01"), HasSubstr("not permitted"));
  EXPECT_THAT(Inside("dmesg"), HasSubstr("not permitted"));
  EXPECT_THAT(Inside("hostname other; hostname"), HasSubstr("caisson"));
  EXPECT_THAT(Inside("ip link add dummy0 type dummy"), HasSubstr("not permitted"));
}

TEST_F(IsolationTest, SudoWorksForTheUser) {
  EXPECT_EQ(AsUser("id -un"), "user");
  EXPECT_EQ(AsUser("sudo -n id -u"), "0");
  EXPECT_THAT(AsUser("cat /etc/shadow"), HasSubstr("Permission denied"));
}

TEST_F(IsolationTest, DevicesTerminalsAndSharedMemoryWork) {
  EXPECT_EQ(Inside("head -c 3 /dev/zero | od -An -tx1"), "00 00 00");
  EXPECT_EQ(AsUser("head -c 4 /dev/urandom | wc -c"), "4");
  EXPECT_EQ(AsUser("echo x > /dev/null && echo ok"), "ok");
  EXPECT_THAT(AsUser("python3 -c \"import os; m,s=os.openpty(); print(os.ttyname(s))\""),
              HasSubstr("/dev/pts/"));
  EXPECT_EQ(Inside("stat -c %a /dev/shm /tmp"), "1777\n1777");
  EXPECT_EQ(AsUser("python3 -c \"from multiprocessing import Lock; Lock(); print(1)\""), "1");
}

TEST_F(IsolationTest, DevelopersToolsWork) {
  EXPECT_THAT(AsUser("strace -e trace=write true 2>&1"), HasSubstr("exited with 0"));
  EXPECT_THAT(AsUser("gdb -batch -ex run -ex bt --args /bin/true 2>&1"),
              HasSubstr("exited normally"));
  EXPECT_THAT(AsUser("cd /tmp && git init -q repo && cd repo && git config user.email a@b && "
                     "git config user.name a && touch f && git add f && git commit -qm m && "
                     "git log --oneline | wc -l"),
              HasSubstr("1"));
  EXPECT_EQ(AsUser("node -e \"console.log(6*7)\""), "42");
  EXPECT_EQ(AsUser("cd /tmp && printf \"int main(){return 0;}\" > m.c && gcc m.c && ./a.out && "
                   "echo built"),
            "built");
  EXPECT_EQ(Inside("mv /usr/lib/python3 /usr/lib/moved && mv /usr/lib/moved /usr/lib/python3 && "
                   "echo renamed"),
            "renamed");
  EXPECT_THAT(Inside("ping -c 1 -W 2 127.0.0.1"), HasSubstr("1 received"));
  EXPECT_THAT(AsUser("ping -c 1 -W 2 127.0.0.1"), HasSubstr("1 received"));
}

TEST_F(IsolationTest, SignalsAndLimitsAreFresh) {
  EXPECT_EQ(Inside("awk '/SigIgn|SigBlk/ {print $2}' /proc/self/status"),
            "0000000000000000\n0000000000000000");
  EXPECT_EQ(Inside("ulimit -c"), "0");
  EXPECT_EQ(Inside("ps -o ni= -p 1 | tr -d ' '"), "-10");
  EXPECT_EQ(Inside("umask"), "0022");
}

TEST(NestingTest, NamespacesAndMountsInsideWorkOnlyIfAllowed) {
  TempDir dir;
  Config config = TestConfig(dir);
  config.nesting = true;
  TestEngine engine(config);
  Spec spec = TestSpec(config);
  ASSERT_TRUE(engine.Create(spec));
  EXPECT_EQ(engine.Run(spec.id, "unshare -Urpmf --mount-proc sh -c 'id -u; echo $$'").output,
            "0\n1");
  EXPECT_EQ(engine.Run(spec.id, "mount -t tmpfs x /mnt && stat -f -c %T /mnt").output, "tmpfs");
  EXPECT_EQ(engine
                .Run(spec.id,
                     "setpriv --reuid 1000 --regid 1000 --init-groups unshare -Urpmf "
                     "--mount-proc id -u")
                .output,
            "0");
}

TEST_F(IsolationTest, LoopbackOnlyWithoutNetworkAndTheChosenCaBundle) {
  TempDir dir;
  Config config = TestConfig(dir);
  config.network = "none";
  config.ca_bundle = dir.path() + "/own.pem";
  std::string bundle = "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----";
  ASSERT_TRUE(WriteFileAtomic(config.ca_bundle, bundle, 0644));
  TestEngine engine(config);
  Spec alone = TestSpec(config);
  ASSERT_TRUE(engine.Create(alone));
  EXPECT_EQ(engine.Run(alone.id, "cat /.caisson/ca-certificates.crt").output, bundle);
  EXPECT_THAT(engine.Run(alone.id, "echo x > /.caisson/ca-certificates.crt").output,
              HasSubstr("Read-only file system"));
  EXPECT_EQ(engine.Run(alone.id, "ls /sys/class/net").output, "lo");
  EXPECT_EQ(engine.Run(alone.id, "cat /sys/class/net/lo/operstate").output, "unknown");
  EXPECT_TRUE(engine.Destroy(alone.id));
}

}  // namespace
}  // namespace caisson::engine
