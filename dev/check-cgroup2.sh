#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests under version 2 of control groups, with a memory controller, which this machine may not have: in an emulated
# machine of this processor with Debian's kernel, with this machine's own programs and what was built in BUILD:
# dev/check-cgroup2.sh BUILD [TEST-PART...]
# QEMU names another emulator, TOOL_FILE another tool. The machine has its files in memory, two processors, and no network
# but loopback. Ends with status 1 if a test failed, or if the machine did not come to the end.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
[ $# -gt 0 ] || set -- e2e/cgroup_memory e2e/oom
machine=$(realpath -m "$build/cgroup2")
root=$machine/root
: "${QEMU:=qemu-system-$(uname -m)}"

# The kernel's package is taken from this machine's sources and unpacked; nothing is installed.
[ -d "$machine/kernel" ] || {
    mkdir -p "$machine/kernel.new"
    cd "$machine/kernel.new"
    package=$(apt-cache depends "linux-image-cloud-$(dpkg --print-architecture)" | sed -n 's/ *Depends: //p')
    apt-get -qq download "$package"
    dpkg -x ./*.deb .
    cd - >/dev/null
    mv "$machine/kernel.new" "$machine/kernel"
}

# Copies a program, and the libraries that the dynamic linker would load for it, to where they lie here.
copy() {
    for file; do
        mkdir -p "$root/$(dirname "$file")"
        cp -L "$file" "$root/$file"
        ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$root/$(dirname "$library")"
            [ -e "$root/$library" ] || cp -L "$library" "$root/$library"
        done
    done
}

rm -rf "$root"
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/root" "$root/run" "$root/etc"
copy "$(command -v busybox)" "$(readlink -f /usr/bin/python3)" /usr/lib/python3*/lib-dynload/*.so
for library in /usr/lib/python3*; do cp -r "$library" "$root/usr/lib"; done
rm -rf "$root"/usr/lib/python3*/test "$root/usr/lib/python3/dist-packages"
ln -sf "$(basename "$(readlink -f /usr/bin/python3)")" "$root/usr/bin/python3"
tree=$root/cairn
mkdir -p "$tree/build/tests" "$tree/dev"
cp -r tests format runtime tool "$tree"
cp dev/*.py "$tree/dev"
cp "$build"/*.so "$tree/build"
cp "${TOOL_FILE:-$build/cairn}" "$tree/build/cairn"
cp -r "$build/tests/programs" "$tree/build/tests"
find "$tree/build" -type f -size +8M ! -name cairn -delete
for program in "$tree/build/cairn" "$tree"/build/tests/programs/*; do
    ldd "$program" 2>/dev/null | grep -o ' /[^ ]*' | while read -r library; do
        mkdir -p "$root/$(dirname "$library")"
        [ -e "$root/$library" ] || cp -L "$library" "$root/$library"
    done
done

# What came out of it goes over its only line.
cat >"$root/init" <<JOB
#!$(command -v busybox) sh
$(command -v busybox) --install -s /bin 2>/dev/null
export PATH=/bin:/usr/bin:/sbin:/usr/sbin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts && mount -t tmpfs shm /dev/shm && mount -t devpts pts /dev/pts && mount -t tmpfs tmp /tmp
mount -t cgroup2 none /sys/fs/cgroup && echo +memory >/sys/fs/cgroup/cgroup.subtree_control
export EMULATED_MACHINE=1
ip link set lo up
cd /cairn && python3 dev/run-tests.py --no-build --jobs 1 --build-dir build --logs /tmp/logs $* 2>&1
poweroff -f
JOB
chmod 755 "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$machine/files.gz"
$QEMU -accel tcg,thread=multi -cpu max -smp 2 -m 4096 -nographic -no-reboot -net none -kernel "$machine"/kernel/boot/vmlinuz-* \
    -initrd "$machine/files.gz" -append "console=ttyS0 quiet panic=-1" </dev/null |
    stdbuf -oL tr -d '\r' | tee "$machine/said"
grep -Eq '^[0-9]+ passed, 0 failed' "$machine/said"
