#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands for gdb that `cairn core PID explain` prints give exactly the address at which the block begins: 50 (200)
random ones of programs in C (by clang, too, in `make check-long`) and C++ (by GCC and clang) and Rust, of each kind of
container, also where the program's own pointer leads into the block's midst. How far inside it leads is said with the path."""

import os
import random
import re
import shutil
import subprocess

import cairn_test as t

t.need("gdb", "gcore")
MOST = 200 if t.IS_LONG else 50
BLOCK = re.compile(r"allocation at ([0-9a-f]+) of size (\d+)")
PLACE = re.compile(r"  \(([^,()]+), thread \d+\)$")
ANSWER = re.compile(r"^\$\d+ = .*?(0x[0-9a-f]+)")
# `frame function main` selects what is inlined into main
SELECT = """set pagination off
set width 0
python
def select(function):
    frame = gdb.newest_frame()
    while function and frame.older() and frame.name() != function:
        frame = frame.older()
    frame.select()
end
"""


def explained(subject):
    """By address: the lines of each block in use."""
    blocks = {}
    for text in t.run_cairn("core", subject, "explain", "used").out.decode().split("\n\n"):
        block = BLOCK.search(text)
        if block:
            blocks[int(block[1], 16)] = dict(line.split(": ", 1) for line in text.split("\n")
                                             if re.match(r"(type|path|gdb): ", line))
    return blocks


def ask(program, core, asked):
    """What gdb answers to each command, in the frame of the function that the path names."""
    script = t.fresh_path("evaluate.gdb")
    with open(script, "w", encoding="utf-8") as out:
        out.write(SELECT)
        for index, (_, function, command) in enumerate(asked):
            out.write(f"python print('=', {index})\n")
            out.write(f"python select({function!r})\n")
            out.write(command + "\n")
    said = t.run(["gdb", "-q", "-batch", "-nx", program, core, "-x", script])
    answers = {}
    for part in re.split(r"^= (?=\d+$)", said.out.decode(errors="replace"), flags=re.M)[1:]:
        index, _, text = part.partition("\n")
        found = [ANSWER.match(line) for line in text.splitlines()]
        answers[int(index)] = next((int(one[1], 16) for one in found if one), None)
    return answers, said.err.decode(errors="replace")


def check(what, argv, ways, function_names=None, least=MOST):
    """`ways`: regular expressions of paths, of each of which there must be one among those asked."""
    with t.Process(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
        for line in iter(process.stdout.readline, b"ready\n"):
            t.check(line, f"{what}: it ended")
        blocks = explained(str(process.pid))
        made = t.run(["gcore", "-o", t.fresh_path("dump"), str(process.pid)])
        core = re.search(r"Saved corefile (\S+)", made.out.decode())[1]
        process.stdin.write(b"\n")
        process.stdin.close()
        t.check_equal(f"{what}: status", process.wait(), 3)
    known = {}
    for address, lines in blocks.items():
        place = PLACE.search(lines.get("path", ""))
        function = place[1] if place else ""
        if "gdb" in lines:
            known[address] = (address, (function_names or {}).get(function, function), lines["gdb"])
    random.seed(7)
    asked = random.sample(sorted(known.values()), min(MOST, len(known)))
    for way in ways:
        of_way = sorted(address for address in known if re.match(way, blocks[address]["path"]))
        if t.check(of_way, f"{what}: no path like {way}"):
            asked += [known[of_way[0]], known[of_way[-1]]]
    answers, errors = ask(argv[0], core, asked)
    os.remove(core)
    wrong = [(command, answers.get(index), hex(address)) for index, (address, _, command) in enumerate(asked)
             if answers.get(index) != address]
    t.check(not wrong and len(asked) >= least + 2 * len(ways),
            f"{what}: {len(asked)} asked, {len(wrong)} others: {wrong[:3]} {errors[-400:]}")
    return blocks


PLAIN = (r"server\.tables\[1\]\.buckets\[3\]", r"server\.tables\[.\]\.buckets\[\d+\]->next", r".*->value\.text",
         r"server\.clients->next", r"server\.rows\[2\]\[3\]", r"tree->below\[1\]", r".*->anything", r"cursor",
         r"after_header", r"main::of_main\[2\]->key|of_main\[2\]->key", r"local")
CONTAINERS = (r"registry\.by_id\[\*\]", r"registry\.all\[\*\]->text", r"registry\.items\[\*\]\.text", r"registry\.forward\[\*\]",
              r"registry\.by_name\[\*\]\.second->name", r"registry\.set\[\*\]", r"registry\.bases\[11\]", r".*->numbers",
              r".*->one->text", r"registry\.deque", r"registry\.maybe\.", r"registry\.choice", r"registry\.shared",
              r"registry\.made->item", r"made->", r"of_thread->text", r"main::inner\.", r"local")
RUST = (r"typed::TABLE\[3\]", r"typed::TABLE", r"registry->items\[3\]\.name", r"registry->boxed\[4\]", r"registry->by_name\[",
        r"registry->by_name  ", r".*->more", r"(registry->)?shared", r"registry->counted", r"registry->choice\.", r"registry->other\.",
        r"registry->queue\[", r"registry->text", r"registry->slice")


def check_plain():
    blocks = check("C", t.program("typed_plain"), PLAIN)
    inside = [lines["path"] for lines in blocks.values() if "leads" in lines.get("path", "")]
    t.check_equal("C: into the midst", sorted(path for path in inside if path.startswith(("cursor", "after"))),
                  ["after_header  (leads 16 bytes into it)", "cursor  (leads 24 bytes into it)"])


def check_by_clang():
    """It writes no .debug_aranges."""
    for name, ways in (("typed_plain.c", PLAIN), ("typed.cc", CONTAINERS))[0 if t.IS_LONG else 1:]:
        compiler, standard = ("clang++", ["-std=c++17"]) if name.endswith("cc") else ("clang", [])
        built = t.fresh_path("by-" + compiler)
        if not shutil.which(compiler) or t.run([compiler, "-g", "-O1", "-fno-builtin", *standard, "-pthread", "-o", built,
                                                str(t.SOURCE / "tests/programs" / name)]).status:
            t.skip_part(f"{compiler}, which is not here")
            continue
        # it leaves out variables that nobody reads, has other names for what make_shared makes, and locals in registers
        check(f"{name} by {compiler}", [built], [way for way in ways if not re.search("made|of_thread|main::|local", way)])


def check_rust():
    built = t.fresh_path("typed_rust")
    source = str(t.SOURCE / "tests/programs/rust/typed.rs")
    if not shutil.which("rustc") or t.run(["rustc", "-g", "--crate-name", "typed", "-o", built, source]).status:
        t.skip_part("Rust, which is not here")
        return
    check("Rust", [built], RUST, {"wait": "typed::wait", "main": "typed::main"})


check_plain()
check("C++", t.program("typed"), CONTAINERS)
check_by_clang()
check_rust()
t.finish()
