#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks what the runtime promises the programs it is loaded into: dev/check-runtime.sh FILE.so.
#   - it needs nothing but libc, and of libc only the symbols that dev/runtime-symbols.allow names
#   - no symbol version newer than GLIBC_2.17, none of the fortify helpers (__*_chk)
#   - at most 64 bytes of initial-exec thread-locals, so that it can be loaded after the start; libcairn-musl.so and -bare.so
#     have descriptors of them instead
#   - it exports the names of dev/exported-names.sh, no more
set -eu
export LC_ALL=C
library=${1:-build/libcairn.so}
cd "$(dirname "$0")/.."
TLS_BYTES_MAX=64
GLIBC_MINOR_MAX=17
allow=dev/runtime-symbols.allow
problems=$(mktemp)
names=$(mktemp)
trap 'rm -f "$problems" "$names"' EXIT
[ -f "$library" ] || { echo "$library is missing"; exit 1; }

# Lines of the allow-list: "SYMBOL  reason" for what may be undefined, "export SYMBOL  reason".
allowed_undefined() { awk '!/^#/ && NF && $1 != "export" { print $1 }' "$allow"; }
[ -f "$allow" ] || { echo "$allow is missing"; exit 1; }
may_need=$(allowed_undefined)
case "$library" in
*-bare.so) may_need=_r_debug ;; # weak, and nothing
esac
case "$library" in *-cxx.so) may_export=$(dev/exported-names.sh cxx) ;; *-bare.so) may_export=$(dev/exported-names.sh bare) ;; *) may_export=$(dev/exported-names.sh) ;; esac

nm -D --undefined-only --with-symbol-versions "$library" | awk '{ print $NF }' >"$names"
while IFS=@ read -r symbol version; do
    echo "$may_need" | grep -qx "$symbol" || echo "undefined symbol not on the list: $symbol"
    case "$symbol" in *_chk) echo "fortify helper: $symbol" ;; esac
    case "$version" in
    *GLIBC_2.*)
        minor=${version##*GLIBC_2.}
        [ "${minor%%.*}" -le "$GLIBC_MINOR_MAX" ] || echo "needs $symbol of $version"
        ;;
    "") ;;
    *) echo "symbol of another library: $symbol@$version" ;;
    esac
done <"$names" >>"$problems"
# mem* come and go with the compiler's own wishes, environ has two names.
echo "$may_need" | grep -v '^mem\|environ$' | while read -r symbol; do
    grep -qE "^$symbol(@|\$)" "$names" || echo "$allow: $symbol is not needed any more"
done >>"$problems"

nm -D --defined-only "$library" | awk '$2 != "A" { print $NF }' | sed 's/@.*//' >"$names"
while read -r symbol; do
    echo "$may_export" | grep -qx "$symbol" || echo "exports $symbol"
done <"$names" >>"$problems"
echo "$may_export" | while read -r symbol; do
    grep -qx "$symbol" "$names" || echo "does not export $symbol"
done >>"$problems"

readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r needed; do
    case "$needed" in libc.so.6 | ld-linux*) ;; *) echo "needs $needed" ;; esac
done >>"$problems"
readelf -dW "$library" | grep -q 'TEXTREL' && echo "has text relocations" >>"$problems"
readelf -lW "$library" | awk '$1 == "TLS" { print $6 }' | while read -r size; do
    [ $((size)) -le "$TLS_BYTES_MAX" ] || echo "$((size)) bytes of thread-locals, at most $TLS_BYTES_MAX"
done >>"$problems"
case "$library" in
*-musl.so|*-bare.so) kinds='TPOFF|DTPMOD' says='not a descriptor' ;; # what musl's dlopen and the tool's loader refuse
*) kinds='DTPMOD|TLSDESC' says='not initial-exec' ;;
esac
readelf -rW "$library" | grep -E "$kinds" | sed "s/^/$says: /" >>"$problems" || true

if [ -s "$problems" ]; then
    sed "s|^|$library: |" "$problems"
    exit 1
fi
