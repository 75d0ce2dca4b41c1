#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Of which commit these sources are, and when they were made: dev/commit.sh prints `COMMIT DATE`,
# dev/commit.sh --seconds the date in seconds since 1970, dev/commit.sh --version the version.
# In a repository git knows; in what `git archive` made, dev/commit.txt has it (.gitattributes). A commit
# is followed by +changes where sources of the programs differ from it. SOURCE_DATE_EPOCH is the date,
# if it is set. Where nobody knows: `unknown unknown`, and no seconds.
set -eu
cd "$(dirname "$0")/.."
SOURCES="Makefile format include runtime tool bindings web/report.html"

# Whoever owns the repository (a build may be root's, in a user's tree): only its state is read.
ask_git() { git -c safe.directory="$PWD" -c core.fsmonitor=false --no-optional-locks "$@" 2>/dev/null; }

if [ "${1:-}" = --version ]; then
    exec sed -n 's/^.define CAIRN_TOOL_VERSION "\(.*\)"/\1/p' tool/base/version.h
fi

read -r commit seconds <dev/commit.txt
case $commit in
'$Format'*)
    commit=unknown seconds=
    if [ -e .git ] && found=$(ask_git log -1 --format='%H %ct'); then
        commit=${found% *} seconds=${found#* }
    fi
    ;;
esac
seconds=${SOURCE_DATE_EPOCH:-$seconds}
if [ "${1:-}" = --seconds ]; then
    echo "$seconds"
    exit 0
fi

short=$(printf %.12s "$commit")
# shellcheck disable=SC2086
if [ "$commit" != unknown ] && [ -e .git ] && ! ask_git diff --quiet HEAD -- $SOURCES; then
    short=$short+changes
fi
day=unknown
[ -z "$seconds" ] || day=$(date -u -d "@$seconds" +%Y-%m-%d)
echo "$short $day"
