#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --wrap postgresql: a server under pgbench, whose backends are known by memory context. Beside
pg_backend_memory_contexts of a session that stays idle: the same contexts, as many of each name, and of each name no
more bytes asked for than the allocator says are used, and no less than a part of them."""

import glob
import json
import os
import pathlib
import shutil
import subprocess

import cairn_test as t

# Without what is there only while a statement is executed. (dynahash's contexts are named after their tables there.)
CONTEXTS = """with recursive all_of as materialized (select * from pg_backend_memory_contexts),
 passing as (select name from all_of where name in ('TopPortalContext', 'MessageContext', 'TopTransactionContext')
  union select all_of.name from all_of join passing on all_of.parent = passing.name)
 select name, count(*), sum(used_bytes), sum(total_bytes) from all_of where name not in (select name from passing) group by 1"""


def server_of():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found or not os.path.exists(f"{found[-1]}/postgres"):
        t.cannot_run_here("postgresql is not installed")
    if found[-1].split("/")[-2] != "15":
        t.cannot_run_here(f"PostgreSQL {found[-1].split('/')[-2]} is here, and the row is of 15")
    return found[-1]


BIN = server_of()
HERE = str(pathlib.Path.cwd())
AS_USER = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
ENV = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


def shell(command):
    return subprocess.run([*AS_USER, "sh", "-c", command], capture_output=True, env=ENV, timeout=t.PATIENCE_S, check=False)


def start():
    os.chmod(HERE, 0o777)
    made = shell(f"initdb -D {HERE}/data -A trust -U walker --no-locale -E UTF8")
    if not t.check_equal(f"initdb: {made.stderr.decode()[:300]}", made.returncode, 0):
        t.finish()
    log = open("server.log", "wb")  # pylint: disable=consider-using-with
    server = subprocess.Popen([*AS_USER, t.CAIRN, "run", "-q", "--wrap", "postgresql", "-o", f"{HERE}/rec", "--", f"{BIN}/postgres",
                               "-D", f"{HERE}/data", "-k", HERE, "-c", "listen_addresses="], stdout=subprocess.DEVNULL,
                              stderr=log, env=ENV)
    t.wait_until(lambda: shell(f"pg_isready -q -h {HERE}").returncode == 0 or server.poll() is not None)
    return server


def ask(session, text):
    session.stdin.write(text + ";\nselect 'end';\n")
    session.stdin.flush()
    lines = []
    while (line := session.stdout.readline().rstrip("\n")) != "end":
        if not line and session.poll() is not None:
            break
        lines.append(line)
    return lines


def compare(pid, told):
    shown = t.run_cairn("report", "--json", str(pid))
    if not t.check_equal(f"a report of the backend: {shown.err.decode()}", shown.status, 0):
        return
    pools = {pool["name"].removeprefix("PostgreSQL/"): pool for pool in json.loads(shown.out).get("pools", [])}
    compared = 0
    for line in told:
        name, count, used, total = line.split("|")
        if name not in pools:
            continue
        pool = pools[name]
        compared += 1
        t.check_equal(f"{name}: contexts", pool["made"] - pool["destroyed"], int(count))
        t.check(pool["at_exit_bytes"] <= int(used) <= int(total), f"{name}: {pool}, used {used} of {total}")
    asked = sum(pools[line.split("|")[0]]["at_exit_bytes"] for line in told if line.split("|")[0] in pools)
    used = sum(int(line.split("|")[2]) for line in told if line.split("|")[0] in pools)
    t.check(compared >= 8, f"only {compared} contexts of {len(told)} are compared: {sorted(pools)}")
    t.check(asked > used * 0.4, f"asked for {asked} of {used} used")


if not shutil.which("runuser") and os.getuid() == 0:
    t.cannot_run_here("runuser is not here, and PostgreSQL does not run as root")
server = start()
for command in (f"pgbench -h {HERE} -U walker -i -s 1 -q postgres", f"pgbench -h {HERE} -U walker -n -c 2 -t 50 postgres"):
    done = shell(command)
    t.check_equal(f"{command}: {done.stderr.decode()[-200:]}", done.returncode, 0)
with subprocess.Popen([*AS_USER, f"{BIN}/psql", "-h", HERE, "-U", "walker", "-X", "-At", "postgres"], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True, env=ENV) as session:
    backend = int(ask(session, "select pg_backend_pid()")[0])
    ask(session, CONTEXTS)
    compare(backend, ask(session, CONTEXTS))
    session.stdin.close()
t.check_equal("the server's end", shell(f"pg_ctl -D {HERE}/data stop -m fast").returncode, 0)
t.check_equal(f"cairn's end: {pathlib.Path('server.log').read_text()[-300:]}", server.wait(timeout=t.PATIENCE_S), 0)
screen = t.run_cairn("report", "--view", "pools", "--top", "0", "--process", str(backend), f"{HERE}/rec")
t.check(screen.status == 0 and b"PostgreSQL/Cache" in screen.out, f"pools of the backend: {screen.out[:300]} {screen.err}")
t.finish()
