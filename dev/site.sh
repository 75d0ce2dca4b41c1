#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the documentation's site: dev/site.sh BUILD [OUTPUT], by default BUILD/site. Status 77: npm cannot fetch the
# packages that site/package-lock.json names. They are fetched once for a lock file.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1/site-work"
work=$(cd "$1/site-work" && pwd)
output=${2:-$1/site}
mkdir -p "$output"
output=$(cd "$output" && pwd)
cp -R "$top/site/." "$work"
cd "$work"
if ! cmp -s package-lock.json installed; then
    rm -rf node_modules
    npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 || {
        cat npm.log >&2
        echo "site: npm cannot fetch what site/package-lock.json names" >&2
        exit 77
    }
    cp package-lock.json installed
fi
node build.mjs "$top" "$output"
echo "$output/index.html"
