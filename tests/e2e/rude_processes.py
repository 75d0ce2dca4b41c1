#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that misbehave at the socket where recordings are handed out (silence, garbage, floods) keep no
other process waiting and do not harm the run; neither does a recording that takes long to write, or one
whose owner filled it with nonsense."""

import json
import mmap
import os
import resource
import shlex
import socket
import struct
import subprocess
import sys
import time

import cairn_test as t

HELLO = struct.Struct("<IIII64sQ")
MAGIC, VERSION = 0x63616972, 2
HEADER_BYTES = 16384
BIG_BYTES = int(os.environ.get("BIG_BYTES", 256 << 20))
LATENCY_MAX_S = 0.5
CHECKPOINT_S = 10


DESCRIPTORS, _ = resource.getrlimit(resource.RLIMIT_NOFILE)


def connect():
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.settimeout(5)
    link.connect("\0" + os.environ["CAIRN_SOCKET"])
    return link


def hello(version=VERSION):
    """Says hello; returns (descriptor or None, seconds)."""
    start = time.monotonic()
    link = connect()
    link.send(HELLO.pack(MAGIC, version, 0, 0, b"", 0))
    answer, files, _, _ = socket.recv_fds(link, 1, 1)
    link.close()
    if not answer:
        raise RuntimeError("no answer")
    return files[0] if files else None, time.monotonic() - start


def say_nothing():
    """More silent connections than the tool keeps, all open at the same time."""
    links = [connect() for _ in range(min(400, DESCRIPTORS // 2))]
    _, seconds = hello()
    for link in links:
        link.close()
    return seconds


def say_garbage():
    for length in (1, 15, 17, 4096, 60000):
        link = connect()
        link.send(os.urandom(length))
        try:
            link.recv(1)
        except OSError:
            pass
        link.close()
    file, _ = hello(version=99)
    if file is not None:
        raise RuntimeError("another version was given a recording")
    return hello()[1]


def flood():
    """The same process again and again, half of it without waiting for the answer."""
    for _ in range(min(500, DESCRIPTORS // 4)):  # each costs the tool one
        link = connect()
        link.send(HELLO.pack(MAGIC, VERSION, 0, 0, b"", 1 << 40))
        link.close()
        os.close(hello()[0])
    return hello()[1]


def header(sections):
    """The first bytes of a running process' recording with these (kind, entry, offset, used)."""
    data = bytearray(HEADER_BYTES)
    struct.pack_into("<8sIIQQIIIII", data, 0, b"cairn\r\n\x1a", VERSION, HEADER_BYTES, 0, 0, 1, 0, 62, 0,
                     len(sections))
    struct.pack_into("<II", data, 0x44, os.getpid(), os.getppid())
    struct.pack_into("<QQ", data, 0x60, time.time_ns(), time.monotonic_ns())
    for index, (kind, entry, offset, used) in enumerate(sections):
        struct.pack_into("<IIQQQ", data, 0x188 + 32 * index, kind, entry, offset, used, used)
    data[0x2000:0x2005] = b"rude\0"
    return data


def nonsense():
    """Section tables that lead outside, and headers full of ones."""
    for sections in ([(3, 128, 1 << 62, 1 << 62)], [(3, 128, HEADER_BYTES, (1 << 64) - 1)],
                     [(7, 4, 0, 1 << 33)] * 24):
        file, _ = hello()
        with mmap.mmap(file, 1 << 20) as memory:
            memory[:HEADER_BYTES] = header(sections)
        os.close(file)
    file, seconds = hello()
    with mmap.mmap(file, 1 << 20) as memory:
        memory[:] = b"\xff" * (1 << 20)
    return seconds


def big():
    """A recording that takes a while to write, and the longest wait of others while it is written."""
    file, _ = hello()
    with mmap.mmap(file, HEADER_BYTES + BIG_BYTES) as memory:
        for at in range(0, BIG_BYTES, 1 << 20):
            memory[HEADER_BYTES + at:HEADER_BYTES + at + (1 << 20)] = b"\x01" * (1 << 20)
        memory[:HEADER_BYTES] = header([(7, 4, HEADER_BYTES, BIG_BYTES)])
    end, longest = time.monotonic() + CHECKPOINT_S + 4, 0.0
    while time.monotonic() < end:
        done = subprocess.run([sys.executable, __file__, "hello"], stdout=subprocess.PIPE, check=True)
        longest = max(longest, json.loads(done.stdout))
        time.sleep(0.02)
    return longest


PARTS = {"silence": say_nothing, "garbage": say_garbage, "flood": flood, "nonsense": nonsense,
         "big": big, "hello": lambda: hello()[1]}

if len(sys.argv) > 1:
    print(json.dumps(PARTS[sys.argv[1]]()))
    sys.exit(0)

# As programs of a run, without the library: only what they say at the socket counts. Afterwards an
# ordinary program records as ever.
SCRIPT = f'''
for part in silence garbage flood nonsense big; do
    env -u LD_PRELOAD {t.PYTHON} {shlex.quote(os.path.abspath(__file__))} $part || echo failed $part
done
exec {shlex.quote(t.program("leak")[0])}
'''
result, path = t.record(["sh", "-c", SCRIPT], timeout=120)
print(result.out.decode(), result.err.decode())
t.check_equal("status", result.status, 3)
waits = [line for line in result.out.decode().splitlines() if line[:1].isdigit()]
t.check_equal("parts that ended well", len(waits), 5)
for wait in waits:
    t.check(float(wait) < LATENCY_MAX_S, f"an answer took {wait} s")
shown = t.run_cairn("report", path)
t.check_equal("report: status", shown.status, 0)
t.check(b"leak" in shown.out, f"report: {shown.out[:600]}")
whole = t.report(path, "--top", "5")
leaks = [one for one in whole["processes"] if "leak" in one["process"]["command"]]
t.check_equal("the ordinary program's recording", len(leaks), 1)
t.finish()
