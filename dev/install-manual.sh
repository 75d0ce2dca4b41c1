#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the tool makes of its own table of commands: completion for bash, zsh and fish, and,
# where scdoc is installed, the manual page. dev/install-manual.sh CAIRN PREFIX
set -eu
cairn=$1
prefix=$2

install_completion() {
    mkdir -p "$prefix/share/$2"
    "$cairn" help --completion "$1" >"$prefix/share/$2/$3"
}
install_completion bash bash-completion/completions cairn
install_completion zsh zsh/site-functions _cairn
install_completion fish fish/vendor_completions.d cairn.fish

if command -v scdoc >/dev/null 2>&1; then
    mkdir -p "$prefix/share/man/man1"
    "$cairn" help --manual | scdoc >"$prefix/share/man/man1/cairn.1"
else
    echo "cairn: scdoc is not installed, so there is no manual page" >&2
fi
