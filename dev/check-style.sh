#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What of the code's style a machine can see: licence line first, length of files and functions,
# nothing left to do, formatting. `--sources` lists the C files instead.
set -eu
cd "$(dirname "$0")/.."
FILE_LINES_MAX=800
FUNCTION_LINES_MAX=80

own_files() {
    find . \( -path ./build -o -path ./web/node_modules -o -path ./.git -o -path ./bench/results \) -prune -o -type f \
        "$@" -print | sort
}
c_sources() { own_files \( -name '*.c' -o -name '*.h' -o -name '*.cc' \); }
all_sources() {
    own_files \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.def' -o -name '*.py' \
        -o -name '*.sh' -o -name '*.map' -o -name '*.allow' -o -name Makefile -o -path './.ci/*' \)
}

if [ "${1:-}" = --sources ]; then
    c_sources
    exit 0
fi

problems=$(mktemp)
trap 'rm -f "$problems"' EXIT

for file in $(all_sources); do
    head -2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
        echo "$file:1: no SPDX line"
    lines=$(wc -l <"$file")
    [ "$lines" -le "$FILE_LINES_MAX" ] || echo "$file: $lines lines, at most $FILE_LINES_MAX"
    grep -nE '\b(TO''DO|FIX''ME|XX''X)\b' "$file" | sed "s|^\([0-9]*\):.*|$file:\1: unfinished work|"
done >>"$problems"

# clang-format puts a function's first line at column 0 and its closing brace alone at column 0.
for file in $(c_sources); do
    awk -v file="$file" -v most="$FUNCTION_LINES_MAX" '
        /^[A-Za-z_].*[^;]$/ && !/^(struct|enum|union|typedef|#|static const)/ { head = FNR; name = $0 }
        /^[A-Za-z_].*\{$/ && /\(/ { start = head ? head : FNR; inside = 1 }
        /^    +.*\) \{$/ && !inside && head { start = head; inside = 1 }
        /^\}$/ {
            if (inside && FNR - start + 1 > most)
                print file ":" start ": function of " FNR - start + 1 " lines, at most " most
            inside = 0; head = 0
        }' "$file"
done >>"$problems"

# shellcheck disable=SC2046
clang-format --dry-run -Werror $(c_sources) >>"$problems" 2>&1 || true

if [ -s "$problems" ]; then
    cat "$problems"
    exit 1
fi
