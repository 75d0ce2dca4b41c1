#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What action.yml runs: fetches the release's one file, records the tests into the history, and says
# what moved: in the job's summary, as annotations, and as a comment of the pull request. Everything
# comes in by the environment: INPUT_... of the action, GITHUB_... and RUNNER_TEMP of the runner.
set -eu
MARKER='<!-- cairn: memory over commits -->'
work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/cairn.XXXXXX")
markdown=$work/memory.md
sarif=$work/memory.sarif

fail() {
    echo "::error title=cairn::$*"
    exit 1
}
warn() { echo "::warning title=cairn::$*"; }

# The tool of a release, by its checksum.
fetch_tool() {
    release=${INPUT_RELEASE:-}
    if [ -z "$release" ]; then
        release=$GITHUB_SERVER_URL/$ACTION_REPOSITORY/releases/download/$ACTION_REF
    fi
    case $(uname -m) in
    x86_64 | aarch64) machine=$(uname -m) ;;
    arm64) machine=aarch64 ;;
    *) fail "there is no release for $(uname -m)" ;;
    esac
    get() { curl -fsSL --retry 3 --max-filesize 200000000 -o "$work/$1" "$release/$1" || fail "$release/$1 cannot be fetched"; }
    get SHA256SUMS
    name=$(sed -n "s/^[0-9a-f]\{64\}  \(cairn-[0-9A-Za-z.~+]*-linux-$machine\)\$/\1/p" "$work/SHA256SUMS" | head -n 1)
    [ -n "$name" ] || fail "$release/SHA256SUMS names no file for $machine"
    get "$name"
    (cd "$work" && grep "  $name\$" SHA256SUMS | sha256sum -c --status) ||
        fail "$name is not what SHA256SUMS says"
    tool=$work/cairn
    mv "$work/$name" "$tool"
    chmod +x "$tool"
}

# A request to GitHub; the token is no argument, which other processes could read.
request() {
    printf 'header = "Authorization: Bearer %s"\n' "$INPUT_TOKEN" |
        curl -fsS --config - -H 'Accept: application/vnd.github+json' "$@"
}

pull_request() {
    [ -f "${GITHUB_EVENT_PATH:-}" ] || return 0
    jq -r '.pull_request.number // empty' "$GITHUB_EVENT_PATH"
}

# The comment that an earlier run of this job wrote, if there is one.
find_comment() {
    page=1
    while [ $page -le 10 ]; do
        request "$comments?per_page=100&page=$page" >"$work/page.json" || return 1
        jq -r --arg marker "$MARKER" '[.[] | select(.body | startswith($marker)) | .id][0] // empty' "$work/page.json" >"$work/id"
        [ ! -s "$work/id" ] || break
        [ "$(jq length "$work/page.json")" -eq 100 ] || break
        page=$((page + 1))
    done
}

comment() {
    comments=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$1/comments
    jq -n --arg marker "$MARKER" --rawfile text "$markdown" \
        '{body: ($marker + "\n### Memory over commits\n\n" + $text)}' >"$work/body.json"
    find_comment || return 1
    if [ -s "$work/id" ]; then
        request -X PATCH --data-binary "@$work/body.json" \
            "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/comments/$(cat "$work/id")" >/dev/null
    else
        request -X POST --data-binary "@$work/body.json" "$comments" >/dev/null
    fi
}

[ -n "${INPUT_COMMAND:-}" ] || fail "the action needs a command"
fetch_tool
if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = true ]; then
    warn "a shallow clone: earlier commits are not known (actions/checkout with fetch-depth: 0)"
fi
series=${INPUT_SERIES:-cairn-history.db}
status=0
# both are lines for the shell
eval "set -- $INPUT_COMMAND"
eval "\"\$tool\" check --series \"\$series\" ${INPUT_ADAPTER:+--adapter \"\$INPUT_ADAPTER\"} --markdown \"\$markdown\" \
    --sarif \"\$sarif\" --annotations ${INPUT_OPTIONS:-} -- \"\$@\"" || status=$?
if [ $status -eq 0 ] && [ "${INPUT_FAIL_ON_RISE:-false}" = true ]; then
    "$tool" history "$series" --error-exitcode 3 >/dev/null || status=$?
    [ $status -ne 3 ] || echo "::error title=cairn::figures rose since the last commit that was recorded"
fi
if [ -f "$markdown" ]; then
    [ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$markdown" >>"$GITHUB_STEP_SUMMARY"
    number=$(pull_request)
    if [ -n "$number" ] && [ "${INPUT_COMMENT:-true}" = true ] && [ -n "${INPUT_TOKEN:-}" ]; then
        comment "$number" || warn "the comment could not be written (permissions: pull-requests: write)"
    fi
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    moved=$(grep -c '^| moved ' "$markdown" 2>/dev/null || true)
    printf 'markdown=%s\nsarif=%s\nmoved=%s\n' "$markdown" "$sarif" "${moved:-0}" >>"$GITHUB_OUTPUT"
fi
exit $status
