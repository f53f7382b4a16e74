"""Rows 15 to 22: files of the kernel, descriptors, working directories, cgroups."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from guest import REFUSED, Guest
from probes import probe
from world import World

from support.rest import Rest

# Opens every file below the directories for writing; prints the count and what could be opened.
OPEN_ALL = """
import stat
count, opened = 0, []
for top in args[0]:
    for directory, folders, names in os.walk(top):
        if top == "/proc":
            skipped = ("self", "thread-self", "sys")
            folders[:] = [f for f in folders if not f.isdigit() and f not in skipped]
        for name in names:
            path = os.path.join(directory, name)
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                count += 1
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                opened.append(path)
            except OSError:
                pass
print(json.dumps([count, opened]))
"""

# Reads every file below the directories and prints those that hold one of the words.
SEARCH = """
import stat
tops, words = args
words, found, count = [w.encode() for w in words], [], 0
for top in tops:
    for directory, folders, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode) or "/pagemap" in path:
                    continue
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                continue
            count += 1
            try:
                data = os.read(fd, 1 << 20)
            except OSError:
                data = b""
            os.close(fd)
            found += [path + ": " + w.decode() for w in words if w in data or w.decode() in path]
print(json.dumps([count, found]))
"""

WRITE = """
import errno
results = {}
for path in args[0]:
    try:
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, b"1")
        results[path] = "OK"
    except OSError as error:
        results[path] = errno.errorcode[error.errno]
print(json.dumps(results))
"""


@probe(15)
def test_kernel_settings_are_read_only(guest: Guest):
    paths = [
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/vm/panic_on_oom",
        "/proc/sys/kernel/hostname",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/user/max_inotify_instances",
        "/sys/kernel/uevent_helper",
        "/proc/irq/default_smp_affinity",
        "/proc/mtrr",
        "/sys/power/state",
    ]
    results = guest.python(WRITE, paths)
    let = {path: how for path, how in results.items() if how not in REFUSED | {"ENOENT"}}
    assert not let and "EROFS" in results.values(), results


@probe(15)
def test_no_file_of_the_kernel_can_be_opened_for_writing(guest: Guest):
    count, opened = guest.python(OPEN_ALL, ["/proc", "/proc/sys", "/sys"], timeout=60)
    assert count > 1000
    assert opened == []


@probe(15)
def test_no_core_dump_reaches_a_program_of_the_host(guest: Guest):
    """Where core_pattern names a program, the kernel runs it on the host: never for a guest."""
    assert guest.run("ulimit -c unlimited").code != 0
    limit = guest.run("awk '/core file/ {print $5, $6}' /proc/self/limits").out.split()
    assert set(limit) <= {"0", "1"}, limit
    crashed = guest.run("bash -c 'kill -SEGV $$'; echo; ls core* 2>/dev/null", cwd="/tmp")
    assert "dumped" not in crashed.out + crashed.err, crashed


@probe(16)
def test_kernel_memory_and_keys_are_hidden(guest: Guest):
    for path in (
        "/proc/kcore",
        "/proc/keys",
        "/proc/key-users",
        "/proc/timer_list",
        "/proc/kmsg",
        "/proc/sched_debug",
        "/proc/kpagecount",
        "/proc/kpageflags",
        "/proc/vmallocinfo",
        "/proc/slabinfo",
        "/proc/interrupts",
    ):
        assert guest.run(f"timeout 5 head -c 100 {path} 2>/dev/null").out == "", path
    for path in (
        "/sys/firmware",
        "/sys/kernel/debug",
        "/sys/kernel/tracing",
        "/sys/fs/bpf",
        "/sys/fs/pstore",
        "/sys/kernel/security",
        "/sys/devices/virtual/block",
    ):
        assert guest.run(f"ls -A {path} 2>/dev/null").out == "", path
    # Disks, cards and the machine itself, with their serial numbers.
    devices = set(guest.run("ls /sys/devices").out.split())
    buses = [name for name in devices if name.startswith(("ACPI", "LNXSYSTM", "pci", "platform", "pnp", "virtio"))]
    for path in (*(f"/sys/devices/{bus}" for bus in buses), "/sys/devices/virtual/dmi"):
        assert guest.run(f"ls -A {path} 2>/dev/null").out == "", path
    found = guest.run("find -L /sys/block /sys/class/block /sys/class/dmi /sys/class/nvme /sys/bus/pci/devices "
                      "-maxdepth 3 -name serial -o -maxdepth 3 -name '*_serial' -o -maxdepth 3 -name wwid 2>/dev/null")
    assert found.out == "", found.out
    addresses = guest.run("cut -d' ' -f1 /proc/kallsyms 2>/dev/null | sort -u").out.split()
    assert addresses in ([], ["0" * 16]), addresses[:5]
    assert guest.run("dmesg").code != 0


@probe(16)
def test_nothing_names_a_neighbour(guest: Guest, world: World):
    """All of /proc and /sys is searched for secrets, and for the id of another sandbox, which is
    part of the public addresses of its previews."""
    words = [
        world.neighbour["sandboxID"],
        world.neighbour_secret,
        world.secret,
        world.server.api_key,
        world.neighbour["envdAccessToken"],
    ]
    count, found = guest.python(SEARCH, ["/proc", "/sys"], words, timeout=60)
    # The script itself has the words as its own.
    found = [entry for entry in found if not entry.startswith("/proc/") or entry[6].isalpha()]
    assert count > 1000 and found == [], found


@probe(17)
def test_masks_stay(guest: Guest):
    for command in (
        "umount /proc/keys",
        "umount -l /proc/sys",
        "umount -f /sys/firmware",
        "mount -o remount,rw /proc/sys",
        "mount -o remount,rw /sys",
        "mount -t proc p /mnt",
        "mount --bind /proc /mnt",
        "mount --move /proc/sys /mnt",
        "mount -t sysfs s /mnt",
        "mv /proc /old",
        "rmdir /proc",
        "mv /proc/keys /tmp/k",
        "rm /proc/keys",
        "ln -sfn /tmp /proc",
        "mv /sys/firmware /tmp/f",
        "rm -f /proc/meminfo",
        "unshare -Urm true",
        "unshare -m true",
        "nsenter -t 1 -m true",
    ):
        assert guest.run(command).code != 0, command
    assert guest.run("cat /proc/keys; ls -A /sys/firmware").out == ""
    assert guest.run("head -1 /proc/meminfo").out.split()[1] == str(256 * 1024)


@probe(17)
def test_masks_are_files_of_nobody(guest: Guest):
    """What covers a path belongs to the host's root: it cannot be filled from inside."""
    for path in ("/proc/keys", "/proc/meminfo", "/.caisson/envd"):
        assert guest.run(f"echo x > {path}").code != 0, path
        assert guest.run(f"chmod 777 {path}").code != 0, path
        assert guest.run(f"setfattr -n user.x -v 1 {path}; chown 1000 {path}").code != 0, path
    assert guest.run("touch /sys/firmware/x").code != 0


@probe(17)
def test_a_template_with_links_for_mount_points(make_server, world: World, tmp_path):
    """CVE-2025-31133 and its kind: what a sandbox starts from leads our mounts into the host."""
    world_side = tmp_path / "host"
    (world_side / "pts").mkdir(parents=True)
    (world_side / "envd").write_text("host")
    before = Path("/proc/self/mountinfo").read_text()
    for link in ("dev", ".caisson", "proc", "sys", "dev/pts"):
        root = tmp_path / "templates/base/rootfs"
        shutil.rmtree(tmp_path / "templates", ignore_errors=True)
        for directory in ("proc", "sys", "dev/pts", ".caisson", "etc", "tmp"):
            (root / directory).mkdir(parents=True, exist_ok=True)
        (root / ".caisson/envd").touch()
        shutil.rmtree(root / link)
        (root / link).symlink_to(world_side)
        (root.parent / "template.json").write_text('{"id": "base", "cpuCount": 1, "memoryMB": 64}')
        for parent in (root, *root.parents):
            parent.chmod(parent.stat().st_mode | 0o005)
        server = make_server(env={"CAISSON_TEMPLATE_DIR": str(tmp_path / "templates")})
        answer = Rest(server).post("/v2/sandboxes", {"templateID": "base", "timeout": 30})
        assert answer.status >= 400, (link, answer)
        assert "symbolic link" in server.log_since(0) + answer.body.decode(), (link, answer)
    assert Path("/proc/self/mountinfo").read_text() == before
    assert (world_side / "envd").read_text() == "host"


@probe(18)
def test_roots_of_processes(guest: Guest, world: World):
    inside = guest.run("stat -c %d:%i /").out
    for pid in ("self", "1"):
        seen = guest.run(f"stat -L -c %d:%i /proc/{pid}/root/ 2>/dev/null").out
        assert seen in (inside, ""), pid
    canary = world.file
    for path in (
        f"/proc/1/root{canary}",
        f"/proc/self/root{canary}",
        f"/proc/1/cwd{canary}",
        f"/proc/1/root/../../../..{canary}",
        str(canary),
    ):
        assert guest.run(f"cat {path}").out == "", path
    for pid in world.host_pids():
        assert guest.run(f"ls -d /proc/{pid}").code != 0, pid


@probe(18)
def test_programs_of_the_host_cannot_be_overwritten(guest: Guest):
    """CVE-2019-5736: the file behind /proc/self/exe of a program that came from the host."""
    paths = ["/proc/1/exe", "/.caisson/envd", "/proc/1/root/.caisson/envd", "/proc/1/map_files"]
    results = guest.python(WRITE, paths)
    allowed = REFUSED | {"ETXTBSY", "EISDIR"}
    assert {path: how for path, how in results.items() if how not in allowed} == {}
    assert guest.run("ln /.caisson/envd /tmp/envd").code != 0
    assert guest.run("mv /.caisson/envd /tmp/envd").code != 0
    # A copy that runs is an ordinary program of the sandbox.
    assert (
        guest.run("cp /.caisson/envd /tmp/mine && echo x >> /tmp/mine; rm -f /tmp/mine").code == 0
    )


@probe(19)
def test_inherited_descriptors(guest: Guest):
    """CVE-2024-21626: a directory or socket of the server that a program inside could use."""
    listing = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
    assert guest.run(f'python3 -c "{listing}"').out == "[0, 1, 2, 3]\n"  # 3: the listing's own
    targets = guest.run("for f in /proc/1/fd/*; do readlink $f; done", user="root").out.split()
    kinds = {t.split(":")[0] for t in targets}
    assert kinds <= {"socket", "pipe", "anon_inode", "/dev/null", "/dev/pts/ptmx"}, targets
    handle = guest.sandbox.pty.create(size=_size(), user=guest.account, timeout=20)
    guest.sandbox.pty.send_stdin(handle.pid, b"ls -1 /proc/$$/fd | tr '\\n' ' '; exit\n")
    shown = handle.wait(on_pty=lambda data: None)
    assert shown.exit_code == 0


def _size():
    from e2b import PtySize

    return PtySize(rows=24, cols=80)


@probe(20)
def test_working_directories(guest: Guest, world: World):
    inside = guest.run("stat -c %d:%i /").out
    depth = "../" * 40
    for cwd in (
        "/proc/self/fd/3",
        "/proc/self/fd/0",
        "/proc/1/fd/4",
        "/proc/1/cwd",
        "/proc/self/cwd",
        "/proc/1/root/..",
        depth,
        f"/home/user/{depth}",
        "/proc/self/root/" + depth,
        str(world.directory),
        "/proc/1/cwd/../../..",
    ):
        try:
            done = guest.run(
                f"stat -c %d:%i /; cd {depth}; stat -c %d:%i .; cat {world.file}; "
                f"cat .{world.file}; cat canary",
                cwd=cwd,
            )
        except Exception as refused:
            assert (
                "cwd" in str(refused)
                or "directory" in str(refused)
                or "chdir" in str(refused)
                or "start" in str(refused)
            ), (cwd, refused)
            continue
        assert done.out == inside * 2, (cwd, done)


@probe(21)
def test_no_cgroup_files_inside(guest: Guest):
    names = "cgroup.procs release_agent notify_on_release devices.allow memory.max pids.max"
    search = " -o ".join(f"-name {name}" for name in names.split())
    assert guest.run(f"find / -xdev \\( {search} \\) 2>/dev/null").out == ""
    assert guest.run(f"find /sys /proc -maxdepth 6 \\( {search} \\) 2>/dev/null").out == ""
    assert guest.run("ls -A /sys/fs/cgroup").out == ""
    assert guest.run("cut -d: -f3 /proc/self/cgroup | sort -u").out == "/\n"
    for tree in ("memory", "devices", "rdma", "none,name=systemd"):
        assert guest.run(f"mount -t cgroup -o {tree} c /mnt").code != 0, tree
    assert guest.run("mount -t cgroup2 c /mnt").code != 0
    assert guest.run("mkdir /sys/fs/cgroup/x").code != 0


@probe(22)
def test_limits_cannot_be_raised(guest: Guest, world: World):
    cgroups = [
        Path(directory)
        for directory, _, _ in os.walk("/sys/fs/cgroup")
        if directory.endswith("/" + guest.id)
    ]
    names = ("memory.limit_in_bytes", "memory.max", "pids.max", "cpu.cfs_quota_us", "cpu.max")
    limits = {p / n: (p / n).read_text() for p in cgroups for n in names if (p / n).exists()}
    assert len(limits) >= 3, cgroups
    for path in limits:
        assert guest.run(f"echo max > {path}; echo 999999999 > {path}").code != 0, path
    for kind in "nulmsr":
        hard = guest.run(f"ulimit -H{kind}").out.strip()
        if hard.isdigit():
            assert guest.run(f"ulimit -H{kind} {int(hard) + 1}").code != 0, kind
    assert guest.run("nice -n -20 true 2>&1 | grep -c denied").out == "1\n"
    assert guest.run("chrt -f 50 true").code != 0
    assert guest.run("ionice -c 1 true").code != 0
    assert {path: path.read_text() for path in limits} == limits
