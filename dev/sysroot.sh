#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Another processor's packages: dev/sysroot.sh aarch64 DIR [PACKAGE...]; else headers and static libraries
# Debian's, with what they depend on, of this machine's suite, taken from its own sources and unpacked into DIR; nothing
# is installed. Not of Debian: put the same libraries into DIR another way.
set -eu
PROCESSOR=$1 DIR=$(realpath -m "$2")
PACKAGES="libc6-dev libgcc-12-dev libstdc++-12-dev libdw-dev libelf-dev libiberty-dev libzstd-dev liblz4-dev
    liblzma-dev zlib1g-dev libbz2-dev libjansson-dev libpcre2-dev libncurses-dev libsqlite3-dev libmicrohttpd-dev
    uthash-dev"
case "$PROCESSOR" in
aarch64) debian=arm64 ;;
*)
    echo "usage: dev/sysroot.sh aarch64 DIR [PACKAGE...]" >&2
    exit 2
    ;;
esac
shift 2
[ $# -eq 0 ] || PACKAGES="$*"

rm -rf "$DIR" "$DIR.new"
mkdir -p "$DIR.new/apt/lists/partial" "$DIR.new/apt/archives/partial" "$DIR.new/apt/sources"
cd "$DIR.new/apt"
: >status
[ ! -f /etc/apt/sources.list ] || cp /etc/apt/sources.list sources.list
[ -f sources.list ] || : >sources.list
# Other archives may not have this processor.
for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$file" ] || ! grep -q debian "$file" || grep -v '^Architectures:' "$file" >"sources/$(basename "$file")"
done
apt() {
    apt-get -qq -o APT::Architecture="$debian" -o APT::Architectures="$debian" -o Dir::Etc::SourceList="$PWD/sources.list" \
        -o Dir::Etc::SourceParts="$PWD/sources" -o Dir::State::Lists="$PWD/lists" -o Dir::State::status="$PWD/status" \
        -o Dir::Cache="$PWD" -o Dir::Cache::archives="$PWD/archives" "$@"
}
apt update >log 2>&1 || true
# shellcheck disable=SC2086
apt --yes --download-only --no-install-recommends install $PACKAGES >>log 2>&1 || {
    cat log >&2
    exit 1
}
for package in archives/*.deb; do dpkg-deb -x "$package" "$DIR.new"; done
cd /
rm -rf "$DIR.new/apt"
mv "$DIR.new" "$DIR"
