#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests on an emulated machine of aarch64 (qemu-system-aarch64) with Debian's kernel and packages of that
# processor: dev/check-machine.sh BUILD [TEST-PART...]
# What is to be tested has been built in BUILD: runtime, check-runtime, programs, dist. The machine has its files in
# memory, two processors, no network but loopback, no compiler, and is some twenty times slower than this one. Logs are
# in BUILD/machine/logs. Ends with status 1 if a test failed, or if the machine did not come to the end.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
# All that change running programs, and those whose promises depend on the kernel.
[ $# -gt 0 ] || set -- e2e/attach promises/attach_children e2e/process_names promises/clean_target promises/death \
    promises/signals promises/tool_death e2e/sampling e2e/threads e2e/python_versions
PACKAGES="busybox-static linux-image-arm64 dash bash binutils coreutils procps util-linux python3 libgcc-s1 libstdc++6 gdb sqlite3
    perl jq redis-server libxml2-utils"
machine=$build/machine
root=$machine/root

# The kernel's image and modules are not needed inside of it.
[ -d "$root" ] || {
    # shellcheck disable=SC2086
    dev/sysroot.sh aarch64 "$root.new" $PACKAGES
    mv "$root.new/boot" "$machine/boot"
    rm -rf "$root.new/lib/modules" "$root.new/usr/share/doc" "$root.new/usr/share/locale"
    mv "$root.new" "$root"
}

tree=$root/cairn
rm -rf "$tree" "$machine/logs"
mkdir -p "$tree/build/check" "$tree/dev" "$machine/logs"
cp -r tests include runtime tool "$tree"
cp dev/*.py dev/*.sh "$tree/dev"
cp -r "$build/tests" "$build/cairn-replay" "$build"/*.so "$tree/build"
cp "$build"/check/*.so "$tree/build/check"
cp "$build"/dist/cairn-*-aarch64 "$tree/build/cairn"

# What came out of it goes over its only line, between two words.
cat >"$root/init" <<JOB
#!/bin/busybox sh
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin:/usr/bin:/sbin:/usr/sbin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
mkdir -p /proc /sys /dev /tmp /root /run
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts && mount -t tmpfs shm /dev/shm && mount -t devpts pts /dev/pts && mount -t tmpfs tmp /tmp
export EMULATED_MACHINE=1
ip link set lo up
echo 1 >/proc/sys/debug/exception-trace
cd /cairn && python3 dev/run-tests.py --no-build --jobs 2 --build-dir build --logs /tmp/logs $* 2>&1
dmesg >/tmp/logs/kernel
echo "LOGS"
tar -C /tmp -czf - logs | base64
echo "END"
poweroff -f
JOB
chmod 755 "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$machine/files.gz"
qemu-system-aarch64 -M virt -cpu max -smp 2 -m 6144 -nographic -no-reboot -net none -kernel "$machine"/boot/vmlinuz-* \
    -initrd "$machine/files.gz" -append "console=ttyAMA0 quiet panic=-1" </dev/null |
    stdbuf -oL tr -d '\r' | tee "$machine/said" | sed -u '/^LOGS$/,$d'
sed '1,/^LOGS$/d; /^END$/,$d' "$machine/said" | base64 -d | tar -C "$machine" -xzf - || {
    echo "cairn: the machine did not come to its end ($machine/said)" >&2
    exit 1
}
grep -q " 0 failed" "$machine/said"
