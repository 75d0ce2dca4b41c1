#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the twins of a source of tests/truth: dev/build-twins.sh SOURCE DIRECTORY makes NAME-N-1, for which the claim is
# true, and NAME-N-0, for which it is false, for its Nth line of flags, from 0 on; and NAME-mended, where the source has
# that of the first. `first` behind them: of the first line alone.
set -eu
source=$1 directory=$2 which=${3:-all}
name=$(basename "${source%.*}")
case $source in
*.cc) compiler="${CXX:-c++} -std=c++17" ;;
*) compiler="${CC:-cc} -std=gnu17" ;;
esac
mkdir -p "$directory"
sed -n 's|^// flags: ||p' "$source" | {
    number=0
    while read -r flags; do
        for holds in 0 1; do
            # shellcheck disable=SC2086 # words, as they are written
            $compiler -D_GNU_SOURCE -Wall -Wextra -g -fno-builtin -fno-optimize-sibling-calls -DHOLDS=$holds $flags \
                -o "$directory/$name-$number-$holds" "$source" -pthread
        done
        if [ "$number" = 0 ] && grep -q MENDED "$source"; then
            # shellcheck disable=SC2086
            $compiler -D_GNU_SOURCE -Wall -Wextra -g -fno-builtin -fno-optimize-sibling-calls -DHOLDS=1 -DMENDED=1 $flags \
                -o "$directory/$name-mended" "$source" -pthread
        fi
        number=$((number + 1))
        [ "$which" = all ] || break
    done
    test "$number" -gt 0
}
