#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the tool makes of its own table of commands: completion for bash, zsh and fish, and,
# where scdoc is installed, the manual page, dated by SOURCE_DATE_EPOCH.
# dev/install-manual.sh CAIRN MANUALS BASH-COMPLETIONS ZSH-COMPLETIONS FISH-COMPLETIONS
set -eu
cairn=$1

install_completion() {
    mkdir -p "$2"
    "$cairn" help --completion "$1" >"$2/$3"
}
install_completion bash "$3" cairn
install_completion zsh "$4" _cairn
install_completion fish "$5" cairn.fish

if command -v scdoc >/dev/null 2>&1; then
    [ -n "${SOURCE_DATE_EPOCH:-}" ] || unset SOURCE_DATE_EPOCH
    mkdir -p "$2/man1"
    "$cairn" help --manual | scdoc >"$2/man1/cairn.1"
else
    echo "cairn: scdoc is not installed, so there is no manual page" >&2
fi
