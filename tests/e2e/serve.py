#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn serve` of one process: profiles as go tool pprof reads them, metrics as promtool does, the recording,
the page's data and events; requests and clients that are no good; processes that end or execute another program."""

import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import cairn_test as t
from commanded import Commanded
from page_data import read_page
from served import Server, basic

t.need("go")
HOME = {"HOME": os.getcwd(), "GOFLAGS": "", "GOCACHE": os.getcwd() + "/go-cache", "PPROF_TMPDIR": os.getcwd()}
TYPES = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]


def pprof(*words):
    result = t.run(["go", "tool", "pprof", *words], env=HOME)
    t.check_equal(f"pprof {words}: {result.err.decode(errors='replace')}", result.status, 0)
    return result.out.decode()


def read_raw(text):
    """Types, the usual one, and the sums by type of a `pprof -raw`."""
    lines = text.split("\nSamples:\n")[1].split("Locations\n")[0].splitlines()
    values = [list(map(int, line.split(":")[0].split())) for line in lines[1:] if re.match(r"[ \d-]*\d: ", line)]
    types = lines[0].split()
    usual = [one.removesuffix("[dflt]") for one in types if one.endswith("[dflt]")]
    types = [one.removesuffix("[dflt]") for one in types]
    return types, usual, dict(zip(types, map(sum, zip(*values))))


def check_profiles(server, program):
    found = t.report(program.pid)
    for path, usual in (("heap", "inuse_space/bytes"), ("allocs?gc=1", "alloc_space/bytes")):
        types, told, sums = read_raw(pprof("-raw", f"{server.url}/debug/pprof/{path}"))
        t.check_equal(f"{path}: types", (types, told), (TYPES, [usual]))
        wanted = [found["totals"]["allocations"], found["totals"]["allocated_bytes"], found["at_exit"]["blocks"],
                  found["at_exit"]["bytes"]]
        t.check_equal(f"{path}: sums", sums, dict(zip(TYPES, wanted)))
    top = pprof("-top", f"{server.url}/debug/pprof/heap")
    t.check(re.search(r"early", top), f"pprof -top: {top}")


def check_span(server, program):
    """While the answer is made, the program goes on allocating: in it is what came meanwhile, and nothing else."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(server.get("/debug/pprof/allocs?seconds=1")))
    asking.start()
    while asking.is_alive():
        program.do("late 1000", "free 1")
        asking.join(0.02)
    t.check_equal("span: status", answers[0].status, 200)
    open("span.pb.gz", "wb").write(answers[0].body)
    text = pprof("-raw", "span.pb.gz")
    types, _, sums = read_raw(text)
    t.check_equal("span: types", types, TYPES)
    t.check(sums["alloc_space/bytes"] > 0 and sums["alloc_space/bytes"] == 1000 * sums["alloc_objects/count"],
            f"span: {sums}")
    t.check("late" in text and "early" not in pprof("-top", "-sample_index=alloc_space", "span.pb.gz"), f"span: {text}")
    t.check(float(re.search(r"^Duration: ([\d.]+)", text, re.M)[1]) >= 1, "span: duration")


def check_metrics(server, program):
    found, got = t.report(program.pid), server.metrics()
    build = [name for name in got if name.startswith("cairn_build_info{version=")]
    t.check_equal("which cairn serves", len(build), 1)
    wanted = {"cairn_process_running": 1, "cairn_inuse_bytes": found["at_exit"]["bytes"],
              "cairn_inuse_blocks": found["at_exit"]["blocks"], "cairn_peak_inuse_bytes": found["peak"]["bytes"],
              "cairn_allocated_bytes_total": found["totals"]["allocated_bytes"],
              "cairn_allocations_total": found["totals"]["allocations"], "cairn_frees_total": found["totals"]["frees"],
              "cairn_failed_allocations_total": 0, "cairn_sample_interval_bytes": 1}
    t.check_equal("metrics", {name: got.get(name) for name in wanted}, wanted)
    t.check(got.get("process_resident_memory_bytes", 0) > 0, f"metrics: {got}")
    answer = server.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    t.check(answer.headers["Content-Type"].startswith("application/openmetrics-text") and answer.text.endswith("# EOF\n")
            and "# TYPE cairn_allocations counter" in answer.text, f"OpenMetrics: {answer.text}")
    if not shutil.which("promtool"):
        t.skip_part("promtool (Debian's prometheus) is not installed")
        return
    result = t.run(["promtool", "check", "metrics"], stdin=server.get("/metrics").body)
    t.check_equal("promtool check metrics", (result.status, result.out + result.err), (0, b""))


def check_files(server, program):
    answer = server.get("/profile.cairn")
    t.check_equal("profile.cairn", (answer.status, "attachment" in answer.headers["Content-Disposition"]), (200, True))
    open("profile.cairn", "wb").write(answer.body)
    t.check_equal("profile.cairn: sums", t.sums_by_measure(t.report("profile.cairn")), t.sums_by_measure(t.report(program.pid)))
    raw = gzip.decompress(server.get("/debug/pprof/heap").body)
    t.check_equal("symbol", server.get("/debug/pprof/symbol").text, "num_symbols: 1\n")
    t.check(b"early" in raw, "names are in the profile")
    line = next(one for one in pprof("-raw", f"{server.url}/debug/pprof/heap").splitlines() if re.search(r": 0x\w+ M=1 early", one))
    address = re.search(r"0x\w+", line)[0]
    answer = server.ask("POST", "/debug/pprof/symbol", f"{address}+0x1")
    t.check(f"{address}\tearly\n0x1\t" in answer.text, f"symbol: {answer.text}")


def check_page(server, program):
    page = server.get("/")
    open("page.html", "wb").write(page.body)
    t.check("connect-src 'self'" in page.text and 'data-live="1"' in page.text, "the page is live")
    _, chunks = read_page("page.html")
    held = sum(dict(chunks)["stack.at_exit_bytes"])
    t.check_equal("the page's stacks", held, t.report(program.pid)["at_exit"]["bytes"])
    data = server.get("/live.data")
    t.check(data.status == 200 and int(data.headers["X-Next-Milliseconds"]) > 0 and len(data.body) < len(page.body), "live.data")
    connection = server.connect()
    connection.request("GET", "/live")
    stream = connection.getresponse()
    t.check_equal("events", stream.headers["Content-Type"], "text/event-stream")
    events = []
    while len(events) < 2:
        line = stream.readline().decode()
        if line.startswith("data: "):
            events.append(json.loads(line[6:]))
    connection.close()
    t.check_equal("an event", (events[0]["live"], events[0]["running"]), (held, True))


def check_refusals(server):
    for path, status in (("/nothing", 404), ("/debug/pprof/heap?seconds=x", 400), ("/debug/pprof/heap?seconds=3601", 400),
                         ("/debug/pprof/heap?seconds=-1", 400), ("/debug/pprof", 301), ("/pid/1/metrics", 404), ("/%2e%2e/x", 404),
                         ("/metrics?" + "x" * 60000, 414)):
        answer = server.get(path)
        t.check_equal(f"{path[:40]}: {answer.body[:100]}", answer.status, status)
    for method, path, status in (("POST", "/metrics", 405), ("DELETE", "/", 405), ("PUT", "/debug/pprof/symbol", 405),
                                 ("HEAD", "/metrics", 200)):
        t.check_equal(f"{method} {path}", server.ask(method, path).status, status)
    t.check_equal("a large body", server.ask("POST", "/debug/pprof/symbol", "1" * 300000).status, 413)
    t.check_equal("a large header", server.get("/metrics", X="y" * 60000).status, 431)
    for host, status in (("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost:1", 200), ("[::1]:80", 200), ("", 403)):
        t.check_equal(f"Host: {host}", server.get("/metrics", Host=host).status, status)
    for request in (b"GET / HTTP/9.9\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n"):
        line = server.raw(request)
        t.check(re.match(r"HTTP/1\.\d [45]\d\d|$", line), f"{request}: {line}")
    crowd = [socket.create_connection(server.address.rsplit(":", 1)) for _ in range(100)]
    t.check_equal("beside a hundred silent clients", server.get("/metrics").status, 200)
    for one in crowd:
        one.close()


def is_open(silent):
    """It was not closed by the server."""
    try:
        return bool(silent.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False


def check_crowd(program):
    """More connections than there are, of clients without the token that send half a request, keep
    nobody waiting until their time is over: the last of them are open when others have been answered."""
    wrong = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n"
    token = "0123456789abcdef-crowd"
    open("token", "w").write(token + "\n")
    with Server(program.pid, "--token", "token") as server:
        host, port = server.address.rsplit(":", 1)
        for half in (b"GET /metr", wrong):
            silent = []
            for _ in range(200):
                silent.append(socket.create_connection((host, int(port))))
                silent[-1].sendall(half)
            for _ in range(3):
                answer = server.get("/metrics", Authorization=f"Bearer {token}")
                t.check_equal(f"beside {half}", answer.status, 200)
            t.check(any(is_open(one) for one in silent[-32:]), f"answered when the others' time was over: {half}")
            for one in silent:
                one.close()


def check_end(server, program):
    """It ends while an answer is being made."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(server.get("/debug/pprof/allocs?seconds=1").status))
    asking.start()
    program.__exit__()
    asking.join()
    t.check_equal("its end within a span", answers, [200])
    t.wait_until(lambda: server.metrics()["cairn_process_running"] == 0)
    _, _, sums = read_raw(pprof("-raw", f"{server.url}/debug/pprof/heap"))
    t.check_equal("after the end", sums["alloc_space/bytes"], t.report("run.cairn")["totals"]["allocated_bytes"])


def check_exec():
    """The pid stays, the program becomes another one."""
    script = f"read line; exec {' '.join(t.program('commands'))}"
    argv = [t.CAIRN, "run", "-q", "-o", "exec.cairn", "--", "sh", "-c", script]
    with t.Process(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        t.wait_until(lambda: t.children_of(run.pid) and t.is_called(t.children_of(run.pid)[0], "sh"))
        pid = t.children_of(run.pid)[0]
        t.wait_until(lambda: t.run_cairn("report", str(pid)).status == 0)
        with Server(pid) as server:
            t.check(f"sh {pid}" in server.get("/debug/pprof/").text, "before the exec")
            run.stdin.write(b"go\nearly 4321\n")
            run.stdin.flush()
            run.stdout.readline()
            t.wait_until(lambda: f"commands {pid}" in server.get("/debug/pprof/").text)
            t.check("early" in pprof("-top", f"{server.url}/debug/pprof/heap"), "after the exec")
        run.communicate(b"end\n", timeout=t.PATIENCE_S)


def check_name():
    """By name: what has ended stays until another process of that name is recorded."""
    os.mkdir("bin")
    shutil.copy(t.program("commands")[0], "bin/oddly-named")
    own = [os.path.abspath("bin/oddly-named")]
    first = Commanded("first.cairn", program=own)
    first.do("early 1111")
    with Server("oddly-named") as server:
        live = server.metrics()["cairn_inuse_bytes"]
        first.__exit__()
        t.wait_until(lambda: server.metrics()["cairn_process_running"] == 0)
        t.check_equal("it stays", server.metrics()["cairn_inuse_bytes"] > 0, True)
        with Commanded("second.cairn", program=own) as second:
            second.do("early 777777")
            t.wait_until(lambda: server.metrics()["cairn_inuse_bytes"] > live + 700000)
            t.check_equal("the next one", server.metrics()["cairn_process_running"], 1)


def check_addresses(program):
    def refused(what, *words, status=1, **how):
        result = t.run_cairn("serve", *words, **how)
        t.check(result.status == status and what in result.err.decode(), f"serve {words}: {result.status} {result.err}")

    with Server(program.pid, listen="unix:" + os.path.abspath("s.sock")) as server:
        t.check_equal("Unix socket: mode", os.stat("s.sock").st_mode & 0o777, 0o700 & os.stat("s.sock").st_mode)
        t.check_equal("by Unix socket", server.get("/metrics", Host="any.example").status, 200)
        refused("another program listens there", program.pid, "--listen", "unix:" + os.path.abspath("s.sock"))
    t.check(not os.path.exists("s.sock"), "the socket is removed")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind("left.sock")
    with Server(program.pid, listen="unix:" + os.path.abspath("left.sock")) as server:
        t.check_equal("a socket that was left behind", server.get("/metrics").status, 200)
    with Server(program.pid) as server:
        refused("another program listens there", program.pid, "--listen", server.address)
    open("file", "w").close()
    refused("is no socket", program.pid, "--listen", "unix:" + os.path.abspath("file"))
    refused("can be reached from other machines", program.pid, "--listen", "0.0.0.0:0")
    refused("cannot listen on \"here\"", program.pid, "--listen", "here", status=2)
    refused("name one of", status=2)
    refused("not a recording", "file")
    refused("name one of", "--all", program.pid, status=2)
    refused("no process 4194305", "4194305")
    open("token", "w").write("short\n")
    refused("16 characters or more", program.pid, "--token", "token", "--listen", "127.0.0.1:0")
    token = "0123456789abcdef-correct"
    open("token", "w").write(token + "\n")
    with Server(program.pid, "--token", "token", listen="0.0.0.0:0") as server:
        for what, header, status in (("none", None, 401), ("right", "Bearer " + token, 200), ("another", "Bearer " + token + "x", 401),
                                     ("a part", "Bearer " + token[:-1], 401), ("empty", "Bearer ", 401), ("password", basic(token), 200),
                                     ("wrong password", basic("x" + token), 401), ("no base64", "Basic ****", 401), ("no scheme", token, 401)):
            answer = server.get("/metrics", **({"Authorization": header} if header else {}))
            t.check_equal(f"token: {what}", answer.status, status)


def check_refused_process(program):
    """A process of another user's."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        t.skip_part("only root can become another user, by setpriv")
        return
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", t.CAIRN, "serve", program.pid]
    result = t.run(other, env={"HOME": "/nonexistent"})
    if result.status == 126:
        t.skip_part("the other user cannot execute the tool where it lies")
        return
    t.check(result.status == 1 and b"belongs to somebody else" in result.err, f"another user's: {result.err}")


def check_untouched(program):
    """The process is not stopped, sent a signal, or written to: nothing but files are read."""
    calls = "ptrace,kill,tkill,tgkill,pidfd_send_signal,rt_sigqueueinfo,process_vm_readv,process_vm_writev,openat"
    if not shutil.which("strace"):
        t.skip_part("strace is not installed")
        return
    with Server(program.pid, before=["strace", "-f", "-o", "calls", "-e", f"trace={calls}"]) as server:
        for path in ("/", "/live.data", "/metrics", "/profile.cairn", "/debug/pprof/heap?seconds=1", "/debug/pprof/symbol"):
            server.get(path)
        for child in t.children_of(server.process.pid):  # strace does not end by it
            os.kill(child, signal.SIGINT)
        server.process.wait(timeout=t.PATIENCE_S)
    with open("calls", encoding="utf-8", errors="replace") as file:
        seen = file.read().splitlines()
    touched = [line for line in seen if re.search(r"ptrace|kill|signal\(|sigqueue|process_vm", line) or
               (re.search(r"/proc/\d+/|cairn\.cairn", line) and re.search(r"O_WRONLY|O_RDWR", line))]
    t.check(len(seen) > 10 and not touched, f"calls that touch the program: {touched[:5]} of {len(seen)}")


def check_opened(program):
    """`cairn open PID` serves, and gives the browser the address."""
    with open("browser", "w", encoding="ascii") as script:
        script.write(f'#!/bin/sh\necho "$1" >{os.getcwd()}/address.new; mv {os.getcwd()}/address.new {os.getcwd()}/address\n')
    os.chmod("browser", 0o755)
    with Server(program.pid, listen=None, command="open", env={"BROWSER": os.path.abspath("browser")}) as server:
        t.wait_until(lambda: os.path.exists("address"))
        with open("address", encoding="ascii") as address:
            t.check_equal("the browser's address", address.read().strip(), server.url + "/")
        t.check('data-live="1"' in server.get("/").text, "its page")


def check_unit():
    """The units in examples/systemd keep to few rights."""
    if not shutil.which("systemd-analyze"):
        t.skip_part("systemd-analyze is not installed")
        return
    for name in ("cairn-serve", "cairn-push"):
        result = t.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=30",
                        str(t.SOURCE / f"examples/systemd/{name}.service")])
        if b"nrecognized option" in result.err or b"not supported" in result.err:
            t.skip_part("this systemd-analyze cannot look at a unit offline")
            return
        level = re.search(r"exposure level for .*: ([\d.]+)", result.out.decode())
        t.check(level and float(level[1]) <= 2.6, f"{name}: systemd-analyze security: {result.out[-300:]} {result.err}")


def check_handed_on(program):
    """A service manager opens the socket (LISTEN_FDS)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = f"exec 3<&{listener.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec {t.CAIRN} serve {program.pid}"
        with t.Process(["bash", "-c", command], env=t.environment(), pass_fds=[listener.fileno()],
                       stderr=subprocess.PIPE, text=True) as server:
            t.check(f"127.0.0.1:{port}" in server.stderr.readline(), "a socket that was handed on")
            result = t.run(["curl", "-s", f"http://127.0.0.1:{port}/metrics"])
            t.check(b"cairn_inuse_bytes" in result.out, f"a socket that was handed on: {result.out[:100]}")
            server.terminate()


program = Commanded("run.cairn")
program.do("early 100000", "early 5000", "late 300", "free 0")
check_addresses(program)
check_handed_on(program)
check_refused_process(program)
check_untouched(program)
check_opened(program)
check_unit()
with Server(program.pid) as served:
    check_profiles(served, program)
    check_metrics(served, program)
    check_files(served, program)
    check_page(served, program)
    check_refusals(served)
    check_span(served, program)
    check_crowd(program)
    check_end(served, program)
with Server("run.cairn") as served:
    t.check_equal("a recording", served.get("/debug/pprof/heap").status, 200)
    t.check_equal("a recording's metrics", served.metrics()["cairn_allocated_bytes_total"],
                  t.report("run.cairn")["totals"]["allocated_bytes"])
check_exec()
check_name()
t.finish()
