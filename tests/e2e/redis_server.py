#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server under load, ended by SIGTERM: redis-server under redis-benchmark. Its answers, its status and
its totals are right; it uses jemalloc as a shared library where Debian links it so. Its table of keys keeps what the
server itself says its keys use, whatever the lists of jemalloc refer to."""

import os
import signal
import socket
import subprocess

import cairn_test as t
import counts
from held_blocks import are_all_stopped, holding, states_of
from ports import free_port


def wait_until_up(port):
    def answers():
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100).startswith(b"+PONG")
        except OSError:
            return False
    return t.wait_until(answers, pause=0.05)


def ask(port, *words):
    return subprocess.run(["redis-cli", "-p", str(port), *words], stdout=subprocess.PIPE,
                          check=False).stdout


ROUNDED_MOST = 24
STOPS = 100  # under load, in the long form
THREADS = 5


def used_and_kept(port, pid):
    used = int(ask(port, "eval", "local sum = 0 for _, key in ipairs(redis.call('keys', '*')) do sum = sum + "
                                 "redis.call('memory', 'usage', key, 'samples', 0) end return sum", "0"))
    tables = [row for row in t.answer(str(pid), "owners")["owners"]
              if row["kind"] == "stack" and "_dictExpand" in row["name"]]
    kept = max((row["retained_bytes"] - row["own_bytes"] for row in tables), default=0)
    return used, kept, ROUNDED_MOST * int(ask(port, "dbsize"))


def check_owners(port, pid):
    """MEMORY USAGE adds up what jemalloc gave, but of a key's entry and of a short value what was asked for: 8 and up to
    16 bytes less. While the server moves its keys from one table to a larger one, neither keeps all of them."""
    seen = []

    def is_right():
        seen[:] = used_and_kept(port, pid)
        return seen[0] <= seen[1] <= seen[0] + seen[2]
    t.check(t.wait_until(is_right), f"keys use {seen[0]}, what the table keeps has {seen[1]} bytes")


def check_blocks(port, pid):
    """Wherever it is stopped under load, jemalloc has handed out what is recorded as in use, but for a block of each
    thread within a call."""
    load = subprocess.Popen(["redis-benchmark", "-p", str(port), "-n", "100000000", "-r", "20000", "-q", "-t",
                             "set,lpush,lpop,sadd,spop,hset,zadd,zpopmin"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for number in range(STOPS):
        ask(port, "incr", "turn")  # it goes on
        os.kill(pid, signal.SIGSTOP)
        t.wait_until(lambda: are_all_stopped(pid))
        recorded, used = states_of(str(pid), "used")[0]["Used"], states_of(str(pid))[0]["Used"]
        os.kill(pid, signal.SIGCONT)
        starts = sorted(used)
        found = {holding(used, address, starts) for address in recorded}
        t.check(len(recorded) > 1000 and None not in found, f"stop {number}: called free, of {len(recorded)}", is_grave=True)
        t.check(len(used.keys() - found) <= THREADS, f"stop {number}: {len(used.keys() - found)} blocks too many", is_grave=True)
    load.kill()
    load.wait()


def serve(wrap, env):
    """Runs the server under load, ends it; returns (status, size of the database, log)."""
    port = free_port()
    argv = wrap + ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    with open("redis.log", "wb") as log:
        with t.Process(argv, env=t.environment(env), stdout=log,
                              stderr=subprocess.STDOUT) as server:
            if not t.check(wait_until_up(port), f"{wrap[:3]}: no answer"):
                server.kill()
                return None
            subprocess.run(["redis-benchmark", "-p", str(port), "-n", "20000", "-r", "5000", "-q",
                            "-t", "set,lpush,hset"], stdout=subprocess.DEVNULL, check=False)
            ask(port, "set", "one", "1")
            size = ask(port, "get", "one").strip()
            # The server itself is ended, as a service manager does it; cairn waits for it.
            pid = int(next(line.split(b":")[1] for line in ask(port, "info", "server").splitlines()
                           if line.startswith(b"process_id")))
            if wrap:
                check_owners(port, pid)
                if t.IS_LONG:
                    check_blocks(port, pid)
            subprocess.run(["kill", f"-{int(signal.SIGTERM)}", str(pid)], check=True)
            return server.wait(timeout=t.PATIENCE_S), size


t.need("redis-server", "redis-benchmark", "redis-cli")
plain = serve([], {})
path, prefix = t.fresh_path("redis") + ".cairn", t.fresh_path("count")
recorded = serve([t.CAIRN, "run", "-q", "-o", path, "--"],
                 {"LD_PRELOAD": t.COUNTER, "COUNT_PRELOAD_OUT": prefix})
t.check_equal("redis: status and answer", recorded, plain)
found = t.report(path)
wanted = {one["pid"]: one for one in counts.read_all(prefix).values()}
if found:
    judged = wanted.get(found["process"]["pid"])
    if t.check(judged is not None, f"redis: {found['process']} is not one of {sorted(wanted)}"):
        t.check_totals("redis", found, judged, with_peak=False)
    t.check_nothing_lost("redis", found)
    t.check_sums("redis", found)
    t.check(found["totals"]["allocations"] > 10000, f"redis: {found['totals']}")
t.finish()
