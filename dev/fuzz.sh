#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzzer for some seconds: dev/fuzz.sh BUILD SECONDS [NAME]. Inputs that were found bad stay in
# BUILD/fuzz/found-NAME-*, interesting ones in BUILD/fuzz/corpus/NAME for the next run. A run starts from
# those, from tests/fuzz/corpus/NAME, and from what the program BUILD/tests/NAME_seeds writes.
set -eu
build=$1
seconds=$2
only=${3:-}
count=0
for fuzzer in "$build"/fuzz/*_fuzz; do
    name=$(basename "$fuzzer" _fuzz)
    [ -x "$fuzzer" ] && [ "${only:-$name}" = "$name" ] || continue
    grown=$build/fuzz/corpus/$name
    seeds=$build/fuzz/seeds/$name
    mkdir -p "$grown" "$seeds"
    if [ -x "$build/tests/${name}_seeds" ]; then "$build/tests/${name}_seeds" "$seeds"; fi
    if [ -d "tests/fuzz/corpus/$name" ]; then cp "tests/fuzz/corpus/$name"/* "$seeds"; fi
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
        -print_final_stats=1 -artifact_prefix="$build/fuzz/found-$name-" "$grown" "$seeds"
    count=$((count + 1))
done
if [ "$count" -eq 0 ]; then
    echo "fuzz: no fuzzer was built" >&2
    exit 1
fi
