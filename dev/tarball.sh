#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The sources of the commit as DIRECTORY/cairn-VERSION.tar.xz, with SHA256SUMS of all that lies there:
# dev/tarball.sh DIRECTORY
# In a repository what is committed, else (in an unpacked tarball) all files but build/. Order, owners, modes
# and times are fixed, so the same commit gives the same file, also out of its own tarball. TARBALL_LEVEL is xz's: a test
# of the rest takes the fastest.
set -eu
version=$("$(dirname "$0")/commit.sh" --version)
mkdir -p "$1"
place=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
name=cairn-$version
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/$name"

if [ -e .git ]; then
    ask_git() { git -c safe.directory="$PWD" -c core.fsmonitor=false --no-optional-locks "$@"; }
    if ! ask_git diff --quiet HEAD; then
        echo "dev/tarball.sh: there are changes that are in no commit; commit them or put them aside" >&2
        exit 1
    fi
    ask_git archive --format=tar HEAD | tar -x -C "$stage/$name"
else
    tar -c --exclude=./build . | tar -x -C "$stage/$name"
fi
seconds=$(env -u SOURCE_DATE_EPOCH dev/commit.sh --seconds)
tar -C "$stage" -c --format=gnu --sort=name --mtime="@${seconds:-0}" --owner=0 --group=0 --numeric-owner \
    --mode='u+rw,go+r,go-w,a-s,a+X' "$name" | xz -T1 "-${TARBALL_LEVEL:-6}" >"$place/$name.tar.xz.new"
mv -f "$place/$name.tar.xz.new" "$place/$name.tar.xz"
dev/checksums.sh "$place"
echo "$place/$name.tar.xz"
