#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that a step needs: dev/deps.sh build|try|check|long|bench|fuzz|coverage|dist|deb|
# deb-chroots|everywhere|machine|cgroup2.
# Already complete: silent. As root: installs what is missing. Otherwise: prints the one line that
# does it and ends with status 1. Where there is no dpkg it names the packages and goes on, since
# the same libraries may have come another way.
set -eu

BUILD="build-essential libdw-dev libelf-dev libiberty-dev libzstd-dev liblz4-dev liblzma-dev libbz2-dev zlib1g-dev
    libjansson-dev libpcre2-dev libncurses-dev libsqlite3-dev libmicrohttpd-dev uthash-dev libzydis-dev"
TRY="$BUILD"
CHECK="$TRY sqlite3 libcmocka-dev clang clang-format clang-tidy python3 valgrind libc6-dbg
    binutils gdb procps perl libxml2-utils jq git redis-server nodejs libjemalloc2 libtcmalloc-minimal4
    libmimalloc2.0 postgresql nginx-light wrk apache2-utils curl imagemagick openssl cmake zstd xz-utils
    bc rsync tmux libpython3.11-testsuite libclang-rt-14-dev strace musl-tools gcc-multilib
    faketime eatmydata dwz util-linux libjemalloc-dev libgoogle-perftools-dev
    ncurses-term libmimalloc-dev pkg-config scdoc debuginfod golang-go cargo rustc graphviz chromium firefox-esr
    meson ninja-build python3-pytest python3-jsonschema libgtest-dev
    heaptrack bpftrace linux-perf qemu-user lld libc6-dev-arm64-cross libgcc-12-dev-arm64-cross
    libstdc++-12-dev-arm64-cross abigail-tools libasio-dev python3-greenlet libapr1-dev libglib2.0-dev
    librust-tokio-dev codespell php8.2-cli php8.2-fpm php8.2-opcache php8.2-xml ruby"
LONG="$CHECK libexpat1-dev libxml2-dev libbenchmark-dev rpm rpmlint pacman-package-manager umoci runc"
BENCH="$CHECK gawk google-perftools lua5.4"
FUZZ="$CHECK afl++"
COVERAGE="$CHECK llvm"
DEB="$BUILD debhelper dpkg-dev scdoc xz-utils"
DIST="$BUILD ncurses-bin ncurses-term python3"
CHROOTS="mmdebstrap python3 xz-utils"
MACHINE="$DIST clang lld llvm cpio qemu-system-arm"
CGROUP2="busybox-static qemu-system-x86"
EVERYWHERE="$DIST clang lld llvm mmdebstrap arch-test qemu-user-static"

case "${1:-}" in
build) wanted=$BUILD ;;
try) wanted=$TRY ;;
check) wanted=$CHECK ;;
long) wanted=$LONG ;;
bench) wanted=$BENCH ;;
fuzz) wanted=$FUZZ ;;
coverage) wanted=$COVERAGE ;;
deb) wanted=$DEB ;;
dist) wanted=$DIST ;;
deb-chroots) wanted=$CHROOTS ;;
everywhere) wanted=$EVERYWHERE ;;
machine) wanted=$MACHINE ;;
cgroup2) wanted=$CGROUP2 ;;
*)
    echo "usage: dev/deps.sh build|try|check|long|bench|fuzz|coverage|dist|deb|deb-chroots|everywhere|machine|cgroup2" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "cairn: not a Debian system; needed (Debian's names):" $wanted >&2
    exit 0
fi

# npm comes with Node.js where that is not Debian's, and cannot be installed beside it.
command -v npm >/dev/null 2>&1 || case "${1:-}" in build | try | deb*) ;; *) wanted="$wanted npm" ;; esac

# One question for all of them: a process for each would take seconds.
# shellcheck disable=SC2086
installed=" $(dpkg-query -W -f '${Package}/${db:Status-Status} ' $wanted 2>/dev/null || true)"
missing=
for package in $wanted; do
    case "$installed" in
    *" $package/installed "*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "cairn: missing packages; install them with:" >&2
    echo "sudo apt-get install -y --no-install-recommends$missing"
    exit 1
fi
echo "cairn: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
install_missing() { apt-get install -y -qq --no-install-recommends $missing >&2; }
# Package lists of a fresh container are empty, those of an old one are stale: renew, then retry.
install_missing 2>/dev/null || { apt-get update -qq >&2 && install_missing; }
