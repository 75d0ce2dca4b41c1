#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records examples/server.cc, built with -g, in a scratch directory and prints the report: dev/try.sh, or
# PROG='python3 -c "..."' dev/try.sh for a command of one's own (quoted as for a shell).
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/cairn-try.XXXXXX")

if [ -n "${PROG:-}" ]; then
    eval "set -- $PROG"
else
    ${CXX:-g++} -O2 -g -o "$scratch/server" "$top/examples/server.cc"
    set -- "$scratch/server"
fi
recording=$scratch/$(basename "$1").cairn
status=0
"$top/build/cairn" run -o "$recording" -- "$@" || status=$?
if [ -e "$recording" ]; then
    echo
    "$top/build/cairn" report --view tree --print "$recording"
fi
[ "$status" -eq 0 ] || echo "(the program ended with status $status)"
