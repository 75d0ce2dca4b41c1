#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests with programs with the tool that has address and undefined sanitizers: dev/check-asan.sh BUILD [TEST-PART...]
# What is to be tested has been built (make check-asan). Fails if a test fails, or if a sanitizer reported anything in
# any process of the tool; reports are in BUILD/asan/reports.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
[ $# -gt 0 ] || set -- e2e/
reports=$build/asan/reports
rm -rf "$reports"
mkdir -p "$reports"
chmod 1777 "$reports"

# Left out: what measures the memory of the tool, of which the sanitizers take a multiple.
left_out="--except e2e/export_merged"
status=0
# shellcheck disable=SC2086
python3 dev/run-tests.py --no-build --build-dir "$build" --logs "$build/asan/test-logs" --tool "$build/asan/cairn" \
    $left_out "$@" || status=1
for report in "$reports"/*; do
    [ -e "$report" ] || break
    status=1
    echo "$report: $(grep -m 1 -h -e 'ERROR: ' -e 'runtime error: ' "$report")"
done
exit $status
