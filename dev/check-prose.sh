#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts comments and sentences of comments that open with a word after which a reader has to wait for the subject.
# Fails if a count is above that in dev/prose.tsv.
#     dev/check-prose.sh                compares
#     dev/check-prose.sh --list FOLDER  prints those that are there, `FILE:LINE: KIND: TEXT`
#     dev/check-prose.sh --renew        writes dev/prose.tsv anew, after counts have fallen
# A row of dev/prose.tsv is folder, kind and count. Kinds: `question` opens with What, Whether, Where, How, Which, Who
# or When, `fronted` with Of or Without; `comment` is the first sentence of a comment, `sentence` a further one.
set -eu
cd "$(dirname "$0")/.."
folders="tool runtime"
counts=dev/prose.tsv
hint='begin with the verb or with the thing itself (CONTRIBUTING.md, Style)'

# Consecutive lines of // are one comment, and so is one behind code with those below it.
list() {
    find "$1" -name '*.[ch]' | sort | tr '\n' '\0' | xargs -0 awk '
        function note(place, text) {
            if (text ~ /^(What|Whether|Where|How|Which|Who|When)[^A-Za-z]/) kind = "question"
            else if (text ~ /^(Of|Without)[^A-Za-z]/) kind = "fronted"
            else return
            print FILENAME ":" FNR ": " kind " " place ": " text
        }
        function in_text(code) { return gsub(/"/, "\"", code) % 2 }
        FNR == 1 { before = "" }
        {
            text = ""
            is_whole_line = match($0, /^ *\/\/ ?/)
            if (is_whole_line) text = substr($0, RLENGTH + 1) " "
            else if (match($0, / \/\/ /) && !in_text(substr($0, 1, RSTART))) text = substr($0, RSTART + 4) " "
            if (text ~ /^SPDX/) text = ""
            if (text != "" && (before == "" || !is_whole_line)) note("comment", text)
            else if (text != "" && before ~ /^$|[.] $|^ $/) note("sentence", text)
            rest = text
            while (match(rest, /[.] [A-Z]/)) {
                rest = substr(rest, RSTART + 2)
                note("sentence", rest)
            }
            before = text
        }'
}

count_all() {
    for folder in $folders; do
        list "$folder" | awk -F ': ' -v folder="$folder" '
            { count[$2]++ }
            END {
                split("question comment,question sentence,fronted comment,fronted sentence", kinds, ",")
                for (i = 1; i <= 4; i++) printf "%s\t%s\t%d\n", folder, kinds[i], count[kinds[i]]
            }'
    done
}

# new_since COMMIT FOLDER: the texts that the folder did not have at that commit.
new_since() {
    git archive "$1" "$2" 2>/dev/null | tar -x -C "$work" || return 0
    (cd "$work" && list "$2") | sed 's/:[0-9]*:/:/' | sort >"$work/old"
    list "$2" | sed 's/:[0-9]*:/:/' | sort | comm -13 "$work/old" -
}

case ${1:-} in
--list)
    list "$2"
    exit 0
    ;;
--renew)
    count_all >$counts.new
    mv $counts.new $counts
    exit 0
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count_all >"$work/counts"
awk -F '\t' 'NR == FNR { most[$1, $2] = $3; next }
    $3 > most[$1, $2] { printf "%s\t%s\t%d\t%d\n", $1, $2, $3, most[$1, $2] }' $counts "$work/counts" >"$work/rises"
[ -s "$work/rises" ] || exit 0
committed=$(git log -1 --format=%H -- $counts 2>/dev/null || true)
while IFS='	' read -r folder kind is most; do
    echo "$folder: $is of the kind \`$kind\`, at most $most ($counts): $hint"
    [ -z "$committed" ] || new_since "$committed" "$folder" | grep -F ": $kind: " || true
done <"$work/rises"
exit 1
