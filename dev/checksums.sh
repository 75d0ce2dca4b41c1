#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes SHA256SUMS of a release's files in DIRECTORY, for `sha256sum -c`: dev/checksums.sh DIRECTORY
# What else lies there is on the way to one (dev/dist.mk).
set -eu
cd "$1"
find . -maxdepth 1 -type f \( -name 'cairn[-_]*' -o -name 'libcairn-dev_*' \) ! -name '*.new' ! -name cairn-replay -printf '%f\n' | LC_ALL=C sort |
    xargs -d '\n' sha256sum >SHA256SUMS.new
mv -f SHA256SUMS.new SHA256SUMS
