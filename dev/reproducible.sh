#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether a release is the same wherever it is built: dev/reproducible.sh [WORK-DIRECTORY]
# The tarball of this commit is unpacked into two directories of different names and built in each with
# another umask, time zone, language, home and number of jobs. Tool, libraries, the tool as one file, the tarball
# of the tarball and packages of all kinds have to be equal byte for byte; diffoscope shows where they are not, if it is
# installed. What was built stays in WORK-DIRECTORY. Ends with `N equal, N different`.
set -eu
work=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/.."
top=$PWD
rm -rf "$work/one" "$work/another" "$work/dist"
mkdir -p "$work/one/home" "$work/another/home" "$work/dist"
version=$(dev/commit.sh --version)
"$top/dev/tarball.sh" "$work/dist"

# build PLACE JOBS UMASK VARIABLE=VALUE...
build() {
    place=$1 jobs=$2 mask=$3
    shift 3
    tar -xf "$work/dist/cairn-$version.tar.xz" -C "$place"
    (
        cd "$place/cairn-$version"
        umask "$mask"
        rebuild() { env -u CCACHE_DIR -u SOURCE_DATE_EPOCH CCACHE_DISABLE=1 HOME="$place/home" "$@"; }
        rebuild "$@" dev/tarball.sh "$place/dist"
        rebuild "$@" make -s -j"$jobs" RELEASE=1 WERROR= all
        rebuild "$@" make -s -j"$jobs" RELEASE=1 WERROR= dist ||
            echo "skipped: the tool as one file, which cannot be built here"
        [ ! -e "build/dist/cairn-$version-linux-$(uname -m)" ] || rebuild "$@" make -s RELEASE=1 BUILT=1 packed
        if command -v dpkg-buildpackage >/dev/null; then
            rebuild "$@" TMPDIR="$place/home" DEB_BUILD_OPTIONS="parallel=$jobs" dev/deb.sh "$place/dist"
        else
            echo "skipped: Debian packages, since dpkg-buildpackage is not installed"
        fi
    ) >"$place/log" 2>&1 || { tail -30 "$place/log"; exit 1; }
    grep '^skipped: ' "$place/log" || true
}
build "$work/one" 2 022 TZ=UTC LC_ALL=C
build "$work/another" 3 077 TZ=Pacific/Kiritimati LC_ALL=C.UTF-8

equal=0 different=0
compare() {
    if cmp "$1" "$2"; then
        equal=$((equal + 1))
        return
    fi
    different=$((different + 1))
    command -v diffoscope >/dev/null && diffoscope --max-report-size 20000 "$1" "$2" || true
}
bare=$([ "$(uname -m)" = x86_64 ] && echo libcairn-bare.so || true)
for name in cairn libcairn.so libcairn-cxx.so libcairn-musl.so libcairn-torture.so $bare cairn-replay libcairn_stub.a libcairn_static.a libcairn_embed.a; do
    compare "$work/one/cairn-$version/build/$name" "$work/another/cairn-$version/build/$name"
done
one_file=cairn-$version/build/dist/cairn-$version-linux-$(uname -m)
if [ -e "$work/one/$one_file" ] || [ -e "$work/another/$one_file" ]; then
    compare "$work/one/$one_file" "$work/another/$one_file"
    for path in "$work/one/cairn-$version/build/dist/cairn"[-_]heap*; do
        compare "$path" "$work/another/cairn-$version/build/dist/${path##*/}"
    done
fi
for path in "$work/one/dist/"*.deb "$work/one/dist/"*.tar.xz; do
    compare "$path" "$work/another/dist/${path##*/}"
done
compare "$work/dist/cairn-$version.tar.xz" "$work/one/dist/cairn-$version.tar.xz"
echo "$equal equal, $different different"
[ "$different" -eq 0 ]
