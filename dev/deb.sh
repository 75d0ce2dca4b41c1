#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages of DIRECTORY/cairn-VERSION.tar.xz, made for the Debian that this runs on, into DIRECTORY:
# dev/deb.sh DIRECTORY. Out of the tarball, not of this tree: what is packed is what is released.
set -eu
place=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=$(dev/commit.sh --version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$place/cairn-$version.tar.xz" -C "$work"
log=$place/../deb.log
if ! (cd "$work/cairn-$version" && dpkg-buildpackage -b -us -uc) >"$log" 2>&1; then
    tail -40 "$log" >&2
    exit 1
fi
for package in "$work"/*.deb "$work"/*.buildinfo "$work"/*.changes; do
    mv -f "$package" "$place/"
    echo "$place/${package##*/}"
done
dev/checksums.sh "$place"
