#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn import` of formats whose tools cannot be installed here: traces of Perfetto's heapprofd, put together from
its published messages (profile_packet.proto, profile_common.proto, interned_data.proto) by an encoder of this test."""

import gzip
import pathlib
import zlib

import cairn_test as t


def import_file(path, *arguments):
    name = t.fresh_path("imported") + ".cairn"
    result = t.run_cairn("import", "-o", name, *arguments, str(path))
    if not t.check_equal(f"import {path}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
        return None, ""
    return t.report(name), result.err.decode()


def refused(path, words, *arguments):
    result = t.run_cairn("import", "--force", *arguments, str(path))
    t.check(result.status == 1 and words in result.err.decode(), f"{path}: {result.status} {result.err}")


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def message(*fields):
    """Fields are (number, value): an int, a text, or bytes of another message."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def interned(iid, text):
    return message((1, iid), (2, text))


def frame(iid, function, mapping, rel_pc, source=0, line=0):
    return message((1, iid), (2, function), (3, mapping), (4, rel_pc), (5, source), (6, line))


def stack(iid, *frames):  # the outermost first
    return message((1, iid), *[(2, number) for number in frames])


def sample(stack_id, allocated, freed, calls, frees):
    return message((1, stack_id), (2, allocated), (3, freed), (5, calls), (6, frees))


def dump(pid, at_s, *samples, extra=()):
    return message((1, pid), (9, at_s * 10**9), (11, "libc.malloc"), (12, 4096), *extra,
                   *[(2, one) for one in samples])


def packet(*fields, sequence=1):
    return message((1, message((8, 1000), *fields, (10, sequence))))


def profile(*dumps, continued=0):
    return packet((37, message(*[(5, one) for one in dumps], (6, continued))))


DATA = message((5, interned(1, "main")), (5, interned(2, "_ZN4Shop5stockEi")), (17, interned(1, "tmp")),
               (17, interned(2, "shop")), (18, interned(1, "/src/shop.cc")),
               (19, message((1, 1), (3, 0), (4, 0x55d0_0000_0000), (5, 0x55d0_0010_0000), (7, 1), (7, 2))),
               (6, frame(1, 1, 1, 0x1111)), (6, frame(2, 2, 1, 0x2222, 1, 17)), (6, frame(3, 0, 1, 0x3333)),
               (7, stack(1, 1, 2)), (7, stack(2, 1, 3)), (7, stack(3, 1, 3)))
OTHER = message((5, interned(1, "wrong")), (6, frame(1, 1, 0, 0)), (7, stack(1, 1)))  # of another sequence
SYMBOLS = message((1, "/tmp/shop"), (3, message((1, 0x3333), (2, message((1, "inner"), (2, "in.h"), (3, 5))),
                                                (2, message((1, "fill"), (2, "/src/shop.cc"), (3, 9))))))
FIRST = profile(dump(7, 10, sample(1, 5000, 0, 5, 0)), continued=1) + profile(dump(7, 10, sample(2, 9000, 1000, 9, 1)))
SECOND = profile(dump(7, 12, sample(1, 6000, 2000, 6, 2), sample(2, 9000, 9000, 9, 9)))
HEAD = packet((3, 1000), (33, message((1, 2)))) + packet((12, OTHER), sequence=2)
TRACE = HEAD + packet((12, DATA)) + FIRST + SECOND + packet((61, SYMBOLS), sequence=3)


def check_trace(what, found, told):
    t.check_equal(f"{what}: sums", (found["totals"]["allocations"], found["totals"]["allocated_bytes"],
                                    found["peak"]["bytes"], found["at_exit"]["bytes"], found["at_exit"]["blocks"]),
                  (15, 15000, 13000, 4000, 4))
    stacks = {tuple(frame["function"] for frame in one["frames"]): one for one in found["stacks"]}
    t.check_equal(f"{what}: stacks", set(stacks), {("Shop::stock", "main"), ("inner", "fill", "main")})
    place = stacks[("Shop::stock", "main")]["frames"][0]
    t.check_equal(f"{what}: a line", (place["file"], place["line"], place["module"]), ("/src/shop.cc", 17, "/tmp/shop"))
    inlined = stacks[("inner", "fill", "main")]["frames"][:2]
    t.check_equal(f"{what}: inlined", [(one["file"], one["line"]) for one in inlined], [("in.h", 5), ("/src/shop.cc", 9)])
    t.check("every 4096 bytes" in told and not found["trust"]["exact"], f"{what}: {told}")


PACKED = HEAD + message((1, message((50, zlib.compress(TRACE[len(HEAD):])))))
for what, trace in (("perfetto", TRACE), ("compressed packets", PACKED), ("compressed as a whole", gzip.compress(TRACE))):
    path = pathlib.Path(what.replace(" ", "-"))
    path.write_bytes(trace)
    found, told = import_file(path)
    if found:
        check_trace(what, found, told)

pathlib.Path("unnamed").write_bytes(TRACE[:-len(packet((61, SYMBOLS), sequence=3))])
found, _ = import_file("unnamed")
t.check(any(one["frames"][0]["function"] == "shop+0x3333" for one in found["stacks"]), "an address without a name")

pathlib.Path("two").write_bytes(TRACE + profile(dump(8, 12, sample(1, 70, 0, 7, 0))))
refused("two", "heap profiles of the processes 7, 8: --process PID")
found, _ = import_file("two", "--process", "8")
t.check_equal("--process 8", (found["at_exit"]["bytes"], found["process"]["pid"]), (70, 8))
refused("two", "no dump of process 9 in it, but of 7, 8", "--process", "9")

most = profile(message((1, 7), (9, 10**10), (2, message((1, 1), (8, 800), (9, 4)))))
pathlib.Path("most").write_bytes(HEAD + packet((12, DATA)) + most)
found, told = import_file("most")
t.check_equal("a dump at the maximum", (found["peak"]["bytes"], found["at_exit"]["bytes"]), (800, 0))
t.check("all but the maximum" in told, f"a dump at the maximum: {told}")

lossy = profile(dump(7, 10, sample(1, 50, 0, 5, 0), extra=[(7, 1)]))
pathlib.Path("lossy").write_bytes(HEAD + packet((12, DATA)) + lossy)
_, told = import_file("lossy")
t.check("buffer overran" in told, f"an overrun: {told}")

for name, content, words in (("cut", TRACE[:-5], "damaged or cut off"), ("none", HEAD, "no heap profile in this trace"),
                             ("stackless", HEAD + FIRST, "a stack that is not there"),
                             ("frameless", HEAD + packet((12, message((7, stack(1, 44))))) + FIRST, "a frame that is not"),
                             ("garbled", HEAD + message((1, message((50, b"not zlib")))), "compressed packets are damaged")):
    pathlib.Path(name).write_bytes(content)
    refused(name, words)
t.finish()
