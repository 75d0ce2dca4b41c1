#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether programs that were built with the committed interface go on with this one:
# dev/abi.sh [INCLUDE-DIRECTORY] compares the public headers (tests/abi/headers.c makes a library of them) with
# tests/abi/cairn-ARCH.abi by abidiff; dev/abi.sh --renew writes that file anew.
set -eu
cd "$(dirname "$0")/.."
dump=tests/abi/cairn-$(uname -m).abi
include=include
case "${1:-}" in
'' | --renew) ;;
*) include=$1 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${CC:-cc} -std=gnu17 -g -O0 -fPIC -shared -I"$include" -o "$work/libcairn-headers.so" tests/abi/headers.c
if [ "${1:-}" = --renew ]; then
    abidw --no-show-locs --no-corpus-path --no-comp-dir-path --type-id-style hash "$work/libcairn-headers.so" >"$dump"
    exit 0
fi
if [ ! -e "$dump" ]; then
    echo "skipped: there is no $dump to compare with"
    exit 77
fi
if ! abidiff --no-show-locs "$dump" "$work/libcairn-headers.so"; then
    echo "The interface differs from $dump. What is appended to cairn_api_table, or is new: dev/abi.sh --renew." >&2
    echo "Anything else breaks programs that are built already (CONTRIBUTING.md)." >&2
    exit 1
fi
