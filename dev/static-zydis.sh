#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes Zydis' decoder as a static library, which Debian does not have: dev/static-zydis.sh CC OUT.a
# From the source package of the version whose headers are installed; apt checks its signature.
set -eu
CC=$1 OUT=$(realpath -m "$2")
PACKAGE=zydis
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=$(dpkg-query -W -f '${source:Version}' libzydis-dev)
mkdir -p "$work/lists/partial" "$work/source" "$(dirname "$OUT")"
# This machine's own sources, as sources of source packages.
cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -n 's/^deb\(-src\)\{0,1\} /deb-src /p' >"$work/sources.list"
for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] && sed 's/^Types:.*/Types: deb-src/; s/^Architectures:.*//' "$file" \
        >"$work/$(basename "$file")"
done
apt="-o Dir::Etc::SourceList=$work/sources.list -o Dir::Etc::SourceParts=$work -o Dir::State::Lists=$work/lists"
# shellcheck disable=SC2086
apt-get $apt -qq update >/dev/null 2>"$work/log" || true # other archives there may be out of reach
cd "$work/source"
# shellcheck disable=SC2086
apt-get $apt -qq --download-only source "$PACKAGE=$version" >>"$work/log" 2>&1 || {
    cat "$work/log" >&2
    echo "dev/static-zydis.sh: no source package $PACKAGE $version" >&2
    exit 1
}
tar -xf ./*.orig.tar.* --strip-components=1
# The decoder asks nothing of Zycore but its headers.
for file in Decoder DecoderData SharedData Register Utils; do
    $CC -O2 -ffile-prefix-map="$PWD=zydis" -Iinclude -Isrc -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -c "src/$file.c" -o "$file.o"
done
rm -f "$OUT"
ar crsD "$OUT" ./*.o
cp LICENSE "${OUT%.a}.LICENSE"
