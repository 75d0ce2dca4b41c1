#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long form of a test: dev/soak.sh BUILD EVENTS promises/soak|e2e/replay_order. 10^9 events need some
# minutes to an hour; the numbers it ends with are the result.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/cairn-soak.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
BUILD_DIR=$build SOURCE_DIR=$top PYTHONPATH=$top/tests/tools CAIRN_SOAK_EVENTS=$2 CAIRN_LOG_EVENTS=$2 \
    CAIRN_SOAK_SECONDS=$((2 * 3600)) PYTHONDONTWRITEBYTECODE=1 "$top/tests/$3.py"
