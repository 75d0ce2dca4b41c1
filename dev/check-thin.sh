#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs `make check`, as .ci/run does, on a bare Debian with nothing but make and what `make deps` installs there: a package that the
# sources need and the list lacks fails here.
#     dev/check-thin.sh [TEST-PART...]     tests of which names contain one of these; all without
# As root. mmdebstrap makes a chroot of bookworm from the mirror that apt has here. It stays in build/chroots/thin
# (CHROOTS=DIRECTORY), some 6 GB, and is made anew when dev/deps.sh has changed. The tree in it is a fresh clone of the
# last commit. What the tests print is in build/thin.log; logs of tests are in build/thin-logs.
set -eu
cd "$(dirname "$0")/.."
suite=bookworm
root=${CHROOTS:-build/chroots}/thin
mkdir -p "$(dirname "$root")" build

[ "$(id -u)" -eq 0 ] || { echo "skipped: chroots need root"; exit 77; }
mirror() { python3 -B -c 'import sys; sys.path[:0] = ["tests/tools"]; import glibc_versions; print(glibc_versions.mirror())'; }

# inside COMMAND...: with devices and cgroups, without this machine's processes; its mounts end with it.
inside() {
    unshare --mount --pid --fork --kill-child sh -euc '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs shm "$root/dev/shm"
        exec chroot "$root" "$@"' sh "$root" \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# Of the chroot and of its packages: both can be cut off and are begun anew.
cmp -s dev/deps.sh "$root/made-by" || {
    rm -rf "$root"
    mmdebstrap --quiet --variant=minbase --include=make --dpkgopt=force-unsafe-io "$suite" "$root" "$(mirror)"
}
cp /etc/resolv.conf "$root/etc/resolv.conf"
rm -rf "$root/cairn" build/thin-logs
git -c safe.directory='*' clone --quiet --depth 1 "file://$PWD" "$root/cairn"
inside make -C /cairn deps
cp dev/deps.sh "$root/made-by"

status=0
[ $# -gt 0 ] || set -- ''
inside nice make -C /cairn check TESTS="$*" >build/thin.log 2>&1 || status=$?
cp -r "$root/cairn/build/test-logs" build/thin-logs 2>/dev/null || true
grep -v '^ok ' build/thin.log | tail -n 60
exit $status
