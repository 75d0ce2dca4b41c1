#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names from everywhere: a program whose files were moved away, a tree of another machine, a local
debuginfod server; and names as the user wants them."""

import http.server
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import cairn_test as t
from ports import free_port

t.need("g++", "objcopy", "strip")

SOURCE = """
#include <cstdlib>
#include <string>
#include <vector>
static std::vector<void *> kept;
namespace pool { __attribute__((noinline)) void *pool_get(size_t size) { return malloc(size); } }
__attribute__((noinline)) static void fill(const std::vector<int> &sizes) {
    auto put = [](int size) __attribute__((noinline)) {
        kept.push_back(pool::pool_get((size_t)size));
        __asm__ volatile("");
    };
    for (int size : sizes) put(size);
}
int main() {
    fill({12345, 12345});
    return kept.size() == 2 ? 0 : 1;
}
"""
HERE = pathlib.Path.cwd()
CLOSURE_LINE = 1 + SOURCE[:SOURCE.index("auto put")].count("\n")


COPIES = """
#include <set>
std::set<int> *kept;
int main() {
    std::set<int> keys;
    for (int i = 0; i < 10; i++) keys.insert(i);
    kept = new std::set<int>(keys);
    return 0;
}
"""


def check_halves():
    """A constructor of the library that is split in two and inlined into itself: --all-frames has both."""
    pathlib.Path("copies.cc").write_text(COPIES)
    t.check_equal("copies: g++", t.run(["g++", "-g", "-O2", "-o", "copies", "copies.cc"]).status, 0)
    _, path = t.record(["./copies"])
    places = {}
    for stack in t.report(path, "--all-frames")["stacks"]:
        for frame in stack["frames"]:
            if frame["module"].endswith("/copies"):
                places.setdefault(frame["offset"], {})[(frame["function"], frame["line"])] = True
    for offset, named in places.items():
        said = t.run(["addr2line", "-i", "-e", "copies", hex(offset)]).out.decode().split()
        t.check_equal(f"copies: frames at {offset:#x}: {named}", len(named), len([line for line in said if ":" in line]))

def build(directory, *options):
    """The program, stripped, with its debug file beside it."""
    directory.mkdir(parents=True)
    (directory / "fill.cc").write_text(SOURCE)
    commands = [["g++", "-g", "-O1", *options, "-o", "fill", str(directory / "fill.cc")],
                ["objcopy", "--only-keep-debug", "fill", "fill.debug"], ["strip", "fill"],
                ["objcopy", "--add-gnu-debuglink=fill.debug", "fill"]]
    for command in commands:
        t.check_equal(" ".join(command), t.run(command, cwd=directory).status, 0)
    return directory / "fill"


def frames(path, *options, env=None):
    """The frames of the large blocks' stack."""
    found = t.run_cairn("report", "--json", *options, path, env=env)
    if not t.check_equal(f"report {options}", (found.status, found.err), (0, b"")):
        return []
    stacks = [s for s in t.json.loads(found.out)["stacks"] if s["allocated_bytes"] == 2 * 12345]
    return stacks[0]["frames"] if t.check(len(stacks) == 1, f"stacks: {stacks}") else []


def names(path, *options, env=None):
    return [frame["function"] for frame in frames(path, *options, env=env)]


def check_named(what, got):
    wanted = ["pool::pool_get", f"fill::{{lambda fill.cc:{CLOSURE_LINE}}}", "fill", "main"]
    t.check_equal(what, [name for name in got if name in wanted], wanted)


def check_unnamed(what, got):
    t.check("fill" not in got and "main" not in got, f"{what}: {got}")


def info(path, *options):
    return t.run_cairn("info", *options, path).out.decode()


(HERE / "cache").write_text("")  # no directory: nothing that was looked up is kept for the next report
program = build(HERE / "built")
_, recording = t.record([str(program)], options=("--symbols", "none"))
check_named("beside the program", names(recording))
t.check(f"functions and lines of {program}.debug" in info(recording), "info tells the file")

# as the user wants them
files = {frame["file"] for frame in frames(recording, f"--source-map={HERE}/built=/src")}
t.check("/src/fill.cc" in files, f"--source-map: {files}")
whole = names(recording, "--full-names")
t.check(any(name and name.startswith("fill(std::vector<int, std::allocator<int> > const&)")
            for name in whole), f"--full-names: {whole}")
renamed = names(recording, "--rename", "s/^pool::(.*)$/\\1 of the pool/")
t.check("pool_get of the pool" in renamed, f"--rename: {renamed}")
(HERE / "rules").write_text("# ours\nallocator pool::*\nshow main\n")
for options, shown in (((), "pool::pool_get"), (("--internal-frames", "rules"), "fill::{lambda")):
    screen = t.run_cairn("report", *options, recording).out.decode()
    first = [line for line in screen.splitlines() if "24.1 KiB        2 blocks" in line]
    t.check(len(first) == 1 and shown in first[0], f"{options}: {first}")
for wrong in (("--rename", "s/(/x/"), ("--internal-frames", "/nonexistent"), ("--sysroot", "rules"),
              ("--source-map", "x"), ("--debug-dir", "/nonexistent"), ("--debuginfod",)):
    result = t.run_cairn("report", *wrong, recording, env={"DEBUGINFOD_URLS": ""})
    t.check_equal(f"{wrong}", (result.status, result.out), (2, b""))
    t.check(wrong[0].encode() in result.err, f"{wrong}: {result.err}")

# the debug file elsewhere, then everything elsewhere
shutil.move(f"{program}.debug", HERE / "elsewhere.debug")
check_unnamed("without the debug file", names(recording))
tree = HERE / "tree"
(tree / "files").mkdir(parents=True)
shutil.move(HERE / "elsewhere.debug", tree / "files/fill.debug")
check_named("--debug-dir", names(recording, "--debug-dir", tree / "files"))
root = HERE / "root"
(root / str(program.parent)[1:]).mkdir(parents=True)
shutil.move(program, root / str(program)[1:])
check_unnamed("without anything", names(recording))
shutil.copy(tree / "files/fill.debug", root / (str(program)[1:] + ".debug"))
check_named("--sysroot", names(recording, "--sysroot", root))

# the same path, but another program
build(HERE / "other", "-DOTHER")
shutil.copy(HERE / "other/fill", program)
shutil.copy(HERE / "other/fill.debug", f"{program}.debug")
check_unnamed("another program in its place", names(recording))
t.check("build-id differs" in info(recording), "info says that the file is another one")


def wait_for(server, port):
    def listens():
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0
    t.wait_until(lambda: server.poll() is not None or listens(), pause=0.1)
    return server.poll() is None


def check_server():
    port = free_port()
    command = ["debuginfod", "-p", str(port), "-d", ":memory:", "-F", str(tree / "files")]
    with t.Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            if not t.check(wait_for(server, port), "debuginfod does not start"):
                return
            env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{port}",
                   "DEBUGINFOD_CACHE_PATH": str(HERE / "downloads")}
            check_unnamed("servers are not asked by themselves", names(recording, env=env))
            t.check(not (HERE / "downloads").exists(), "nothing is downloaded unasked")
            def names_by_server():
                shutil.rmtree(HERE / "downloads", ignore_errors=True)
                got = names(recording, "--debuginfod", env=env)
                return got if "main" in got else None
            # it may still be reading its files
            check_named("--debuginfod", t.wait_until(names_by_server, pause=0.2) or [])
        finally:
            server.terminate()


class Endless(http.server.BaseHTTPRequestHandler):
    """Sends a debug file that never ends."""
    asked = threading.Event()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        self.asked.set()
        try:
            while True:
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.05)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def check_cancel():
    """Ctrl-C, which goes to the terminal's whole process group, ends the download and not the report."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}",
           "DEBUGINFOD_CACHE_PATH": str(HERE / "cancelled"), "XDG_CACHE_HOME": str(HERE / "none")}
    with t.Process([t.CAIRN, "report", "--debuginfod", recording], env=t.environment(env),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as report:
        asked = Endless.asked.wait(t.TIMEOUT_S)
        os.killpg(report.pid, signal.SIGINT)
        try:
            out, err = report.communicate(timeout=t.TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(report.pid, signal.SIGKILL)
            out, err = report.communicate()
    server.shutdown()
    t.check(asked, "the server was asked")
    t.check_equal("status after Ctrl-C", report.returncode, 0)
    t.check(b"24.1 KiB        2 blocks" in out, f"the report is there: {out}")
    t.check(b"debuginfod: downloading was cancelled" in out + err, f"it says why: {out} {err}")


if shutil.which("debuginfod"):
    check_server()
if shutil.which("debuginfod-find"):
    check_cancel()
check_halves()
t.finish()
