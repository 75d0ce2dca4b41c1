# SPDX-License-Identifier: Apache-2.0
# alone
cat >pools.c <<'END' && cat >program.c <<'END2' && gcc -shared -fPIC -o libpools.so pools.c && gcc -o program program.c -L. -lpools -Wl,-rpath,. && loopback && export PATH=$PATH:/usr/sbin COLUMNS=100 || return
#include <stdlib.h>
void *my_alloc(size_t bytes) { return malloc(bytes); }
void *my_calloc(size_t count, size_t bytes) { return my_alloc(count * bytes); }
void *my_realloc(void *block, size_t bytes) { return realloc(block, bytes); }
void my_free(void *block) { free(block); }
int cudaMalloc(void **block, size_t bytes) { static char device[1 << 20], *next = device; *block = next; next += bytes; return 0; }
int cudaFree(void *block) { return !block; }
END
#include <stddef.h>
void *my_alloc(size_t), *my_calloc(size_t, size_t), *my_realloc(void *, size_t);
void my_free(void *);
int cudaMalloc(void **, size_t), cudaFree(void *);
int main(void) {
    void *device, *first = my_alloc(1000), *second = my_calloc(10, 50);
    first = my_realloc(first, 3000);
    my_free(second);
    cudaMalloc(&device, 5000);
    cudaMalloc(&device, 7000);
    return cudaFree(device);
}
END2
# a place that servers reach which do not run as root
reached=$PWD/.reached as=
if [ "$(id -u)" = 0 ]; then reached=/mnt as='runuser -u postgres --' && mount -t tmpfs -o mode=777 tmpfs $reached; else mkdir $reached; fi || return
# a database
bin=/usr/lib/postgresql/15/bin
if [ -n "$IS_WHOLE" ] && [ -x $bin/postgres ] && $as test -x "$(command -v cairn)"; then
    db=$reached/db && mkdir -m 777 $db && (cd $db && $as $bin/initdb -D "$db/data" -A trust -U walker --no-locale -E UTF8 -N >/dev/null) || return
    postgresql_15() { :; }
    stands '--wrap postgresql -o rec' "--wrap postgresql -o $db/rec" && stands 'cairn run --wrap postgresql' "$as cairn run --wrap postgresql" &&
        stands 'postgres -D data' "$bin/postgres -D $db/data -k $db -c listen_addresses=" &&
        stands '--process 9918 rec' "--process \$(cat .backend) $db/rec"
fi
# one that pgbench works with, and which of the server's processes it works with
served_by_postgresql() {
    grep -q 'ready to accept' .printed && set -- -h "$db" -U walker && $bin/pgbench "$@" -i -s 1 -q postgres || return
    $bin/pgbench "$@" -n -c 1 -t 1000 postgres &
    until $bin/psql "$@" -Atc "select pid from pg_stat_activity where application_name = 'pgbench'" postgres >.backend && [ -s .backend ] || ! kill -0 $!; do
        sleep 0.05
    done 2>/dev/null
    wait $!
}
mkdir $reached/site && echo hello >$reached/site/index.html && modules=/usr/lib/apache2/modules && cat >httpd.conf <<END && stands httpd.conf "$PWD/httpd.conf"
ServerRoot $PWD
ServerName localhost
PidFile apache.pid
ErrorLog error.log
Listen 127.0.0.1:8080
User nobody
Group nogroup
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule dir_module $modules/mod_dir.so
DocumentRoot $reached/site
DirectoryIndex index.html
END
served_by_apache() {
    pgrep -x apache2 && ab -q -n 2000 -c 4 http://127.0.0.1:8080/
}
