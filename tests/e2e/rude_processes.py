#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that misbehave at the socket where recordings are handed out (silence, garbage, floods) keep no
other process waiting and do not harm the run; neither does a recording that takes long to write, or one
whose owner filled it with nonsense. That nobody waited is seen by what else is the case when the answer is there, not by
a time."""

import mmap
import os
import pathlib
import resource
import shlex
import socket
import struct
import sys
import time

import cairn_test as t

HELLO = struct.Struct("<IIII64sQII")
MAGIC, VERSION = t.format_number("CAIRN_HELLO_MAGIC", "hello.h"), t.format_number("CAIRN_VERSION")
HEADER_BYTES = 16384
BIG_BYTES = int(os.environ.get("BIG_BYTES", 256 << 20))


DESCRIPTORS, _ = resource.getrlimit(resource.RLIMIT_NOFILE)


def connect():
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.settimeout(t.PATIENCE_S)
    link.connect("\0" + os.environ["CAIRN_SOCKET"])
    return link


def hello(version=VERSION):
    """Says hello; returns the descriptor, or None."""
    link = connect()
    link.send(HELLO.pack(MAGIC, version, 0, 0, b"", 0, 0, 0))
    answer, files, _, _ = socket.recv_fds(link, 1, 1)
    link.close()
    if not answer:
        raise RuntimeError("no answer")
    return files[0] if files else None


def is_open(link):
    """The tool has not given it up."""
    link.setblocking(False)
    try:
        return bool(link.recv(1))
    except BlockingIOError:
        return True


def answered_beside_silent_ones():
    """The tool still listens to some of them as it answers. It gives them up after seconds, which may pass meanwhile."""
    links = [connect() for _ in range(min(400, DESCRIPTORS // 2))]
    hello()
    is_first = any(map(is_open, links))
    for link in links:
        link.close()
    return is_first


def say_nothing():
    """More silent connections than the tool keeps, all open at the same time."""
    if not any(answered_beside_silent_ones() for _ in range(20)):
        raise RuntimeError("the silent ones went first")


def say_garbage():
    for length in (1, 15, 17, 4096, 60000):
        link = connect()
        link.send(os.urandom(length))
        try:
            link.recv(1)
        except OSError:
            pass
        link.close()
    if hello(version=99) is not None:
        raise RuntimeError("another version was given a recording")
    hello()


def flood():
    """The same process again and again, half of it without waiting for the answer."""
    for _ in range(min(500, DESCRIPTORS // 4)):  # each costs the tool one
        link = connect()
        link.send(HELLO.pack(MAGIC, VERSION, 0, 0, b"", 1 << 40, 0, 0))
        link.close()
        os.close(hello())
    hello()


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
        file = hello()
        with mmap.mmap(file, 1 << 20) as memory:
            memory[:HEADER_BYTES] = header(sections)
        os.close(file)
    with mmap.mmap(hello(), 1 << 20) as memory:
        memory[:] = b"\xff" * (1 << 20)


def being_written(pid):
    """The file, if the tool writes the recording of the process now."""
    found = [path for path in pathlib.Path().rglob("*.save") if str(pid) in path.name]
    try:
        return [path.stat().st_ino for path in found]
    except FileNotFoundError:
        return []


def answered_beside(pid):
    """Another process says hello and is answered while the recording is written."""
    before = being_written(pid)
    if not before:
        return False
    child = os.fork()
    if not child:
        os._exit(hello() is None)
    return os.waitpid(child, 0)[1] == 0 and being_written(pid) == before


def big():
    """A recording that takes a while to write; others are answered meanwhile."""
    file = hello()
    with mmap.mmap(file, HEADER_BYTES + BIG_BYTES) as memory:
        for at in range(0, BIG_BYTES, 1 << 20):
            memory[HEADER_BYTES + at:HEADER_BYTES + at + (1 << 20)] = b"\x01" * (1 << 20)
        memory[:HEADER_BYTES] = header([(7, 4, HEADER_BYTES, BIG_BYTES)])
    end = time.monotonic() + t.PATIENCE_S  # some checkpoints
    while not answered_beside(os.getpid()):
        if time.monotonic() > end:
            raise RuntimeError("nobody was answered while the recording was written")
        time.sleep(0.001)


PARTS = {"silence": say_nothing, "garbage": say_garbage, "flood": flood, "nonsense": nonsense, "big": big}

if len(sys.argv) > 1:
    PARTS[sys.argv[1]]()
    print("well:", sys.argv[1])
    sys.exit(0)

# As programs of a run, without the library: only what they say at the socket counts. Afterwards an
# ordinary program records as ever.
SCRIPT = f'''
for part in silence garbage flood nonsense big; do
    env -u LD_PRELOAD {t.PYTHON} {shlex.quote(os.path.abspath(__file__))} $part || echo failed $part
done
exec {shlex.quote(t.program("leak")[0])}
'''
result, path = t.record(["sh", "-c", SCRIPT], timeout=2 * t.TIMEOUT_S)
print(result.out.decode(), result.err.decode())
t.check_equal("status", result.status, 3)
ended = [line.split()[1] for line in result.out.decode().splitlines() if line.startswith("well: ")]
t.check_equal("parts that ended well", ended, list(PARTS))
shown = t.run_cairn("report", path)
t.check_equal("report: status", shown.status, 0)
t.check(b"leak" in shown.out, f"report: {shown.out[:600]}")
whole = t.report(path, "--top", "5")
leaks = [one for one in whole["processes"] if "leak" in one["process"]["command"]]
t.check_equal("the ordinary program's recording", len(leaks), 1)
t.finish()
