#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs stay themselves, part five: servers with many processes under load. PostgreSQL from
initdb to an orderly end with pgbench between, nginx whose workers drop privileges under ab and wrk.
Client, server and shell all run under cairn; every answer that does not tell a time is compared."""

import glob
import os
import pathlib
import shutil

import identity
import cairn_test as t

OWN = pathlib.Path.cwd()
PORT = identity.free_port()

POSTGRES = """
    export PATH={programs}:$PATH
    initdb -D data -A trust -U walker --no-locale -E UTF8 | sed -n '/^creating/p; /^performing/p'
    pg_ctl -D data -s -w -l log -o "-k $PWD -c listen_addresses='' -c fsync=off" start
    sql() {{ psql -h "$PWD" -U walker -d postgres -X -At "$@"; }}
    pgbench -h "$PWD" -U walker -i -s 1 -q postgres >/dev/null 2>&1
    pgbench -h "$PWD" -U walker -n -c 4 -j 2 -t 150 --random-seed=7 postgres | grep -E 'processed|failed'
    sql -c 'select count(*), sum(abalance) from pgbench_accounts' \\
        -c 'select count(*) from pgbench_history'
    sql -c 'create table walk as select i, md5(i::text) h from generate_series(1, 20000) i' \\
        -c 'create index on walk(h)' \\
        -c 'select sum(i), min(h) from (select * from walk order by h limit 99) w' \\
        -c "do \\$\\$ begin for n in 1..2000 loop
                update walk set h = h || 'x' where i = n % 50; end loop; end \\$\\$" \\
        -c 'select no from nowhere' || echo "status $?"
    sql -c "select max(length(h)), md5(string_agg(h, '' order by i)) from walk"
    sql -c 'set max_parallel_workers_per_gather = 2; set min_parallel_table_scan_size = 0' \\
        -c 'set parallel_setup_cost = 0; set parallel_tuple_cost = 0' \\
        -c 'select count(*), max(length(h)) from walk'
    pg_dump -h "$PWD" -U walker -t walk postgres | grep -v restrict | sort | sha256sum
    pg_ctl -D data -s -m fast -w stop; echo "stopped $?"
    grep -cE 'PANIC|terminated by signal' log || true
"""

NGINX_CONFIG = """
worker_processes 2;
daemon off;
pid {place}/nginx.pid;
error_log {place}/error.log warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {place}/www;
        gzip on;
        gzip_types text/plain;
        location /back/ {{ proxy_pass http://127.0.0.1:{port}/; }}
    }}
}}
"""
NGINX = """
    nginx -p . -c nginx.conf & server=$!
    at=http://127.0.0.1:{port}
    for i in $(seq 100); do curl -s -o /dev/null $at/ && break; sleep 0.1; done
    ab -q -n 4000 -c 20 -k $at/walk.txt | grep -E '^(Complete|Failed|Document|Non-2xx)'
    ab -q -n 1000 -c 10 -H 'Accept-Encoding: gzip' $at/back/walk.txt | grep -E '^(Complete|Failed|Document)'
    wrk -t 2 -c 20 -d 1 $at/back/walk.txt | grep -cE 'Non-2xx|Socket errors' || true
    curl -s $at/walk.txt | sha256sum; curl -s --compressed $at/back/walk.txt | sha256sum
    curl -s -o /dev/null -w '%{{http_code}}\\n' $at/none
    kill -HUP $server; sleep 0.5; curl -s $at/walk.txt | wc -c
    kill -QUIT $server; wait $server; echo "status $?"; grep -c 'exited on signal' error.log || true
"""


def open_to_others():
    """PostgreSQL refuses to be root's: where we are root it runs as Debian's user for it, who must be
    able to come here and to reach cairn, which may lie in a private directory."""
    OWN.chmod(0o1777)
    (OWN / "cairn").mkdir()
    for path in [t.CAIRN, *glob.glob(str(t.BUILD / "libcairn*.so"))]:
        shutil.copy2(path, OWN / "cairn")
    t.CAIRN = str(OWN / "cairn/cairn")


def fill_nginx(place):
    (place / "www").mkdir()
    (place / "www/index.html").write_text("walk\n")
    (place / "www/walk.txt").write_text("".join(f"stone {i}\n" for i in range(3000)))
    (place / "nginx.conf").write_text(NGINX_CONFIG.format(place=place, port=PORT))


def compare_postgres():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not t.check(found, "PostgreSQL is not installed"):
        return
    as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    # Its files hold times, random numbers and identities of the cluster.
    identity.shell("PostgreSQL", POSTGRES.format(programs=found[-1]), as_user=as_user,
                   ignored=("data", "data/*", "log"))


os.environ["PATH"] += ":/usr/sbin"
t.need("nginx", "ab", "wrk", "curl")
open_to_others()
identity.shell("nginx", NGINX.format(port=PORT), prepare=fill_nginx, ignored=("error.log",))
compare_postgres()
t.finish()
