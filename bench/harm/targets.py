# SPDX-License-Identifier: Apache-2.0
"""Programs that attach.py attaches to. Each works without a pause while it is asked: a thread of ours asks it again and
again, and each answer must be the one that it gave before cairn came."""

import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import urllib.request

import cairn_test as t
from ports import free_port

ANSWER_S = 120

# Programs that answer each line with what a round of work comes to.
PYTHON_WORK = """
import sys, threading
def work(found):
    d = {}
    for i in range(3000): d.setdefault('w%d' % (i * 7919 % 997), []).append(str(i) * 3)
    found.append(sum(len(''.join(v)) for v in d.values()))
THREADS = int(sys.argv[1])
def rest():
    while True:
        bytearray(2000); event.wait(0.01)
event = threading.Event()
for _ in range(THREADS): threading.Thread(target=rest, daemon=True).start()
print('ready', flush=True)
for line in sys.stdin:
    found = []
    made = [threading.Thread(target=work, args=(found,)) for _ in range(3)]
    [one.start() for one in made]; [one.join() for one in made]
    print(found, flush=True)
"""
PYTHON_FORKS = """
import os, sys
print('ready', flush=True)
for line in sys.stdin:
    pids = []
    for n in range(4):
        pid = os.fork()
        if not pid: os._exit(len(repr([str(i) for i in range(500 + n)])) % 97)
        pids.append(pid)
    print([os.waitpid(pid, 0)[1] for pid in pids], flush=True)
"""
PYTHON_LOCKED = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.mlockall(int(sys.argv[1])): raise SystemExit('mlockall')
print('ready', flush=True)
for line in sys.stdin:
    print(sum(len(str(i) * 3) for i in range(5000)), flush=True)
"""
PERL_WORK = """
$| = 1; print "ready\\n";
while (<STDIN>) { my %h; push @{$h{$_ * 7919 % 997}}, 'x' x ($_ % 50) for 1..5000;
    my $t = 0; $t += length join ',', @{$h{$_}} for keys %h; print "$t\\n" }
"""
LUA_WORK = """
io.write('ready\\n') io.flush()
for line in io.lines() do local l = {} for i = 1, 5000 do l[#l + 1] = ('stone %d'):format(i * 7919 % 4810) end
    table.sort(l) io.write(#table.concat(l), l[77], '\\n') io.flush() end
"""
SHELL_FORKS = "echo ready; while read -r line; do n=$(echo one | tr a-z A-Z); ls / >/dev/null; echo \"$n $(expr 6 \\* 7)\"; done"
JAVA_WORK = """import java.util.*;
public class Work {
    static volatile Object kept;
    public static void main(String[] words) throws Exception {
        for (int n = 0; n < 8; n++) {
            Thread rest = new Thread(() -> { while (true) { kept = java.nio.ByteBuffer.allocateDirect(5000);
                try { Thread.sleep(5); } catch (InterruptedException e) { return; } } });
            rest.setDaemon(true);
            rest.start();
        }
        System.out.println("ready");
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            in.nextLine();
            Map<Integer, List<String>> map = new TreeMap<>();
            for (int i = 0; i < 5000; i++) map.computeIfAbsent(i % 97, k -> new ArrayList<>()).add("" + i);
            byte[] packed = new byte[100000];
            java.util.zip.Deflater deflater = new java.util.zip.Deflater();
            deflater.setInput(map.toString().getBytes());
            deflater.finish();
            System.out.println(deflater.deflate(packed));
            deflater.end();
        }
    }
}
"""
GO_WORK = """package main
// #include <stdlib.h>
// #include <string.h>
// static int work(int n) { int s = 0; for (int i = 1; i < n; i++) { char *b = malloc(i); memset(b, i, i); s += b[i - 1] & 7; free(b); } return s; }
import "C"
import ("bufio"; "fmt"; "os"; "sync"; "time")
func main() {
    time.Sleep(time.Millisecond) // its timers have descriptors, from the first on
    fmt.Println("ready")
    in := bufio.NewScanner(os.Stdin)
    for in.Scan() {
        var group sync.WaitGroup
        sums := make([]int, 6)
        for i := range sums {
            group.Add(1)
            go func(i int) { defer group.Done(); words := []string{}
                for n := 0; n < 500; n++ { words = append(words, fmt.Sprint(n)) }
                sums[i] = int(C.work(C.int(300+i))) + len(words) }(i)
        }
        group.Wait()
        fmt.Println(sums)
    }
}
"""
NGINX = """daemon off; worker_processes 1; pid {place}/pid; error_log {place}/log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;
uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
server {{ listen 127.0.0.1:{port}; root {place}/www; gzip on; gzip_types text/plain; }} }}
"""


class Target:
    """A process, and how it is asked. `argv` is run as its leader; `ends` are statuses of an orderly end."""

    def __init__(self, argv, ends=(0, -signal.SIGTERM), **options):
        self.ends = ends
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, env=t.environment(), **options)
        self.pid = self.process.pid

    def end(self):
        """The status, None if that is one of an orderly end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        status = self.process.wait(ANSWER_S)
        return None if status in self.ends else status


class Line(Target):
    """It says "ready", and answers each line with one."""

    def __init__(self, *argv, **options):
        super().__init__(argv, stdin=subprocess.PIPE, **options)
        self.ends = (0,)
        t.check_equal(f"{argv[0]} begins", self.process.stdout.readline(), b"ready\n")

    def ask(self):
        self.process.stdin.write(b"more\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        status = self.process.wait(ANSWER_S)
        return None if status == 0 else status


class Makers(Target):
    """tests/programs/thread_makers: it looks at its blocks itself, and says at its end that they are sound."""

    def __init__(self, kind, count):
        super().__init__([str(t.PROGRAMS / "thread_makers"), kind, str(count)])
        t.check_equal(f"{kind} begins", self.process.stdout.readline(), b"ready\n")

    def ask(self):
        return self.process.poll()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=ANSWER_S)
        return None if (out, self.process.returncode) == (b"sound\n", 0) else self.process.returncode


class Web(Target):
    def __init__(self, argv, port, path="walk.txt", **options):
        super().__init__(argv, stderr=subprocess.DEVNULL, **options)
        self.url = f"http://127.0.0.1:{port}/{path}"
        t.wait_until(self.answers)

    def answers(self):
        try:
            return bool(self.ask())
        except OSError:
            return False

    def ask(self):
        with urllib.request.urlopen(self.url, timeout=ANSWER_S) as answer:
            return answer.status, answer.read()


class Redis(Target):
    def __init__(self):
        self.port = free_port()
        super().__init__(["redis-server", "--port", str(self.port), "--save", "", "--bind", "127.0.0.1"])
        t.wait_until(self.answers)

    def answers(self):
        try:
            return self.ask()
        except OSError:
            return False

    def ask(self):
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as one:
            text = "x" * 3000
            one.sendall(f"SET k {text}\r\nAPPEND k yes\r\nGET k\r\nEVAL \"return #redis.call('get','k')\" 0\r\nQUIT\r\n".encode())
            parts = []
            while part := one.recv(65536):
                parts.append(part)
        return b"".join(parts)


class Postgres(Target):
    """Each question is a new connection: a fork of the process that is attached to."""

    def __init__(self, place):
        self.place, programs = place, sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        place.mkdir()
        self.as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.as_user:
            shutil.chown(place, "postgres")
        subprocess.run([*self.as_user, f"{programs}/initdb", "-D", place / "d", "-A", "trust", "-U", "walker"], check=True,
                       stdout=subprocess.DEVNULL, cwd=place)
        super().__init__([*self.as_user, f"{programs}/postgres", "-D", str(place / "d"), "-k", str(place), "-c",
                          "listen_addresses=", "-c", "fsync=off"], ends=(0,), stderr=subprocess.DEVNULL, cwd=place)
        t.wait_until(self.ask)
        self.pid = int((place / "d/postmaster.pid").read_text("ascii").split()[0])

    def ask(self):
        return subprocess.run([*self.as_user, "psql", "-h", self.place, "-U", "walker", "-d", "postgres", "-XAtc",
                               "select sum(i), max(md5(i::text)) from generate_series(1, 5000) i"], cwd=self.place,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, env=t.environment()).stdout

    def end(self):
        os.kill(self.pid, signal.SIGINT)
        self.process.stdout.close()
        status = self.process.wait(ANSWER_S)
        return None if status == 0 else status


def make_site():
    place = pathlib.Path("site").resolve()
    (place / "www").mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    (place / "www/walk.txt").write_text("".join(f"stone {i}\n" for i in range(3000)))
    (place / "www/walk.php").write_text("<?php $a = []; for ($i = 0; $i < 5000; $i++) $a[$i % 97][] = \"s$i\";"
                                        " echo md5(serialize($a)), strlen(json_encode($a));")
    return place


def nginx(is_worker):
    place, port = make_site(), free_port()
    (place / "nginx.conf").write_text(NGINX.format(place=place, port=port))
    target = Web(["/usr/sbin/nginx", "-p", str(place), "-c", str(place / "nginx.conf")], port)
    if is_worker:
        target.pid = t.children_of(target.pid)[0]
    return target


def php():
    port = free_port()
    return Web(["php", "-n", "-S", f"127.0.0.1:{port}", "-t", str(make_site() / "www")], port, "walk.php")


def python_server():
    port = free_port()
    argv = [t.PYTHON, "-m", "http.server", "-b", "127.0.0.1", "-d", str(make_site() / "www"), str(port)]
    return Web(argv, port)


def java(*options):
    pathlib.Path("Work.java").write_text(JAVA_WORK)
    subprocess.run(["javac", "Work.java"], check=True)
    return Line("java", "-Xmx96m", *options, "-cp", ".", "Work")


def go():
    pathlib.Path("go").mkdir(exist_ok=True)
    pathlib.Path("go/work.go").write_text(GO_WORK)
    env = {"GOCACHE": t.GO_CACHE, "GO111MODULE": "off", "GOFLAGS": "", "HOME": os.getcwd()}
    subprocess.run(["go", "build", "-o", "work", "work.go"], check=True, cwd="go", env=t.environment(env))
    return Line("go/work")


# (kind, name, what it needs, how it is started)
TARGETS = [
    ("service", "redis-server", "redis-server", Redis),
    ("service", "nginx, worker", "nginx", lambda: nginx(True)),
    ("service", "nginx, master", "nginx", lambda: nginx(False)),
    ("service", "php -S", "php", php),
    ("service", "python http.server", t.PYTHON, python_server),
    ("service", "PostgreSQL", "psql", lambda: Postgres(pathlib.Path("pg").resolve())),
    ("service", "lua", "lua5.4", lambda: Line("lua5.4", "-e", LUA_WORK)),
    ("service", "perl", "perl", lambda: Line("perl", "-e", PERL_WORK)),
    ("thread makers", "16, joined", "gcc", lambda: Makers("joined", 16)),
    ("thread makers", "8, pools", "gcc", lambda: Makers("pool", 8)),
    ("thread makers", "1, detached", "gcc", lambda: Makers("detached", 1)),
    ("fork makers", "bash", "bash", lambda: Line("bash", "-c", SHELL_FORKS)),
    ("fork makers", "python", t.PYTHON, lambda: Line(t.PYTHON, "-c", PYTHON_FORKS)),
    ("locked memory", "MCL_CURRENT", t.PYTHON, lambda: Line(t.PYTHON, "-c", PYTHON_LOCKED, "1")),
    ("locked memory", "MCL_CURRENT, MCL_FUTURE", t.PYTHON, lambda: Line(t.PYTHON, "-c", PYTHON_LOCKED, "3")),
    ("many threads", "64, that make others", "gcc", lambda: Makers("joined", 64)),
    ("many threads", "200, python", t.PYTHON, lambda: Line(t.PYTHON, "-c", PYTHON_WORK, "200")),
    ("Python", "threads", t.PYTHON, lambda: Line(t.PYTHON, "-c", PYTHON_WORK, "4")),
    ("Java", "G1", "javac", java),
    ("Go with cgo", "6 goroutines", "go", go),
]
