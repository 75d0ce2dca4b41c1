#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names that the runtime libraries export, a line each: the wrapped functions, and what dev/runtime-symbols.allow
# adds to them. `cxx`: libcairn-cxx.so, which wraps C++'s operators too. `bare`: libcairn-bare.so, which the tool tells of
# the program. `--map`: as a version script.
# `heap`: CAIRN_HEAP_FUNCTIONS alone, which every system has.
set -eu
export LC_ALL=C  # elsewhere an i may be no letter
cd "$(dirname "$0")/.."
heap_functions() { sed -n 's/^ *ROW(use, [^,]*, *\([A-Za-z_0-9]*\), (.*/\1/p'; }
names() {
    awk '$1 == "export" { print $2 }' dev/runtime-symbols.allow
    heap_functions <format/heap_functions.h
    sed -n 's/^HOOK\(_LATE\)\{0,1\}([^,]*, *\([A-Za-z_0-9]*\),.*/\2/p' runtime/hook/hooks.def
    [ "${1:-}" != bare ] || printf '%s\n' cairn_bare cairn_bare_begin cairn_bare_execve cairn_bare_found cairn_bare_given cairn_bare_spawn \
        cairn_bare_spawnp
    [ "${1:-}" != cxx ] || sed -nE 's/^(NEW|DELETE)\(([^,]*),.*/\2/p' runtime/preload/operators.def
}
if [ "${1:-}" = heap ]; then
    sed '/FUNCTIONS_LATE(ROW/,$d' format/heap_functions.h | heap_functions
elif [ "${1:-}" = --map ]; then
    shift
    echo '{ global:'
    names "$@" | sed 's/$/;/'
    echo 'local: *; };'
else
    names "$@"
fi
