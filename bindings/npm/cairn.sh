#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command of the npm package: the file for this processor, which is beside this one.
here=$(dirname "$(readlink -f "$0")")
file=$here/cairn-linux-$(uname -m)
if [ "$(uname -s)" != Linux ] || [ ! -x "$file" ]; then
    echo "cairn: this package has no file for $(uname -s) on $(uname -m): it is for Linux on $(cd "$here" && echo cairn-linux-* | sed 's/cairn-linux-//g')" >&2
    exit 1
fi
exec "$file" "$@"
