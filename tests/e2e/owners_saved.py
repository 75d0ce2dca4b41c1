#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who keeps the blocks of a program, kept in a file: its ways of owning are call stacks, whose sums are those of the
view; two moments or builds are compared; walked through on a terminal; refusals that leave files as they are."""

import contextlib
import json
import os
import signal
import subprocess
import time

import cairn_test as t
from tmux_screen import Screen

ITEMS, MORE, TEXT, ITEM_BYTES, TEXT_BYTES = 400, 500, 1000, 24, 1000
TABLE_BYTES = 136
AGED_S, BEHIND_S = 5, 2.5
OWN = t.program("owners")


@contextlib.contextmanager
def waiting(*arguments):
    """The program when it has allocated everything."""
    with t.Process([*OWN, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("begins", process.stdout.readline(), b"ready\n")
        yield str(process.pid)
        process.stdin.close()
        process.wait()


def save(subject, path, *options):
    return t.run_cairn("core", subject, "save", *options, path)


def way(stack):
    """From the root inwards."""
    return [frame["function"] for frame in reversed(stack["frames"])]


def check_saved(path, view):
    found = t.report(path)
    ways = {tuple(way(stack)): (stack["at_exit_bytes"], stack["at_exit_blocks"]) for stack in found["stacks"]}
    t.check_equal("table", ways.get(("sessions", "table")), (TABLE_BYTES, 1))
    t.check_equal("items", ways.get(("sessions", "table", "item")), (ITEMS * ITEM_BYTES, ITEMS))
    t.check_equal("texts", ways.get(("sessions", "table", "item", "char[]")), (ITEMS * TEXT_BYTES, ITEMS))
    # of main, or also of a function below it that saved a register
    stack = "stack and registers of the main thread"
    t.check({(stack, "main", "local", "item"), (stack, "main", "item"), (stack, "item")} & set(ways), f"frames: {list(ways)}")
    t.check_equal("all bytes", sum(size for size, _ in ways.values()), view["bytes"])
    t.check_equal("all blocks", sum(count for _, count in ways.values()), view["blocks"])
    for root in (row for row in view["owners"] if row["level"] == 0 and row["kind"] == "root"):
        name = root["name"].split(" of thread ")[0]
        kept = sum(size for names, (size, _) in ways.items() if names[0].split(" of the main thread")[0] == name)
        t.check_equal(f"kept by {name}", kept, root["retained_bytes"])
    screen = t.run_cairn("report", path).out.decode()
    t.check("owners as it stood" in screen and "by who keeps them" in screen, f"summary: {screen}")
    t.check("allocated" not in screen and "peak heap" not in screen, f"no words of a recording: {screen}")


def check_compared():
    with waiting(str(MORE)) as pid:
        t.check_equal("save more", save(pid, "more.cairn").status, 0)
    result = t.run_cairn("diff", "less.cairn", "more.cairn")
    more = MORE - ITEMS
    t.check_equal("diff", result.status, 0)
    text = result.out.decode()
    t.check("2 grown" in text and "+98 KiB" in text.replace("97.7", "98"), f"diff: {text}")
    found = json.loads(t.run_cairn("diff", "--json", "less.cairn", "more.cairn").out)
    changed = {tuple(reversed(row["functions"])): row["delta"] for row in found["rows"] if row["delta"]}
    t.check_equal("what changed", changed, {("sessions", "table", "item"): more * ITEM_BYTES,
                                            ("sessions", "table", "item", "char[]"): more * TEXT_BYTES})


def check_recorded():
    """Its call stacks are the owners' names, with types innermost."""
    recording = t.fresh_path("owned") + ".cairn"
    command = [t.CAIRN, "run", "-q", "-o", recording, *OWN]
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("recorded begins", process.stdout.readline(), b"ready\n")
        pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "owners"))
        t.check_equal("save recorded", save(str(pid), "recorded.cairn").status, 0)
        process.stdin.close()
        process.wait()
    ways = [way(stack) for stack in t.report("recorded.cairn")["stacks"]]
    t.check(["sessions", "fill", "make_item", "make_text", "char[]"] in ways, f"recorded: {ways}")
    result = t.run_cairn("diff", recording, "recorded.cairn")
    t.check(result.status == 1 and b"who keeps blocks" in result.err, f"of two kinds: {result}")


def grown(pid, process, before):
    """Two groups of sessions, the second AGED_S seconds later; when each was made, at the earliest and at the latest."""
    made = [(before, time.monotonic())]
    t.wait_until(lambda: time.monotonic() > made[0][1] + AGED_S)
    before = time.monotonic()
    process.stdin.write(b"\n")
    process.stdin.flush()
    t.check_equal("grown", process.stdout.readline(), b"ready\n")
    return [*made, (before, time.monotonic())]


def bits(seconds):
    return int(seconds * 1000).bit_length()


def check_ages():
    """With --ages it says how old blocks are. The clock that they are born by may be behind."""
    begin = time.monotonic()
    command = [t.CAIRN, "run", "-q", "--ages", "-o", t.fresh_path("aged") + ".cairn", *t.program("grower", 1, 1, 0)]
    with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        t.check_equal("aged begins", process.stdout.readline(), b"ready\n")
        pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "grower"))
        made = grown(pid, process, begin)
        before = time.monotonic()
        t.check_equal("save aged", save(str(pid), "aged.cairn").status, 0)
        after = time.monotonic()
        os.kill(int(pid), signal.SIGKILL)
        process.wait()
    groups = [stack for stack in t.report("aged.cairn")["stacks"] if way(stack)[0] == "all_sessions"]
    t.check_equal("two groups", [stack["at_exit_blocks"] for stack in groups], [1041, 1041])
    for (first, last), stack in zip(made, sorted(groups, key=lambda stack: -len(stack["ages"]["ms"]))):
        ages = {power for power, count in enumerate(stack["ages"]["ms"]) if count}
        t.check_equal("with ages", sum(stack["ages"]["ms"]), stack["at_exit_blocks"])
        t.check(ages <= set(range(bits(before - last), bits(after - first + BEHIND_S) + 1)),
                f"ages {ages} of what was made {before - last} to {after - first} s before")
    screen = t.run_cairn("report", "--view", "ages", "aged.cairn").out.decode()
    t.check("age: " in screen and "lifetime" not in screen and "lived" not in screen, f"ages: {screen}")


def check_walked(pid):
    screen = Screen(f"{t.CAIRN} report {pid} --view owners", 100, 30)
    screen.wait_for(r"sessions \(in owners\)", "walked through")
    screen.press("/ c h a r Enter", r"item .*\n.* char\[\]", "search unfolds the way")
    t.check("kept, by who keeps it" in screen.look() and ")+0x" not in screen.look(), f"walked through: {screen.look()}")
    screen.press("q", r"status 0", "leave")
    screen.close()


def check_many_walked():
    """More kinds of blocks than a summary has rows."""
    with t.Process(t.program("typed"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        for line in iter(process.stdout.readline, b"ready\n"):
            t.check(line, "many: it ended")
        screen = Screen(f"{t.CAIRN} report {process.pid} --view owners", 100, 40)
        screen.wait_for(r"made \(in typed\)", "many: walked through")
        screen.press("u *", r"links", "many: unfolded")
        t.check(")+0x" not in screen.look(), f"many: {screen.look()}")
        screen.press("q", r"status 0", "many: leave")
        screen.close()
        process.stdin.close()
        process.wait()


def check_refused(pid):
    before = open("less.cairn", "rb").read()
    result = save(pid, "less.cairn")
    t.check(result.status == 1 and b"exists" in result.err, f"exists: {result}")
    t.check(open("less.cairn", "rb").read() == before, "it stays as it was")
    for words in ((pid, "save"), (pid, "save", "a", "b")):
        t.check_equal(f"usage {words}", t.run_cairn("core", *words).status, 2)
    t.check_equal("no directory", save(pid, "none/less.cairn").status, 1)
    t.check_equal("force", save(pid, "less.cairn", "--force").status, 0)
    t.check(not [name for name in os.listdir() if name not in ("less.cairn",) and "less" in name], "nothing beside it")


def check_contents(pid):
    """Text that blocks hold is kept where that was asked for, and only there."""
    t.check_equal("save contents", save(pid, "texts.cairn", "--contents").status, 0)
    ways = {tuple(way(stack)): stack["at_exit_blocks"] for stack in t.report("texts.cairn")["stacks"]}
    t.check_equal("a text", ways.get(("kept_text", "char[]", '"' + "a secret of forty-eight letters or of some more x"[:48] + '"...')), 1)
    t.check(b"a secret" not in open("less.cairn", "rb").read(), "no text unasked")
    pages = [t.run_cairn("report", "--view", "tree", "--threshold", "0", "--top", "0", path).out for path in ("less.cairn", "texts.cairn")]
    t.check_equal("text in the tree", [b"a secret" in page for page in pages], [False, True])


with waiting() as own:
    t.check_equal("save", save(own, "less.cairn").status, 0)
    check_saved("less.cairn", t.answer(own, "owners"))
    check_refused(own)
    check_walked(own)
    check_many_walked()
    check_contents(own)
check_compared()
check_recorded()
check_ages()
t.finish()
