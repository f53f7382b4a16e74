#!/bin/bash
# Runs the cgroup tests for real on the v2 layout: in a virtual machine (software emulation, no KVM
# needed) with the kernel of this distribution, in three places a server may find itself in.
#
#   src/engine/cgroup_v2_vm_test.sh [BUILD_DIR]     needs qemu-system-x86, about a minute
set -euo pipefail

build=$(realpath "${1:-build}")
test_program=$build/tests/engine_resource_test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
apt-get download -q "$kernel" busybox-static
for package in *.deb; do dpkg-deb -x "$package" unpacked; done
busybox=$work/unpacked/bin/busybox

mkdir -p root/{bin,proc,sys,dev,tmp,var/tmp,usr/bin}
cp "$busybox" root/bin/
for program in "$test_program" /usr/bin/unshare; do
  cp "$program" root/bin/
  for library in $(ldd "$program" | grep -oE '/[^ ]+\.so[^ ]*'); do
    mkdir -p "root${library%/*}"
    cp -L "$library" "root$library"
  done
done

# The test of the page cache is left out: there is no file system on a disk in there.
cat > root/init <<'INIT'
#!/bin/busybox sh
busybox() { /bin/busybox "$@"; }
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs tmp /tmp
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
export TESTS='/bin/engine_resource_test --gtest_brief=1 --gtest_filter=CgroupTest.*-*Cache*'

echo "at the root of the tree:"
$TESTS && echo PASS-1

tree=/sys/fs/cgroup
busybox mkdir $tree/box $tree/slice $tree/slice/service
echo "+cpu +memory +pids" > $tree/cgroup.subtree_control
echo "+cpu +memory +pids" > $tree/slice/cgroup.subtree_control

echo "in a container, its own cgroup as root of the tree:"
/bin/busybox sh -c 'echo $$ > /sys/fs/cgroup/box/cgroup.procs
  exec /bin/unshare -C -m /bin/busybox sh -c "busybox umount /sys/fs/cgroup
    busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
    \$TESTS && echo PASS-2"'

echo "in a delegated cgroup below a read-only root:"
/bin/busybox sh -c 'echo $$ > /sys/fs/cgroup/slice/service/cgroup.procs
  exec /bin/unshare -m /bin/busybox sh -c "
    busybox mount --bind /sys/fs/cgroup/slice/service /sys/fs/cgroup/slice/service
    busybox mount -o remount,bind,ro /sys/fs/cgroup
    \$TESTS && echo PASS-3"'
busybox poweroff -f
INIT
chmod +x root/init
(cd root && find . | "$busybox" cpio -o -H newc 2> /dev/null) | gzip -1 > initrd

timeout 300 qemu-system-x86_64 -accel tcg -M q35 -m 1024 -smp 2 -nographic -no-reboot -nic none \
  -kernel unpacked/boot/vmlinuz-* -initrd initrd -append 'console=ttyS0 quiet panic=-1' |
  tr -d '\r' | tee output
for n in 1 2 3; do
  grep -q "^PASS-$n$" output || { echo "failed: see above" && exit 1; }
done
echo "cgroup v2: passed"
