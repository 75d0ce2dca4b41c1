# SPDX-License-Identifier: Apache-2.0
"""Blocks that a program holds (tests/programs/held_blocks.c), beside those that cairn reads of it from outside: where it
stands still, and wherever its threads are."""

import bisect
import json
import os
import pathlib
import re
import signal
import struct
import subprocess

import cairn_test as t

ROUNDS = 2
OTHERS = 40  # blocks of libc, the dynamic linker and libstdc++: streams, threads' tables, a reserve


def blocks_of(subject, *words, is_at_rest=True):
    result = t.run_cairn("core", subject, *words)
    t.check_equal(f"{subject} {words}: status, but for {result.err.strip()}", (result.status, is_at_rest and b"not known" in result.err),
                  (0, False))
    found = re.findall(rb"allocation at ([0-9a-f]+) of size ([0-9a-f]+)", result.out)
    return {int(address, 16): int(size, 16) for address, size in found}


def states_of(subject, which="allocations"):
    """The same, by what is said of them, and how many are said to be moving; one look has all."""
    result = t.run_cairn("core", "--no-copy-limit", subject, "list", which)  # gcore makes more of it resident
    t.check_equal(f"{subject}: status, but for {result.err.strip()}", result.status, 0)
    found = {"Used": {}, "Free": {}, "Moving": {}}
    for state, address, size in re.findall(r"(\w+) allocation at ([0-9a-f]+) of size ([0-9a-f]+)", result.out.decode()):
        found[state][int(address, 16)] = int(size, 16)
    said = re.search(rb"; ([\d,]+) blocks? that they may be moving counts? as neither", result.err)
    return found, int(said[1].replace(b",", b"")) if said else 0


def holding(blocks, address, starts):
    """The block that an address lies in: mimalloc aligns within a larger one."""
    place = bisect.bisect_right(starts, address) - 1
    found = starts[place] if place >= 0 else None
    return found if found is not None and address - found < max(blocks[found], 1) else None


def compare(what, subject, wanted):
    used, free = blocks_of(subject, "list", "used"), blocks_of(subject, "list", "free")
    if not used:  # it was refused, which is told above, and no wrong figure
        return
    starts = sorted(used)
    held = {address: holding(used, address, starts) for address in wanted}
    t.check(None not in held.values(), f"{what}: missing: {list(held.values()).count(None)}", is_grave=True)
    t.check(not wanted.keys() & free.keys(), f"{what}: called free: {wanted.keys() & free.keys()}", is_grave=True)
    wrong = [hex(one) for one, size in wanted.items() if used.get(one, size) != size]
    t.check(not wrong, f"{what}: another size: {wrong[:5]}", is_grave=True)
    t.check(sum(at == one for one, at in held.items()) > len(wanted) * 0.9, f"{what}: few begin where they are used")
    others = used.keys() - set(held.values())
    t.check(len(others) <= OTHERS, f"{what}: {len(others)} blocks that the program does not hold", is_grave=True)


def view_of(subject, view):
    result = t.run_cairn("report", "--json", "--view", view, subject)
    t.check_equal(f"{subject}: {view}: status", (result.status, b"not known" in result.out), (0, False))
    return json.loads(result.out)


def check_views(what, subject, wanted, beside):
    """The views heap and pages have the same blocks, and what the allocator's statistics leave of pages beside blocks
    (`beside`; jemalloc's and mimalloc's of small blocks, 0: it keeps none); who keeps pages adds up."""
    answer = view_of(subject, "heap")
    states = {row["name"]: row for row in answer["rows"] if row["part"] == "state"}
    classes = [row for row in answer["rows"] if row["part"] == "class"]
    used = sum(row["used_bytes"] for row in classes)
    t.check(sum(wanted.values()) <= used <= sum(wanted.values()) + (1 << 20), f"{what}: used {used}", is_grave=True)
    t.check(states["used"]["bytes"] <= used <= states["used"]["bytes"] + (1 << 20), f"{what}: {states['used']}, {used}")
    largest = {"jemalloc": 14 << 10, "mimalloc": 8 << 10}.get(answer["facts"]["allocator"], 1 << 40)
    found = sum(row["wasted_bytes"] for row in classes if row["size_from"] <= largest)
    t.check(not beside or abs(found - beside) <= 0.001 * beside, f"{what}: beside blocks: {found}, truth {beside}", is_grave=True)
    pages = view_of(subject, "pages")
    t.check_equal(f"{what}: pages", sum(row["kept_bytes"] for row in pages["rows"]), pages["facts"]["kept_bytes"], is_grave=True)
    t.check(pages["facts"]["live_bytes"] <= pages["facts"]["kept_bytes"], f"{what}: {pages['facts']}")


def dump(pid):
    subprocess.run(["gcore", "-o", "dump", str(pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"dump.{pid}"


def held_in(path, root):
    """What the program wrote that it holds: usable sizes by address."""
    place = pathlib.Path(f"{root}{path}")
    lines = place.read_text(encoding="ascii").split("\n")
    place.unlink()
    return {int(a, 16): int(b, 16) for a, b in (line.split() for line in lines if line)}


def stops(what, argv, env=None, has_core=False, root=""):
    """Stands still some times; of the last time there is a core, too. `root`: of the program, if it runs in a chroot."""
    with t.Process(argv, env={**t.environment(), **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for number in range(ROUNDS):
            path = f"/tmp/held-{process.pid}-{number}" if root else os.path.abspath(f"held-{number}")
            process.stdin.write(path.encode() + b"\n")
            process.stdin.flush()
            ready, *beside = process.stdout.readline().split() or [b""]
            if not t.check(ready == b"ready", f"{what}: the program has ended"):
                return
            wanted = held_in(path, root)
            t.check(len(wanted) > 1000, f"{what}: only {len(wanted)} blocks")
            compare(f"{what}, stop {number}", str(process.pid), wanted)
            if not number:
                check_views(what, str(process.pid), wanted, int(beside[0]))
            if number < ROUNDS - 1:
                process.stdin.write(b"on\n")
                process.stdin.flush()
        if has_core:
            core = dump(process.pid)
            compare(f"{what}, core", core, wanted)
            answer = json.loads(t.run_cairn("report", "--json", core).out)
            used = sum(row["bytes"] for row in answer["resident"] if re.match(r"in use in (jemalloc|mimalloc|tcmalloc)", row["what"]))
            t.check(used >= sum(wanted.values()), f"{what}, core: in use: {answer['resident']}", is_grave=True)
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 0)


def recorded(what, library):
    """Of a recorded process: the blocks of the stacks that asked for them have the allocator's sizes, so that what it
    gave beyond the bytes asked for is known."""
    argv = [t.CAIRN, "run", "-q", "-o", t.fresh_path("held.cairn"), "--", "env", f"LD_PRELOAD={library}", *t.program("held_blocks")]
    with t.Process(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        path = os.path.abspath("held-recorded")
        process.stdin.write(path.encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        wanted = held_in(path, "")
        pid = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()[0]
        result = t.run_cairn("report", "--json", "--view", "waste", "--top", "0", pid)
        t.check_equal(f"{what}, recorded: status", result.status, 0)
        t.check(b"not all that are leaked" not in result.err, f"{what}, recorded: its own lists are known: {result.err}")
        answer = json.loads(result.out)
        rows = [row for row in answer["rows"] if re.match(r"(take|work) ", row["name"])]
        t.check_equal(f"{what}, recorded: blocks", sum(row["blocks"] for row in rows), len(wanted), is_grave=True)
        t.check_equal(f"{what}, recorded: bytes", sum(row["bytes"] for row in rows), sum(wanted.values()), is_grave=True)
        t.check(answer["claims"][0]["evidence"]["slack_bytes"] > len(wanted), f"{what}, recorded: no slack: {answer['claims'][0]}")
        t.check("slack is not known" not in str(answer["notes"]), f"{what}, recorded: {answer['notes']}")
        process.stdin.close()
        t.check_equal(f"{what}, recorded: status", process.wait(), 0)


CORE_EACH = 20  # stops under load, in the long form
MANY = 3000  # of the 3,200 blocks that it holds once it has gone on for a while
THREAD_WORDS = 401  # of a thread in the file that the program shows: its blocks, and what it is at


def shown(path):
    """What its threads hold, and how many are within a call."""
    data = pathlib.Path(path).read_bytes()
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    busy = [words[i] for i in range(THREAD_WORDS - 1, len(words), THREAD_WORDS)]
    return {word for i, word in enumerate(words) if word and i % THREAD_WORDS != THREAD_WORDS - 1}, sum(map(bool, busy))


def are_all_stopped(pid):
    return all(t.is_in_state(int(task.name), "Tt") for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def beside_held(what, pid, path):
    """The blocks in use that the program does not hold, and how many threads are within a call; none that it holds
    is missing, but for those that are said to be moving: a thread that was in a call may have had them then."""
    held, busy = shown(path)
    blocks, said = states_of(str(pid))
    used, moving = blocks["Used"], blocks["Moving"]
    if not used:  # as in compare
        return set(), busy
    starts, moving_starts = sorted(used), sorted(moving)
    found = {address: holding(used, address, starts) for address in held}
    missing = [address for address, at in found.items() if at is None]
    free = [hex(address) for address in missing if holding(moving, address, moving_starts) is None]
    t.check(not free, f"{what}: of {len(held)} blocks {len(free)} are called free: {free[:3]}", is_grave=True)
    t.check_equal(f"{what}: moving", said, len(moving), is_grave=True)
    if t.IS_LONG:
        print(f"{what}: {busy} threads in a call, {len(used.keys() - set(found.values()))} in use beside those held; "
              f"{len(moving)} moving, {len(missing)} of them held")
    return used.keys() - set(found.values()), busy


def under_load(what, library, rounds, root="", env=None):
    """Stopped anywhere: a block too many for each thread that is within a call. Those of libc and libstdc++ are there
    each time. `root`: of the program, if it runs in a chroot; there no block may be called free, and how many are too
    many is not judged: trixie's tcmalloc and sid's jemalloc had up to 8 more at 3 of 60 stops."""
    inside = f"/tmp/shown-{os.getpid()}" if root else os.path.abspath(t.fresh_path("shown"))
    path = f"{root}{inside}"
    program = ["chroot", root, "env", f"LD_PRELOAD={library}", "/tmp/held_blocks"] if root else t.program("held_blocks")
    variables = {**t.environment(), **(env or {}), **({} if root else {"LD_PRELOAD": library})}
    with t.Process([*program, inside], env=variables,
                   stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        seen = []
        for number in range(rounds):
            held = shown(path)[0] if number else set()
            t.wait_until(lambda before=held: len(shown(path)[0]) > MANY and shown(path)[0] != before)
            process.send_signal(signal.SIGSTOP)
            t.wait_until(lambda: are_all_stopped(process.pid))
            seen.append(beside_held(f"{what}, under load, stop {number}", process.pid, path))
            if t.IS_LONG and number % CORE_EACH == 0 and not root:
                core = states_of(dump(process.pid))[0]
                live = states_of(str(process.pid))[0]
                t.check(core == live, f"{what}, under load, stop {number}: its core differs", is_grave=True)
                heap = view_of(str(process.pid), "heap")
                moving = sum(row["blocks"] for row in heap["rows"] if row["part"] == "state" and row["name"] == "moving")
                t.check_equal(f"{what}: moving in the view", (moving, heap["facts"]["moving_blocks"]), (len(live["Moving"]),) * 2)
            process.send_signal(signal.SIGCONT)
        process.kill()
    os.unlink(path)
    always = set.intersection(*(blocks for blocks, _ in seen))
    t.check(len(always) <= OTHERS, f"{what}, under load: {len(always)} blocks that it never holds", is_grave=True)
    more = [(len(blocks - always), busy) for blocks, busy in seen]
    wrong = [one for one in more if one[0] > one[1] and not root]
    t.check(not wrong, f"{what}, under load: (blocks too many, threads in a call): {wrong}", is_grave=True)
