#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes libmicrohttpd as a static library without TLS: dev/plain-microhttpd.sh CC OUT.a
# Debian's is built with GnuTLS, whose eight libraries every start of the tool would load for nothing, and which no
# static file can have. `cairn serve` never asks for TLS: functions that fail take their place. Where there is no static
# libmicrohttpd, OUT.a is a script for the linker that names the shared one.
set -eu
CC=$1 OUT=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$(dirname "$OUT")"
archive=$($CC -print-file-name=libmicrohttpd.a)
if [ ! -f "$archive" ]; then
    echo 'INPUT(-lmicrohttpd)' >"$OUT"
    exit 0
fi
# It starts GnuTLS before main and gives up if that fails.
nm -u "$archive" 2>/dev/null | sed -n 's/.* \(gnutls_[a-z0-9_]*\)$/\1/p' | sort -u | while read -r name; do
    [ "$name" = gnutls_global_init ] && status=0 || status=-1
    echo "int $name(void); int $name(void) { return $status; }"
done >"$work/no_tls.c"
cp "$archive" "$work/lib.a"
# shellcheck disable=SC2086
$CC -O2 -c "$work/no_tls.c" -o "$work/no_tls.o"
ar qD "$work/lib.a" "$work/no_tls.o"
ar sD "$work/lib.a" 2>/dev/null || ranlib "$work/lib.a"
mv "$work/lib.a" "$OUT"
