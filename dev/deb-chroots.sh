#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian packages in the Debians that they are for: dev/deb-chroots.sh [SUITE...] (bookworm trixie)
# Builds this commit's tarball in a chroot of each suite, asks that suite's lintian, installs the packages by apt
# in a bare chroot, uses them (dev/deb-use.sh) and purges them. Packages stay in build/deb/SUITE/.
# As root. mmdebstrap makes the chroots from the mirror that apt has here; they are kept in build/chroots/
# (CHROOTS=DIRECTORY), remove them to renew them. Ends with `N passed, N failed, N skipped`.
set -eu
cd "$(dirname "$0")/.."
chroots=${CHROOTS:-build/chroots}
tools=lintian,pkgconf
passed=0 failed=0 skipped=0

skip() {
    echo "skipped: $1: $2"
    skipped=$((skipped + 1))
}

mirror() { python3 -B -c 'import sys; sys.path[:0] = ["tests/tools"]; import glibc_versions; print(glibc_versions.mirror())'; }

# The names in debian/control's Build-Depends, without versions.
build_packages() {
    sed -n '/^Build-Depends:/,/^[^ B]/p' debian/control | grep -v '^Standards' | tr ',' '\n' |
        sed 's/^Build-Depends://; s/(.*)//; s/debhelper-compat/debhelper/; s/ //g' | grep . | paste -sd,
}

# make_chroot SUITE NAME PACKAGES: build/chroots/NAME.tar, if it is not there.
make_chroot() {
    [ ! -e "$chroots/$2.tar" ] || return 0
    mkdir -p "$chroots"
    mmdebstrap --quiet --variant=minbase ${3:+--include="$3"} "$1" "$chroots/$2.new.tar" "$(mirror)" \
        >"$chroots/$2.log" 2>&1 && mv "$chroots/$2.new.tar" "$chroots/$2.tar" && return
    rm -f "$chroots/$2.new.tar"
    return 1
}

# inside ROOT COMMAND...: with /proc, without this machine's processes and mounts.
inside() {
    root=$1
    shift
    unshare --mount --pid --fork --kill-child sh -c \
        'root=$1; shift; mount -t proc proc "$root/proc" && exec chroot "$root" "$@"' sh "$root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

unpack() {
    mkdir -p "$2/build"
    tar -xf "$chroots/$1.tar" -C "$2"
    cp /etc/resolv.conf "$2/etc/resolv.conf"
}

build_in() {
    unpack "$suite-build" "$work/build"
    cp "$tarball" "$work/build/build/"
    inside "$work/build" sh -euc "cd /build && tar -xf *.tar.xz && cd cairn-* && dpkg-buildpackage -b -us -uc"
    inside "$work/build" sh -euc "cd /build && lintian --allow-root --fail-on error,warning --pedantic *.changes"
    rm -rf "$packages"
    mkdir -p "$packages"
    cp "$work/build/build/"*.deb "$packages/"
}

use_in() {
    unpack "$suite" "$work/bare"
    cp "$packages"/*.deb dev/deb-use.sh "$work/bare/build/"
    inside "$work/bare" sh -eu /build/deb-use.sh "$version"
}

# One suite, in a shell of its own.
try_suite() {
    set -eux
    build_in
    use_in
}

version=$(dev/commit.sh --version)
[ "$(id -u)" -eq 0 ] || { echo "skipped: chroots need root"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "skipped: mmdebstrap is not installed"; exit 77; }
tarball=$(dev/tarball.sh build/dist)
for suite in ${*:-bookworm trixie}; do
    if ! make_chroot "$suite" "$suite" "" || ! make_chroot "$suite" "$suite-build" "build-essential,$tools,$(build_packages)"; then
        skip "$suite" "mmdebstrap cannot make it from $(mirror): $(grep -h '^E: ' "$chroots/$suite"*.log | head -n 1)"
        continue
    fi
    work=$(mktemp -d)
    packages=build/deb/$suite
    mkdir -p "$packages"
    log=$packages.log
    # Not in the condition of an if: there a shell goes on after what fails.
    (try_suite) >"$log" 2>&1 & 
    if wait $!; then
        echo "$suite: built, installed, used, purged: $(ls "$packages" | paste -sd' ')"
        passed=$((passed + 1))
    else
        echo "$suite: FAILED; the end of $log:"
        tail -n 30 "$log"
        failed=$((failed + 1))
    fi
    rm -rf "$work"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
