#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks for common misspellings, by codespell, in sources, scripts and documentation. Words that are right, though
# codespell doubts them, are in dev/spelling.allow, one a line in lower case.
set -eu
cd "$(dirname "$0")/.."
command -v codespell >/dev/null || { echo "skipped: codespell is not installed (dev/deps.sh check installs it)"; exit 77; }

# In a text of C or Python the letter behind \ belongs to the escape.
escape='\\[a-z]'
# Not texts of other programs: recordings, dumps, what fuzzers found, results of benchmarks.
find . \( -path ./build -o -path ./.git -o -name node_modules -o -path ./bench/results -o -path ./tests/fuzz/corpus \
    -o -path ./tests/abi -o -path ./tests/compat \) -prune -o -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.hpp' -o -name '*.def' -o -name '*.py' -o -name '*.sh' \
    -o -name '*.mk' -o -name Makefile -o -name '*.md' -o -name '*.ts' -o -name '*.mjs' -o -name '*.rs' -o -name '*.yml' \
    -o -name '*.toml' -o -name '*.allow' \) -print | sort | tr '\n' '\0' |
    xargs -0 codespell --ignore-words dev/spelling.allow --ignore-regex "$escape"
