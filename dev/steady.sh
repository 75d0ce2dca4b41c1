#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests again and again: dev/steady.sh 'TEST-PART ...' TIMES [BUILD]. Each runs so often on the machine as it
# is, beside LOOPS (4) busy loops a processor, and on one processor. Prints how often each failed; ends with status 1
# if one did. What is to be tested has been built. Logs of each run: BUILD/steady/CIRCUMSTANCE/NUMBER.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { echo "usage: dev/steady.sh 'TEST-PART ...' TIMES [BUILD]" >&2; exit 2; }
tests=$1
times=$2
build=${3:-build}
loops=${LOOPS:-4}
work=$build/steady
rm -rf "$work"
mkdir -p "$work"
hogs=
rest() {
    for pid in $hogs; do kill "$pid" 2>/dev/null || true; done
    hogs=
}
trap rest EXIT
trap 'exit 130' INT TERM

# repeat CIRCUMSTANCE COMMAND...: the tests below that command.
repeat() {
    circumstance=$1
    shift
    for number in $(seq "$times"); do
        logs=$work/$circumstance/$number
        mkdir -p "$logs"
        # shellcheck disable=SC2086
        "$@" dev/run-tests.py --build-dir "$build" --no-build --strict --jobs 1 --logs "$logs" $tests >"$logs/out" 2>&1 || true
        awk -v where="$circumstance" '/^(ok|FAIL|skipped) / { print where, $2, ($1 == "FAIL") }' "$logs/out" >>"$work/results"
    done
}

repeat quiet env
for _ in $(seq $((loops * $(nproc)))); do
    sh -c 'while :; do :; done' &
    hogs="$hogs $!"
done
repeat busy env
rest
repeat one taskset -c 0

awk '
    { runs[$2, $1]++; failed[$2, $1] += $3; names[$2]; all += $3 }
    function cell(name, where) { return failed[name, where] + 0 "/" runs[name, where] + 0 }
    END {
        for (name in names) printf "%-44s quiet %s  busy %s  one processor %s\n", name, cell(name, "quiet"), cell(name, "busy"), cell(name, "one")
        exit all > 0
    }' "$work/results" | sort
! grep -q ' 1$' "$work/results"
