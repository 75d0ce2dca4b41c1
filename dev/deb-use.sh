#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Inside a bare Debian that has the packages in /build (dev/deb-chroots.sh): installs them by apt, uses what they
# brought, purges them, and looks for what is left. dev/deb-use.sh VERSION. Ends at the first thing that is wrong.
set -eux
version=$1
cd /build
apt-get update -q
files() { find / -xdev \( -path /proc -o -path /build -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \
    -o -path /tmp \) -prune -o -print | LC_ALL=C sort; }
apt-get install -q -y --no-install-recommends sqlite3 gcc libc6-dev pkgconf
files >/tmp/before

apt-get install -q -y --no-install-recommends ./*.deb
for package in cairn libcairn-dev cairn-dbgsym; do
    [ "$(dpkg-query -W -f '${Version}' $package)" = "$version" ]
done
[ "$(cairn --version | head -n 1)" = "cairn $version" ]

# Records, and reports with names.
cairn run -q -o /tmp/ls.cairn ls -lR /usr/share/doc >/tmp/out
ls -lR /usr/share/doc | cmp - /tmp/out
cairn report /tmp/ls.cairn | grep 'nothing lost'
cairn run -q -o /tmp/sql.cairn sqlite3 :memory: 'create table t(a); insert into t values (zeroblob(500000)); select count(*) from t'
cairn report --json /tmp/sql.cairn | grep -q '"function":"sqlite3_'
cairn open -o /tmp/page.html /tmp/sql.cairn
grep -q '</html>' /tmp/page.html

# Attaches to one that runs: the stripped library has all that is needed for that.
perl -e '$| = 1; while (1) { my @a = map { "x" x 1000 } 1 .. 100; print "."; select(undef, undef, undef, 0.01) }' >/tmp/dots &
until [ -s /tmp/dots ]; do :; done
cairn attach -o /tmp/attached.cairn --record-for 300ms $!
kill -0 $!
kill $!
cairn report /tmp/attached.cairn | grep 'exact since attach'

# The manual, completions, the interface for programs.
zcat /usr/share/man/man1/cairn.1.gz | grep '^\.TH "cairn" "1"'
bash -euc '. /usr/share/bash-completion/completions/cairn; COMP_WORDS=(cairn rep) COMP_CWORD=1; _cairn
    [ "${COMPREPLY[*]}" = report ]'
grep -q '^#compdef cairn' /usr/share/zsh/vendor-completions/_cairn
grep -q '^complete ' /usr/share/fish/vendor_completions.d/cairn.fish
[ "$(pkg-config --modversion cairn)" = "$version" ]
printf '#include <cairn/cairn.h>\nint main(void) { return cairn_is_loaded() ? 4 : 5; }\n' >/tmp/program.c
# shellcheck disable=SC2046
gcc /tmp/program.c -o /tmp/program $(pkg-config --cflags cairn)
status=0
cairn run -q -o /tmp/program.cairn /tmp/program || status=$?
[ $status -eq 4 ]
# shellcheck disable=SC2046
gcc -static /tmp/program.c -o /tmp/program $(pkg-config --cflags --libs cairn-static)
identity=$(od -An -tx1 -j "$((0x$(objdump -h /usr/bin/cairn | awk '$2 == ".note.gnu.build-id" { print $6 }') + 16))" -N 20 /usr/bin/cairn | tr -d ' \n')
[ -e "/usr/lib/debug/.build-id/$(echo "$identity" | cut -c1-2)/$(echo "$identity" | cut -c3-).debug" ]

apt-get purge -q -y cairn libcairn-dev cairn-dbgsym
rm -rf /root/.cache
files | diff /tmp/before - | grep '^[<>]' | grep -v '^. /\(var/lib/dpkg\|etc/ld.so.cache\|usr/share/\(man\|info\)/index\|root$\)' >/tmp/left || true
cat /tmp/left
# Libraries that came with cairn are apt's to remove; nothing of cairn's own may stay.
if grep cairn /tmp/left; then exit 1; fi
[ -z "$(dpkg-query -W -f '${Status}' cairn 2>/dev/null)" ]
