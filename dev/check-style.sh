#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What of the code's style a machine can see: licence line first, length of files and functions,
# nothing left to do, formatting. `--sources` lists the C files instead. `--since STAMP`: of files no newer than STAMP the
# formatting is known to be right; STAMP is renewed where all is.
set -eu
cd "$(dirname "$0")/.."
FILE_LINES_MAX=800
TOOL_LINES_MAX=500
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

stamp=
if [ "${1:-}" = --since ]; then
    stamp=$2
fi
problems=$(mktemp)
trap 'rm -f "$problems"' EXIT

# The first pass looks at every file, the second one at C: clang-format puts a function's first line at
# column 0 and its closing brace alone at column 0.
all_sources | tr '\n' '\0' | xargs -0 awk -v most_lines="$FILE_LINES_MAX" -v tool_lines="$TOOL_LINES_MAX" '
    function end_file() {
        most = file ~ /^\.\/tool\// ? tool_lines : most_lines
        if (file && !has_licence) print file ":1: no SPDX line"
        if (lines > most) print file ": " lines " lines, at most " most
    }
    FNR == 1 { end_file(); file = FILENAME; has_licence = 0 }
    FNR <= 2 && /SPDX-License-Identifier: Apache-2\.0/ { has_licence = 1 }
    /(^|[^A-Za-z0-9_])(TO''DO|FIX''ME|XX''X)([^A-Za-z0-9_]|$)/ { print file ":" FNR ": unfinished work" }
    { lines = FNR }
    END { end_file() }' >>"$problems"

c_sources | tr '\n' '\0' | xargs -0 awk -v most="$FUNCTION_LINES_MAX" '
    FNR == 1 { inside = 0; head = 0 }
    /^[A-Za-z_].*[^;]$/ && !/^(struct|enum|union|typedef|#|static const)/ { head = FNR }
    /^[A-Za-z_].*\{$/ && /\(/ { start = head ? head : FNR; inside = 1 }
    /^    +.*\) \{$/ && !inside && head { start = head; inside = 1 }
    /^\}$/ {
        if (inside && FNR - start + 1 > most)
            print FILENAME ":" start ": function of " FNR - start + 1 " lines, at most " most
        inside = 0; head = 0
    }' >>"$problems"

own_files \( -name '*.py' -o -name '*.sh' \) | while IFS= read -r file; do
    read -r first <"$file" || first=
    is_program=no is_executable=no
    case $first in '#!'*) is_program=yes ;; esac
    if [ -x "$file" ]; then is_executable=yes; fi
    [ $is_program = $is_executable ] || echo "$file: a script is executable (git add --chmod=+x), and starts with #!"
done >>"$problems"

# What a build left behind is no source.
git ls-files -z 2>/dev/null |
    xargs -r -0 sh -c 'find "$@" -maxdepth 0 -size +1024k -printf "%p: more than 1 MiB: no source\n" 2>/dev/null' sh >>"$problems" || true

started=$(date +@%s)
if [ -f "$stamp" ] && [ "$stamp" -nt .clang-format ] && [ "$stamp" -nt "$(command -v clang-format)" ]; then
    own_files \( -name '*.c' -o -name '*.h' -o -name '*.cc' \) -newer "$stamp"
else
    c_sources
fi | tr '\n' '\0' | xargs -r -0 -n 40 -P "$(nproc)" clang-format --dry-run -Werror >>"$problems" 2>&1 || true

if [ -s "$problems" ]; then
    cat "$problems"
    exit 1
fi
[ -z "$stamp" ] || touch -d "$started" "$stamp"
