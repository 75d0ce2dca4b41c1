#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each target under AFL++ for some seconds: dev/fuzz-afl.sh BUILD SECONDS [NAME]. It starts from what
# dev/fuzz-seeds.sh writes and goes on from the run before; findings stay in
# BUILD/afl/out-NAME/default/crashes and hangs, and are the end with status 1.
set -eu
build=$1
seconds=$2
only=${3:-}
command -v afl-fuzz >/dev/null || {
    echo "fuzz-afl: afl-fuzz is not installed (Debian: afl++)" >&2
    exit 1
}
# A machine that others own: its core pattern, its processors and its clock stay as they are.
export AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_AFFINITY=1 AFL_NO_UI=1
export AFL_AUTORESUME=1 AFL_QUIET=1
export ASAN_OPTIONS=abort_on_error=1:symbolize=0:detect_leaks=0:quarantine_size_mb=4:malloc_context_size=4
export UBSAN_OPTIONS=abort_on_error=1:symbolize=0

figure() { sed -n "s/^$2 *: *//p" "$1/default/fuzzer_stats"; }

count=0
failures=0
for target in "$build"/afl/*_afl; do
    name=$(basename "$target" _afl)
    [ -x "$target" ] && [ "${only:-$name}" = "$name" ] || continue
    seeds=$build/afl/seeds-$name
    out=$build/afl/out-$name
    dev/fuzz-seeds.sh "$build" "$name" "$seeds"
    afl-fuzz -i "$seeds" -o "$out" -V "$seconds" -t 10000 -m none -- "$target" \
        >"$build/afl/$name.log" 2>&1 || {
        tail -20 "$build/afl/$name.log" >&2
        exit 1
    }
    echo "$name: $(figure "$out" execs_done) executions, $(figure "$out" execs_per_sec) a second," \
        "$(figure "$out" saved_crashes) crashes, $(figure "$out" saved_hangs) hangs"
    [ "$(figure "$out" saved_crashes)$(figure "$out" saved_hangs)" = 00 ] || failures=$((failures + 1))
    count=$((count + 1))
done
if [ "$count" -eq 0 ]; then
    echo "fuzz-afl: no target was built" >&2
    exit 1
fi
[ "$failures" -eq 0 ]
