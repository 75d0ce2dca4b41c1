#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `cairn report --view remedies` foretells of malloc_trim(0) with what it gives back, in real programs, and
bounds with what settings save at a start with them: bench/remedies.py [NAME...]. Programs that are not installed are
left out. Writes a table to stdout; a row is right within 5 % or 1 MiB, and a bound if nothing saved, beside a second
start without a setting, exceeds it by more than the two starts differ, or 1 MiB."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD_DIR", f"{TOP}/build")
CAIRN = os.environ.get("TOOL_FILE", os.path.join(BUILD, "cairn"))
MIB = 1 << 20
SIGNAL = signal.SIGRTMAX - 1
SETTINGS = {"one_arena": {"MALLOC_ARENA_MAX": "1"}, "two_arenas": {"MALLOC_ARENA_MAX": "2"},
            "threshold": {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"}}

PYTHON_TREE = """
import sys, time
keep = [str(i) * 9 for i in range(300000)]
del keep[::3], keep[1::3]
parts = {i: [i] * 50 for i in range(30000)}
for i in range(0, 30000, 2): del parts[i]
print("ready", flush=True); sys.stdin.read()
"""
PYTHON_THREADS = """
import sys, threading, zlib, sqlite3
kept = []
def work(n):
    base = sqlite3.connect(":memory:", check_same_thread=False)
    base.execute("create table t (a, b)")
    base.executemany("insert into t values (?, ?)", ((i, "x" * 300) for i in range(20000)))
    base.execute("delete from t where a % 7")
    kept.append(base)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print("ready", flush=True); sys.stdin.read()
"""
PERL = 'my %h; $h{$_} = "x" x 200 for 1..200000; delete @h{grep {$_ % 5} keys %h}; $| = 1; print "ready\\n"; <STDIN>'
LUA = 'local t = {} for i = 1, 300000 do t[i] = ("x"):rep(i % 300) .. i end for i = 1, 300000 do if i % 9 > 0 then t[i] = nil end end ' \
      'collectgarbage() print("ready") io.flush() io.read()'
RUBY = 'a = (1..200000).map { |i| "x" * (i % 400 + 30) }; a.reject!.with_index { |_, i| i % 6 > 0 }; GC.start; puts "ready"; $stdout.flush; gets'
NODE = 'const b = []; for (let i = 0; i < 20000; i++) b.push(Buffer.alloc(9000, 1)); b.length = 3000; if (global.gc) gc(); ' \
       'console.log("ready"); process.stdin.resume()'
PHP = '$a = []; for ($i = 0; $i < 300000; $i++) $a[$i] = str_repeat("x", $i % 300); for ($i = 0; $i < 300000; $i++) if ($i % 7) unset($a[$i]); ' \
      'echo "ready\\n"; fgets(STDIN);'
GUILE = '(define kept (let loop ((i 0) (l (list))) (if (< i 200000) (loop (+ i 1) (cons (make-string (modulo i 300) #\\x) l)) l))) ' \
        '(set! kept (list-head kept 20000)) (gc) (display "ready\\n") (force-output) (read-char)'
GNUPLOT = 'set print "-"; array A[200000]; do for [i=1:200000] { A[i] = sprintf("%0300d", i)[1:i % 300 + 1] }; ' \
          'do for [i=1:200000] { if (i % 7) { A[i] = 0 } }; print "ready"; pause -1'
PROLOG = "forall(between(1, 200000, I), (atom_concat(key, I, A), assertz(fact(I, A)))), " \
         "forall((fact(I, _), I mod 6 > 0), retract(fact(I, _))), garbage_collect, writeln(ready), flush_output, read(_)"
RSYSLOG_MODULES = os.environ.get("RSYSLOG_MODULES", "/usr/lib/x86_64-linux-gnu/rsyslog")
SQLITE = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000) " \
         "insert into t select i, hex(randomblob(90)) from n; delete from t where a % 5; select 'ready';\n"


def resident(pid, kind="Rss"):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return int(re.search(rf"^{kind}: +(\d+)", rollup.read(), re.M).group(1)) << 10


def get(port, path="/", times=200):
    for _ in range(times):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10).read()
        except OSError:
            time.sleep(0.05)


def shell(*command, **options):
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **options)


def load_redis(place):
    shell("redis-benchmark", "-p", "7391", "-n", "150000", "-r", "100000", "-d", "300", "-t", "set,lpush,sadd", "-q")
    shell("redis-cli", "-p", "7391", "--eval", f"{place}/delete.lua")


def load_maria(place):
    for _ in range(100):
        done = subprocess.run(["mariadb", "-S", f"{place}/my.sock", "-e", "select 1"], capture_output=True)
        if not done.returncode:
            break
        time.sleep(0.3)
    shell("mariadb", "-S", f"{place}/my.sock", "-e", "create database d; use d; create table t (a int primary key auto_increment, "
          "b varchar(300)) engine=memory; insert into t (b) select repeat('x', seq % 300) from mysql.seq_1_to_30000; delete from t where a % 3;")


def load_memcached(place):
    """Keys of many sizes, four of five of them deleted."""
    with socket.create_connection(("127.0.0.1", 7398)) as link:
        answers = link.makefile("rb")
        for i in range(50000):
            text = b"x" * (i % 900 + 50)
            link.sendall(b"set key%d 0 0 %d noreply\r\n%s\r\n" % (i, len(text), text))
        link.sendall(b"".join(b"delete key%d noreply\r\n" % i for i in range(50000) if i % 5) + b"version\r\n")
        answers.readline()


def load_dnsmasq(place):
    """Questions for names that it has in a file, and for others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(2)
        for i in range(5000):
            name = b"host%d" % i
            link.sendto(struct.pack(">6H", i, 256, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\4test\0\0\1\0\1", ("127.0.0.1", 7395))
            try:
                link.recv(4096)
            except OSError:
                pass


def load_mosquitto(place):
    """Messages that it keeps, each of a topic, and a half of them taken back."""
    for size in (200, 0):
        with subprocess.Popen(["mosquitto_pub", "-p", "7399", "-r", "-l", "-t", "all"], stdin=subprocess.PIPE) as one:
            one.communicate(b"".join(b"x" * (i % 300) + b"\n" for i in range(20000)))
        for i in range(150):
            shell("mosquitto_pub", "-p", "7399", "-r", "-t", f"t/{i}", *(("-m", "x" * size * i) if size else ("-n",)))


def ask_names(port, names):
    """Questions of DNS."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(2)
        for i, name in enumerate(names):
            labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
            link.sendto(struct.pack(">6H", i, 256, 1, 0, 0, 0) + labels + b"\0\0\1\0\1", ("127.0.0.1", port))
            try:
                link.recv(4096)
            except OSError:
                pass


def load_ngircd(place):
    """Clients that come, talk in channels, and most of them go."""
    links = []
    for i in range(150):
        link = socket.create_connection(("127.0.0.1", 7414))
        link.sendall(b"NICK n%d\r\nUSER n%d 0 * :a name\r\nJOIN #c%d\r\nPRIVMSG #c%d :%s\r\n" % (i, i, i % 40, i % 40, b"x" * 300))
        link.recv(4096)
        links.append(link)
    for link in links[:120]:
        link.close()
    KEPT.extend(links[120:])


def load_beanstalkd(place):
    """Jobs of many sizes, four of five of them deleted."""
    with socket.create_connection(("127.0.0.1", 7416)) as link:
        answers = link.makefile("rb")
        for i in range(20000):
            text = b"x" * (i * 37 % 2000)
            link.sendall(b"put 0 0 60 %d\r\n%s\r\n" % (len(text), text))
            number = int(answers.readline().split()[1])
            if number % 5:
                link.sendall(b"delete %d\r\n" % number)
                answers.readline()


def load_rsyslogd(place):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        for i in range(30000):
            link.sendto(b"<13>Jan  1 00:00:00 host program[%d]: %s" % (i, b"x" * (i % 700)), ("127.0.0.1", 7417))
            if i % 100 == 0:
                time.sleep(0.01)


def load_postgres(place):
    """Queries of one connection that take much memory for a while; the process that serves it is looked at."""
    for _ in range(100):
        if not subprocess.run(["pg_isready", "-q", "-h", place, "-p", "7419"], check=False).returncode:
            break
        time.sleep(0.3)
    link = subprocess.Popen(["psql", "-qAt", "-h", place, "-p", "7419", "-U", "nobody", "postgres"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)
    KEPT.append(link)
    link.stdin.write(b"set work_mem = '300MB'; select count(*) from (select distinct md5(n::text) from generate_series(1, 100000) n) m;\n"
                     b"select length(string_agg(md5(n::text), ' ' order by md5(n::text))) from generate_series(1, 200000) n;\n"
                     b"select pg_backend_pid();\n")
    link.stdin.flush()
    return int([link.stdout.readline() for _ in range(3)][-1])


def get_at_once(port, threads=8, times=4):
    """The same address from several threads at once, when the server is there."""
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    loaders = [threading.Thread(target=get, args=(port, "/", times)) for _ in range(threads)]
    for loader in loaders:
        loader.start()
    for loader in loaders:
        loader.join()


def worker_of(port):
    """Loads a server that forks; returns the process that answers, which says its number."""
    get_at_once(port)
    return int(urllib.request.urlopen(f"http://127.0.0.1:{port}/pid", timeout=10).read())


def through(port, *addresses):
    """Asks a proxy for each of the addresses, many times."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
    for i in range(300):
        try:
            opener.open(addresses[i % len(addresses)], timeout=10).read()
        except OSError:
            pass


KEPT = []  # connections that stay
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
JSON_WORK = "kept = json.dumps([json.loads(json.dumps({'id': i, 'tokens': list(range(i % 300))})) for i in range(1500)]).encode()"
JSON_SERVER = f"""
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        {JSON_WORK}
        self.send_response(200); self.send_header("Content-Length", str(len(kept))); self.end_headers(); self.wfile.write(kept)
    def log_message(self, *words): pass
ThreadingHTTPServer(("127.0.0.1", 7420), Handler).serve_forever()
"""
GUNICORN_APP = f"""
import json, os
def app(environ, start):
    start("200 OK", [])
    if environ["PATH_INFO"] == "/pid": return [str(os.getpid()).encode()]
    {JSON_WORK}
    return [kept]
"""

# Name, command, letter that it waits for on standard input before it is ready (None: a server), and its load.
PROGRAMS = {
    "python3 (dicts)": ["python3", "-c", PYTHON_TREE],
    "python3 (4 threads, sqlite)": ["python3", "-c", PYTHON_THREADS],
    "perl (hash)": ["perl", "-e", PERL],
    "lua5.4 (strings)": ["lua5.4", "-e", LUA],
    "ruby (strings)": ["ruby", "-e", RUBY],
    "node (buffers)": ["node", "--expose-gc", "-e", NODE],
    "php (array)": ["php", "-r", PHP],
    "sqlite3 (:memory:)": ["sqlite3"],
    "bc": ["bc", "-q"],
    "tclsh (arrays)": ["tclsh", "{place}/arrays.tcl"],
    # Chosen when the tool was ready, by someone who had not tried them.
    "guile (lists)": ["guile", "--no-auto-compile", "-c", GUILE],
    "gnuplot (data)": ["gnuplot", "-e", GNUPLOT],
    "swipl (facts)": ["swipl", "-q", "-g", PROLOG],
}
SERVERS = {
    "redis-server (jemalloc)": (["redis-server", "--port", "7391", "--save", ""], load_redis),
    "nginx (worker)": (["nginx", "-c", "{place}/nginx.conf", "-p", "{place}"], lambda place: get(7392, times=2000)),
    "php -S": (["php", "-S", "127.0.0.1:7393", "-t", "{place}"], lambda place: get(7393, "/x.php")),
    "python3 -m http.server": (["python3", "-m", "http.server", "7394"], lambda place: get(7394)),
    "mariadbd": (["mariadbd", "--no-defaults", "--datadir={place}/my", "--socket={place}/my.sock", "--skip-networking",
                  "--user=root"], load_maria),
    "dnsmasq": (["dnsmasq", "-k", "-p", "7395", "--cache-size=10000", "--no-resolv", "--user=root", "--pid-file",
                 "--addn-hosts={place}/hosts"], load_dnsmasq),
    "node (http)": (["node", "-e", "require('http').createServer((q, r) => r.end(Buffer.alloc(99999, 1))).listen(7396)"],
                    lambda place: get(7396, times=1000)),
    "haproxy": (["haproxy", "-f", "{place}/haproxy.cfg"], lambda place: get(7397, times=500)),
    "memcached": (["memcached", "-u", "root", "-p", "7398"], load_memcached),
    "mosquitto": (["mosquitto", "-p", "7399"], load_mosquitto),
    "unbound (4 threads)": (["unbound", "-d", "-c", "{place}/unbound.conf"],
                            lambda place: ask_names(7411, (f"host{i * 7 % 9000}.test" for i in range(9000)))),
    "squid": (["squid", "-N", "-f", "{place}/squid.conf"],
              lambda place: through(7412, "http://127.0.0.1:7412/none", "http://127.0.0.1:7393/", "http://nowhere.test/")),
    "ngircd": (["ngircd", "-n", "-f", "{place}/ngircd.conf"], load_ngircd),
    "privoxy": (["privoxy", "--no-daemon", "{place}/privoxy.conf"],
                lambda place: through(7415, "http://config.privoxy.org/show-status", "http://p.p/")),
    "beanstalkd": (["beanstalkd", "-l", "127.0.0.1", "-p", "7416", "-z", "65535"], load_beanstalkd),
    "rsyslogd": (["rsyslogd", "-n", "-f", "{place}/rsyslog.conf", "-i", "{place}/rsyslog.pid", "-M", RSYSLOG_MODULES], load_rsyslogd),
    "tor": (["tor", "-f", "{place}/torrc", "--DataDirectory", "{place}/tor", "--DisableNetwork", "1", "--SocksPort", "7418"],
            lambda place: None),
    "postgres (backend)": ([*NOBODY, "postgres", "-D", "{place}/pg", "-p", "7419", "-k", "{place}", "-h", ""], load_postgres),
    "python3 (8 threads, JSON)": (["python3", "-c", JSON_SERVER], lambda place: get_at_once(7420)),
    "gunicorn (8 threads, JSON)": (["gunicorn", "-b", "127.0.0.1:7421", "--threads", "8", "--timeout", "600", "--chdir", "{place}", "jsonapp:app"],
                                   lambda place: worker_of(7421)),
    "lighttpd": (["lighttpd", "-D", "-f", "{place}/lighttpd.conf"], lambda place: get(7400, times=2000)),
}
FILES = {
    "jsonapp.py": GUNICORN_APP,
    "nginx.conf": "daemon off; master_process off; pid nginx.pid; error_log e.log; events {} http { access_log off; "
                  "server { listen 7392; root .; } }",
    "unbound.conf": "server:\n interface: 127.0.0.1\n port: 7411\n username: ''\n chroot: ''\n directory: .\n pidfile: ''\n"
                    " do-daemonize: no\n num-threads: 4\n use-syslog: no\n access-control: 127.0.0.1 allow\n"
                    + "".join(f" local-data: 'host{i}.test. A 10.0.{i // 250}.{i % 250}'\n" for i in range(9000)),
    "squid.conf": "http_port 127.0.0.1:7412\npid_filename none\ncache_log none\naccess_log none\nhttp_access allow all\n"
                  "visible_hostname test\ncache_effective_user nobody\ncache_mem 32 MB\npinger_enable off\nlogfile_rotate 0\n"
                  + os.environ.get("SQUID_MORE", ""),
    "ngircd.conf": "[Global]\nName = irc.test.net\nListen = 127.0.0.1\nPorts = 7414\nServerUID = nobody\nServerGID = nogroup\n"
                   "[Limits]\nMaxConnectionsIP = 0\nMaxConnections = 0\n[Options]\nIdent = no\nDNS = no\nPAM = no\n",
    "privoxy.conf": "listen-address 127.0.0.1:7415\n" + os.environ.get("PRIVOXY_MORE", "confdir /etc/privoxy\n"),
    "rsyslog.conf": 'module(load="imudp")\ninput(type="imudp" port="7417" address="127.0.0.1")\n*.* {place}/messages\n',
    "torrc": "",
    "hosts": "".join(f"10.0.{i // 250}.{i % 250} host{i}.test\n" for i in range(4000)),
    "lighttpd.conf": 'server.port = 7400\nserver.bind = "127.0.0.1"\nserver.document-root = var.CWD\nindex-file.names = ("index.html")\n',
    "arrays.tcl": "for {set i 0} {$i < 200000} {incr i} {set a($i) [string repeat x [expr {$i % 900}]]}\n"
                  "for {set i 0} {$i < 200000} {incr i} {if {$i % 6} {unset a($i)}}\nputs ready; flush stdout; gets stdin\n",
    "index.html": "x" * 50000,
    "x.php": "<?php $a = []; for ($i = 0; $i < 20000; $i++) $a[] = str_repeat('x', 500); echo count($a);",
    "delete.lua": "for i, key in ipairs(redis.call('keys', '*')) do if i % 5 > 0 then redis.call('del', key) end end",
    "haproxy.cfg": "defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n"
                   "frontend f\n bind 127.0.0.1:7397\n http-request return status 200\n",
}


def environment(place, settings):
    return {**os.environ, "LD_PRELOAD": f"{place}/trim.so", "TRIM_DONE": f"{place}/done", **settings}


def start(name, place, settings):
    """Starts it and loads it; returns the process and the pid to look at, which a load returns if it is another."""
    pid = None
    is_server = name in SERVERS
    command = [word.replace("{place}", place) for word in (SERVERS[name][0] if is_server else PROGRAMS[name])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place,
                               env=environment(place, settings))
    if is_server:
        time.sleep(1)
        pid = SERVERS[name][1](place)
    elif name.startswith("sqlite3"):
        process.stdin.write(SQLITE.encode())
        process.stdin.flush()
        process.stdout.readline()
    elif name == "bc":
        process.stdin.write(b"scale=2000\nx=4*a(1)\n1\n")
        process.stdin.flush()
        process.stdout.readline()
    else:
        process.stdout.readline()
    time.sleep(1.5)
    return process, pid or process.pid


def stop(process):
    for link in KEPT:
        (link.kill if isinstance(link, subprocess.Popen) else link.close)()
    KEPT.clear()
    process.send_signal(signal.SIGQUIT if process.args[0] == NOBODY[0] else signal.SIGTERM)
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def ask(pid, *options):
    result = subprocess.run([CAIRN, "report", "--view", "remedies", "--json", *options, str(pid)], capture_output=True)
    if result.returncode:
        return {"remedies": [], "error": result.stderr.decode()}
    found = json.loads(result.stdout)
    return {**found["facts"], "sentence": found["title"], "remedies": [row for row in found["rows"] if row["part"] == "remedy"]}


def bytes_of(answer):
    return {remedy["remedy"]: remedy["bytes"] for remedy in answer["remedies"]}


def large_pieces(answer):
    """What is told of the bound of a fixed threshold, as far as large blocks may have left it."""
    return next(remedy["large_free_bytes"] for remedy in answer["remedies"] if remedy["remedy"] == "threshold")


def trim(pid, place):
    """Has malloc_trim(0) called; returns by how much anonymous memory falls. (In a forked child, as PostgreSQL's, the first
    call makes the dynamic linker read a megabyte of libraries, which are files' pages.)"""
    done = f"{place}/done"
    size = os.path.getsize(done) if os.path.exists(done) else 0
    before = resident(pid, "Anonymous")
    os.kill(pid, SIGNAL)
    for _ in range(200):
        if os.path.exists(done) and os.path.getsize(done) > size:
            break
        time.sleep(0.05)
    else:
        return None
    return before - resident(pid, "Anonymous")


def is_near(foretold, truth):
    return abs(foretold - truth) <= max(0.05 * abs(truth), MIB)


def mib(value):
    return "-" if value is None else f"{value / MIB:.2f}"


def look(name, place):
    process, pid = start(name, place, {})
    whole = resident(pid)
    stopped, running = ask(pid, "--no-copy-limit"), ask(pid, "--no-stop")
    truth = trim(pid, place)
    stop(process)
    if not stopped["remedies"] or truth is None:
        print(f"| {name} | {mib(whole)} | not known: {stopped.get('error', 'no answer to the signal').strip()} | | | | |")
        return None
    foretold = bytes_of(stopped)
    twin, pid = start(name, place, {})
    second = resident(pid)
    noise, whole = abs(second - whole), second
    stop(twin)
    are_right = is_near(foretold["malloc_trim"], truth) and is_near(bytes_of(running)["malloc_trim"], truth)
    bounds = []
    for setting, variables in SETTINGS.items():
        if foretold[setting] < MIB and stopped["mmap_threshold"] == 131072:
            continue
        other, pid = start(name, place, variables)
        saved = whole - resident(pid)
        stop(other)
        holds = saved <= foretold[setting] + max(noise, MIB)
        are_right &= holds
        pieces = f" ({mib(large_pieces(stopped))} in large pieces)" if setting == "threshold" else ""
        bounds.append(f"{setting} {mib(saved)} of {mib(foretold[setting])}{pieces}{'' if holds else ' (!)'}")
    print(f"| {name} | {mib(whole)} | {mib(foretold['malloc_trim'])} | {mib(bytes_of(running)['malloc_trim'])} | {mib(truth)} | "
          f"{', '.join(bounds)} | {'yes' if are_right else '**no**'} |", flush=True)
    return are_right


def main():
    names = sys.argv[1:] or [*PROGRAMS, *SERVERS]
    results = []
    print("| program | RSS, MiB | malloc_trim, stopped | running | truth | saved by settings, of at most | right |")
    print("|---|--:|--:|--:|--:|---|---|")
    for name in names:
        words = SERVERS[name][0] if name in SERVERS else PROGRAMS[name]
        command = words[len(NOBODY) if words[0] == NOBODY[0] else 0]
        if not shutil.which(command):
            continue
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o777)  # for servers that become another user
            for file, text in FILES.items():
                with open(f"{place}/{file}", "w") as out:
                    out.write(text.replace("{place}", place))
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", f"{place}/trim.so", f"{TOP}/tests/tools/trim_preload.c"], check=True)
            if name == "mariadbd":
                shell("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={place}/my", "--auth-root-authentication-method=normal")
            if command == "postgres":
                shell(*NOBODY, "initdb", "-D", f"{place}/pg", "-A", "trust", "-U", "nobody", "--no-sync")
            results.append(look(name, place))
    known = [result for result in results if result is not None]
    print(f"\n{sum(known)} of {len(known)} right; {len(results) - len(known)} not known")


if __name__ == "__main__":
    main()
