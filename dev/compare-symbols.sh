#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares tool/symbol with llvm-symbolizer, and on some of them with addr2line, on random addresses of a
# program's code.
#   dev/compare-symbols.sh BINARY [COUNT] [DEBUG_FILE]
# Prints how many addresses got the same frames (function, file, line, inlining), times and memory, and
# the first differences. Names are compared in the readable form. For the outermost function the
# other tool takes the name of the symbol table, this one mostly that of the debug information;
# both count as the same when they stand at one address in the symbol table (malloc and
# __libc_malloc), or when the other tool gives ours once it is told to take the debug information's
# (--functions=short). Functions without a linkage name have a short name there and a qualified one
# here: the same too. So are closures, named by place here and by number there.
# DEBUG_FILE is given to the other tool when it would not find it by itself. SYMBOLIZE names the
# built tests/tools/symbolize; without it, it is built into build/.
set -eu
binary=${1:?use: dev/compare-symbols.sh BINARY [COUNT] [DEBUG_FILE]}
count=${2:-20000}
other_file=${3:-$1}
root=$(cd "$(dirname "$0")/.." && pwd)
symbolize=${SYMBOLIZE:-$root/build/tests/symbolize}
if [ -z "${SYMBOLIZE:-}" ]; then
    mkdir -p "$root/build/tests"
    (cd "$root" && ${CC:-gcc} -std=gnu17 -D_GNU_SOURCE -O2 -g -I. tests/tools/symbolize.c \
        tool/symbol/*.c tool/base/error.c -o "$symbolize" -ldw -lelf -liberty -llzma -lz)
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 "$root/dev/compare-symbols.py" "$binary" "$count" "$other_file" "$symbolize" "$scratch"
