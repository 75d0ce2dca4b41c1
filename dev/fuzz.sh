#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzzer for some seconds: dev/fuzz.sh BUILD SECONDS [NAME]. Inputs that were found bad stay in
# BUILD/fuzz/found-NAME-*, interesting ones in BUILD/fuzz/corpus/NAME for the next run. A run starts from
# those and from what dev/fuzz-seeds.sh writes.
set -eu
build=$1
seconds=$2
only=${3:-}
# A few megabytes of freed memory watched, short stacks of allocations: most of the speed.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=4:malloc_context_size=4"
count=0
for fuzzer in "$build"/fuzz/*_fuzz; do
    name=$(basename "$fuzzer" _fuzz)
    [ -x "$fuzzer" ] && [ "${only:-$name}" = "$name" ] || continue
    grown=$build/fuzz/corpus/$name
    seeds=$build/fuzz/seeds/$name
    mkdir -p "$grown"
    dev/fuzz-seeds.sh "$build" "$name" "$seeds"
    case "$name" in
    cfi | symbol) most_bytes=16384 ;;
    core) most_bytes=614400 ;;
    heaps) most_bytes=131072 ;;
    history | static) most_bytes=65536 ;;
    *) most_bytes=4096 ;;
    esac
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len="$most_bytes" \
        -print_final_stats=1 -error_exitcode=70 -artifact_prefix="$build/fuzz/found-$name-" "$grown" "$seeds"
    count=$((count + 1))
done
if [ "$count" -eq 0 ]; then
    echo "fuzz: no fuzzer was built" >&2
    exit 1
fi
