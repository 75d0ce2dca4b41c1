#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=php: the frames of PHP code of native allocations are those that debug_backtrace tells at the same
time, at calls of many kinds, with and without opcache, and with its JIT (CAIRN_LONG=1: at 100,000 calls each way).
Sampled stacks have them, those of a php that was attached to, and those of requests one after another. The native frames
between are where they belong. Without the option a line of the report says so, and other versions are refused by name."""

import collections
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import urllib.request

import cairn_test as t
from attached import Attached
from told_frames import is_code, told_stacks

CALLS = 100000 if os.environ.get("CAIRN_LONG") else 4000
BYTES = 12345  # of each block that calls.php allocates by native code
place = t.fresh_path("php")
os.makedirs(place)
told, program = f"{place}/told", f"{place}/calls.php"
OPCACHE = ["-d", "opcache.enable_cli=1"]
MODES = {
    "plain": [],
    "opcache": OPCACHE,
    "JIT of functions": [*OPCACHE, "-d", "opcache.jit_buffer_size=32M", "-d", "opcache.jit=1205"],
    "JIT of traces": [*OPCACHE, "-d", "opcache.jit_buffer_size=32M", "-d", "opcache.jit=tracing"],
}


def said(frame):
    return f"{frame['function']}:{frame['file'] or ''}:{frame['line'] or 0}"


def stacks_of(recording, mode):
    """Of the blocks of calls.php, without the native function itself, which PHP lists as one of its own."""
    stacks = collections.Counter()
    for stack in t.report(recording, "--by", "calls")["stacks"]:
        frames = [frame for frame in stack["frames"] if is_code(frame)]
        if stack["allocated_bytes"] != BYTES * stack["allocations"] or not frames:
            continue
        t.check_equal(f"{mode}: the innermost of PHP's own", frames[0]["function"], "malloc")
        stacks["\t".join(map(said, frames[1:]))] += stack["allocations"]
    return stacks


def compare(php, mode, options):
    result, recording = t.record([php, *options, program, told, str(CALLS)], options=["--frames=php"])
    t.check_equal(f"{mode}: status", (result.status, result.out, result.err), (0, b"", b""))
    wanted, found = told_stacks(told), stacks_of(recording, mode)
    t.check(sum(wanted.values()) >= CALLS and len(wanted) > 300, f"{mode}: {sum(wanted.values())} calls were told")
    lost, more = wanted - found, found - wanted
    t.check_equal(f"{mode}: stacks that differ", (sum(lost.values()), sum(more.values())), (0, 0))
    for stack in list(lost)[:2] + list(more)[:2]:
        print(mode, "told" if stack in lost else "recorded", stack)
    return recording


def order(php):
    """Each call of PHP's loop has the functions inside that it runs: usort stands between its caller and the function that
    compares, and so do native frames."""
    script = pathlib.Path(place) / "order.php"
    script.write_text("<?php\n$native = FFI::cdef('void *malloc(size_t);');\n"
                      "function compare($a, $b) { global $native; $native->malloc(54321); return 0; }\n"
                      "function sorts() { $list = [2, 1]; usort($list, 'compare'); }\nsorts();\n", encoding="ascii")
    _, recording = t.record([php, str(script)], options=["--frames=php"])
    stack = next(stack for stack in t.report(recording)["stacks"] if stack["allocated_bytes"] == 54321)
    kinds = [frame["function"] if is_code(frame) else "native" for frame in stack["frames"]]
    names = [kind for kind, before in zip(kinds, [None] + kinds) if kind != before]
    t.check_equal("order", names, ["native", "malloc", "compare", "native", "usort", "sorts", "{main}", "native"])


def sampled(php):
    options = ["--frames=php", "--sample", "--rate", "100K", "--seed", "1"]
    _, recording = t.record([php, program, told, str(CALLS)], options=options)
    wanted, found = told_stacks(told), collections.Counter()
    for stack in t.report(recording, "--focus", r"^Told\\leaf$")["stacks"]:
        frames = [frame for frame in stack["frames"] if is_code(frame)]
        if frames[0]["function"] == "malloc":
            found["\t".join(map(said, frames[1:]))] += 1
    t.check(len(found) > 10, f"sampled: {len(found)} stacks")
    t.check_equal("sampled: stacks that were not told", [stack for stack in found if stack not in wanted][:2], [])


def attached(php):
    """FFI keeps malloc's address from before: here PHP itself allocates by malloc."""
    script = pathlib.Path(place) / "waits.php"
    script.write_text("<?php\n$kept = [];\n"
                      "function leaf($i) { global $kept; $kept[] = str_repeat('x', 20000); }\n"
                      "function round_of() { for ($i = 0; $i < 3000; $i++) leaf($i); }\n"
                      "function gone() { for ($i = 0; $i < 3000; $i++) $made = str_repeat('y', 30000); }\n"
                      "round_of();\necho \"ready\\n\";\nfgets(STDIN);\nround_of();\ngone();\necho \"done\\n\";\nfgets(STDIN);\n",
                      encoding="ascii")
    with t.Process([php, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"USE_ZEND_ALLOC": "0"}) as process:
        t.check_equal("attached: it starts", process.stdout.readline(), b"ready\n")
        beside = Attached(process.pid, "--frames=php", "--exact")
        process.stdin.write(b"\n")
        process.stdin.flush()
        t.check_equal("attached: it goes on", process.stdout.readline(), b"done\n")
        beside.leave()
        found, report = collections.Counter(), t.report(beside.path)
        t.check_equal("attached: frees by the address that PHP keeps are seen", report["trust"]["lost"], {})
        for stack in report["stacks"]:
            found["\t".join(said(frame) for frame in stack["frames"] if is_code(frame))] += stack["allocations"]
        t.check_equal("attached: calls with their functions and lines",
                      found[f"str_repeat::0\tleaf:{script}:3\tround_of:{script}:4\t{{main}}:{script}:9"], 3000)
        t.check_equal("attached: it ends", process.communicate()[0], b"")
        t.check_equal("attached: its status", process.wait(t.PATIENCE_S), 0)


def hinted(php):
    """The summary says who has the memory of scripts, which is true with malloc as PHP's allocator and without."""
    for env in ({}, {"USE_ZEND_ALLOC": "0"}):
        said_of = t.run([t.CAIRN, "run", "-o", f"{t.fresh_path('hinted')}.cairn", "--", php, "-n", "-r", "echo 1;"], env={**os.environ, **env}).err
        t.check(b"PHP: malloc has the memory of scripts with USE_ZEND_ALLOC=0; else PHP maps it in chunks" in b" ".join(said_of.split()), f"{env}: {said_of}")


def served(php):
    """Requests end, and the next one has other functions, mostly where those of the last one were."""
    for name in ("ones", "twos"):
        (pathlib.Path(place) / f"{name}.php").write_text(
            f"<?php\nfunction {name}($n) {{ $made = new DOMDocument; while ($n--) $made->createElement('x'); }}\n"
            f"{name}(100);\necho '{name}';\n", encoding="ascii")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    recording = f"{t.fresh_path('served')}.cairn"
    server = [php, "-n", "-d", "extension=dom", "-S", address, "-t", place]
    with t.Process([t.CAIRN, "run", "-q", "--frames=php", "-o", recording, "--", *server],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for name in ["ones", "twos"] * 5:
            t.check_equal("served: an answer", answer(f"http://{address}/{name}.php"), name)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=t.PATIENCE_S)
    calls = collections.Counter()
    for stack in t.report(recording)["stacks"]:
        names = [said(frame) for frame in stack["frames"] if is_code(frame)]
        if names[:1] == ["DOMDocument::createElement::0"]:
            calls["\t".join(names[1:])] += stack["allocations"]
    wanted = [f"{name}:{place}/{name}.php:2\t{{main}}:{place}/{name}.php:3" for name in ("ones", "twos")]
    t.check_equal("served: who allocates", sorted(calls), wanted)
    t.check_equal("served: as much each", len(set(calls.values())), 1)


def ask_fpm(path, script):
    """One request over FastCGI."""
    def record(kind, body):
        return struct.pack("!BBHHBx", 1, kind, 1, len(body), 0) + body
    words = {"SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET"}
    pairs = b"".join(bytes([len(name), len(value)]) + f"{name}{value}".encode() for name, value in words.items())
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(t.PATIENCE_S)
        sock.connect(path)
        sock.sendall(record(1, b"\0\1\0" + bytes(5)) + record(4, pairs) + record(4, b"") + record(5, b""))
        answer, said = b"".join(iter(lambda: sock.recv(65536), b"")), b""
    while answer:
        _, kind, _, length, padding = struct.unpack("!BBHHBx", answer[:8])
        said, answer = said + (answer[8:8 + length] if kind == 6 else b""), answer[8 + length + padding:]
    return said.split(b"\r\n\r\n", 1)[-1].decode()


def served_by_fpm():
    """PHP opens opcache and its extensions with RTLD_DEEPBIND: what a worker has recorded as live is what glibc says is in use, block
    by block, after requests that its JIT compiled."""
    fpm = next(iter(sorted(pathlib.Path("/usr/sbin").glob("php-fpm*"))), None)
    if not fpm or os.getuid():
        return t.skip_part("PHP's fpm is not installed (php8.2-fpm), or this is not root, as which it runs here")
    script, config, sock = (os.path.abspath(f"{place}/{name}") for name in ("fpm.php", "fpm.conf", "fpm.sock"))
    pathlib.Path(script).write_text(
        "<?php\nfunction build($n) { for ($i = $x = 0; $i < $n; $i++) { $made = new DOMDocument; $made->loadXML('<a><b/></a>');\n"
        "$kept[] = $made; for ($j = 0; $j < 1000; $j++) $x += $j * $i; } return $x + count($kept); }\n"
        "echo build(200), json_encode(opcache_get_status(false)['jit']['on']);\n", encoding="ascii")
    pathlib.Path(config).write_text(f"[global]\nerror_log = {place}/fpm.log\n[www]\nlisten = {sock}\nuser = root\n"
                                    "group = root\npm = static\npm.max_children = 1\nclear_env = no\n", encoding="ascii")
    options = [f"-d{one}" for one in ("opcache.enable=1", "opcache.jit_buffer_size=32M", "opcache.jit=tracing")]
    recording = t.fresh_path("fpm")
    with t.Process([t.CAIRN, "run", "-q", "-o", recording, "--", str(fpm), "-F", "-R", "-y", config, *options],
                   env={"USE_ZEND_ALLOC": "0"}) as process:
        t.wait_until(lambda: os.path.exists(sock))
        said = {ask_fpm(sock, script) for _ in range(5)}
        t.check_equal("fpm: answers", said, {"9940050200true"})
        master = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()[0])
        worker = pathlib.Path(f"/proc/{master}/task/{master}/children").read_text(encoding="ascii").split()[0]
        found = t.answer(worker, "heap")
        os.kill(master, signal.SIGQUIT)
        t.check_equal("fpm: its end", process.wait(t.PATIENCE_S), 0)
    kinds = {"live": "live_blocks", "in use": "used_blocks"}
    counts = {kind: sum(row.get(key, 0) for row in found["heap"] if row["part"] == "size") for kind, key in kinds.items()}
    t.check(counts["live"] > 10000, f"fpm: blocks are live: {counts}")
    t.check_equal("fpm: live, as glibc has it but for its own block a thread", counts["live"], counts["in use"] - found["threads"])
    t.check_equal("fpm: lost", [t.report(one)["trust"]["lost"] for one in pathlib.Path(recording).glob("*.cairn")], [{}, {}])


def answer(address):
    """Waits for the server."""
    text = []

    def is_answered():
        try:
            with urllib.request.urlopen(address) as opened:
                text.append(opened.read().decode())
        except OSError:
            return False
        return True

    t.wait_until(is_answered)
    return text[-1] if text else None


def without(php):
    _, recording = t.record([php, program, told, "100"])
    text = t.run_cairn("report", recording).out.decode()
    t.check("PHP: its own frames are missing, --frames=php records them" in text, text)
    _, recording = t.record([php, program, told, "100"], options=["--frames=php"])
    text = t.run_cairn("report", "--view", "stacks", "--by", "calls", "--top", "0", recording).out.decode()
    t.check("PHP: its own frames" not in text and "Told\\leaf" in text, text[:2000])
    t.check("stacks have its frames" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


def other_versions():
    """What says that it is another PHP, or one for threads, which has its globals elsewhere."""
    source, false = pathlib.Path(place) / "false.c", f"{place}/false"
    for version, globals_, text in (("4.7.1", "executor_globals", "PHP 8.7: its frames are missing, cairn reads those of"),
                                    ("4.2.1", "others", "PHP built for threads, or of unknown version"),
                                    ("4.2.1", "executor_globals", None)):
        source.write_text("#include <stdlib.h>\n"
                          f"long {globals_}[300] = {{[0 ... 299] = 0x4242424242424242}};\nvoid execute_ex(void) {{}}\n"
                          f"const char *get_zend_version(void) {{ return \"Zend Engine v{version}, Copyright\"; }}\n"
                          "int main(void) { for (int i = 0; i < 2000; i++) if (!malloc(5000)) return 1; return 0; }\n",
                          encoding="ascii")
        t.check_equal("gcc", t.run(["gcc", "-rdynamic", "-o", false, str(source)]).status, 0)
        result, recording = t.record([false], options=["--frames=php"])
        t.check_equal(f"{version}: status", (result.status, result.err), (0, b""))
        shown = t.run_cairn("report", recording).out.decode()
        t.check(not text or text in shown, f"{version}: {shown[-800:]}")


t.need("gcc")
other_versions()
found = shutil.which("php")
if not found:
    t.cannot_run_here("php is not installed")
version = t.run([found, "-r", "echo PHP_VERSION, PHP_ZTS, (int)extension_loaded('FFI');"]).out.decode()
if not version.startswith(("8.2.", "8.4.")) or not version.endswith("01"):
    t.cannot_run_here(f"this php ({version}) is not one of those that are read, or it has no FFI")
shutil.copy(f"{t.SOURCE}/tests/programs/calls.php", program)
for mode, options in MODES.items():
    compare(found, mode, options)
order(found)
sampled(found)
attached(found)
hinted(found)
if b"dom" in t.run([found, "-n", "-d", "extension=dom", "-m"]).out:
    served(found)
else:
    t.skip_part("PHP's extension dom is not installed")
served_by_fpm()
without(found)
t.finish()
