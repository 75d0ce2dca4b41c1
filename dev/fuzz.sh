#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer for some seconds: dev/fuzz.sh DIRECTORY SECONDS. What is found stays in
# DIRECTORY/found-NAME-*; new interesting inputs are kept in DIRECTORY/corpus/NAME. The inputs that
# are committed, tests/fuzz/corpus/NAME, start each run.
set -eu
directory=$1
seconds=$2
count=0
for fuzzer in "$directory"/*_fuzz; do
    [ -x "$fuzzer" ] || continue
    name=$(basename "$fuzzer" _fuzz)
    grown=$directory/corpus/$name
    mkdir -p "$grown"
    seeds=tests/fuzz/corpus/$name
    [ -d "$seeds" ] || seeds=
    # shellcheck disable=SC2086
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$directory/found-$name-" "$grown" $seeds
    count=$((count + 1))
done
if [ "$count" -eq 0 ]; then
    echo "fuzz: no fuzzer was built" >&2
    exit 1
fi
