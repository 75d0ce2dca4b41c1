#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help, manual page and completion are made of one table: each option that a command's help names is
in all of them, and shells and scdoc accept what is made."""

import os
import pathlib
import re
import shutil

import cairn_test as t


def said(*arguments):
    result = t.run_cairn("help", *arguments)
    t.check_equal(f"help {arguments}", (result.status, result.err), (0, b""))
    return result.out.decode()


def options_of(*arguments):
    result = t.run_cairn(*arguments)
    t.check_equal(f"{arguments}", (result.status, result.err), (0, b""))
    return set(re.findall(r"^ +(?:-., )?--([a-z-]+)", result.out.decode(), re.MULTILINE))


overview = said("all")
commands = re.findall(r"^  ([a-z-]+) ", overview[:overview.index("Topics")], re.MULTILINE)
first = re.findall(r"^  ([a-z-]+) ", said(), re.MULTILINE)
t.check(len(first) == 11 and set(first) < set(commands), f"the first help has {first}")
topics = re.findall(r"^  ([a-z-]+) ", overview[overview.index("Topics"):], re.MULTILINE)
t.check_equal("a topic is a page of docs/howto", sorted(topics),
              sorted(path.stem for path in (t.SOURCE / "docs/howto").glob("*.md")))
t.check("run" in commands, f"overview: {commands}")
options = {name: options_of(name, "--help=all") for name in commands}
for name, wanted in options.items():
    short = options_of(name, "--help")
    t.check(short <= wanted and len(short) <= 12 or short == wanted, f"{name} --help: {sorted(short)}")
t.check(len(options["report"]) > 40 > 12 >= len(options_of("help", "report")), "report --help has what matters")
for topic in topics:
    text = said(topic + ".md")
    for command in re.findall(r"^    (?:\$ )?cairn ([a-z-]+)", text, re.MULTILINE):
        t.check(command in commands, f"topic {topic}: there is no cairn {command}")
    t.check(not re.search(r"^(?!    ).*(\]\(|\*\*)|<!--|^#|^\|", text, re.MULTILINE), f"topic {topic}: Markdown is left")
    if topic in commands:
        t.check(f"cairn help {topic}.md" in said(topic), f"help {topic} names no page")
claims = (t.SOURCE / "tool/answer/claims.def").read_text()
for place in sorted({"findings#" + one for one in re.findall(r'FINDINGS "([a-z-]+)"', claims)}
                    | set(re.findall(r'"docs/howto/([a-z-]+\.md(?:#[a-z-]+)?)"', claims))):
    t.check(len(said(place).splitlines()) > 1, f"help {place}: nothing")
t.check_equal("other words for a page", (said("rss"), said("memory#of-a-container")), (said("heap"), said("heap#of-a-container")))
section = said("findings#arenas")
t.check(section.startswith("Arenas\n") and "\nEqual strings" not in section, f"a section: {section}")
t.check_equal("no such section", t.run_cairn("help", "findings#nothing").status, 2)
wide = t.run_cairn("help", "growth", env={**os.environ, "COLUMNS": "40"}).out.decode()
t.check(all(len(line) <= 40 for line in wide.splitlines() if not line.startswith("  ")), f"40 columns: {wide}")
pathlib.Path("app").write_text("#!/bin/sh\n")
pathlib.Path("app").chmod(0o755)
for words, meant in ((["./app", "--x", "a b"], "did you mean: cairn run ./app --x 'a b'"),
                     (["4711"], "did you mean: cairn report 4711"),
                     (["runn", "./app"], '(did you mean "run"?)'), (["cairn.bash"], "cairn help lists them"),
                     (["help", "topcs"], '(did you mean "topics"?)'),
                     (["report", "--view", "fuctions"], '(did you mean "functions"?)'),
                     (["report", "--by", "peek"], '(did you mean "peak"?)'),
                     (["report", "--view", "tree", "--format", "jsn"], '(did you mean "json"?)'),
                     (["export", "--format", "pproff"], '(did you mean "pprof"?)'),
                     (["import", "--format", "masif", "app"], '(did you mean "massif"?)'),
                     (["events", "--format", "parqet", "."], '(did you mean "parquet"?)')):
    result = t.run_cairn(*words)
    t.check_equal(f"{words}: status, output", (result.status, result.out), (2, b""))
    t.check(meant in result.err.decode(), f"{words}: {result.err}")
t.check_equal("no such topic", t.run_cairn("help", "nothing").status, 2)
t.check_equal("no such shell", t.run_cairn("help", "--completion", "csh").status, 2)

for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
    text = said("--completion", shell)
    pathlib.Path(f"cairn.{shell}").write_text(text)
    for name, wanted in options.items():
        missing = [option for option in wanted - {"help"}
                   if not re.search(rf"(--|-l ){option}\b", text)]
        t.check(not missing, f"{shell}: {name} lacks {missing}")
    if shutil.which(shell):
        result = t.run([*check, f"cairn.{shell}"])
        t.check_equal(f"{shell} -n", (result.status, result.err), (0, b""))

script = """source ./cairn.bash
COMP_WORDS=(cairn repo); COMP_CWORD=1; _cairn; echo "${COMPREPLY[@]}"
COMP_WORDS=(cairn report --full); COMP_CWORD=2; _cairn; echo "${COMPREPLY[@]}"
COMP_WORDS=(cairn report --view tr); COMP_CWORD=3; _cairn; echo "${COMPREPLY[@]}"
COMP_WORDS=(cairn help gro); COMP_CWORD=2; _cairn; echo "${COMPREPLY[@]}"
"""
t.check_equal("bash completes", t.run(["bash", "-c", script]).out.decode().split(),
              ["report", "--full-names", "tree", "growth"])

page = said("--manual")
if shutil.which("scdoc"):
    made = t.run(["scdoc"], stdin=page.encode())
    t.check_equal("scdoc", (made.status, made.err), (0, b""))
    text = made.out.decode().replace("\\", "")
    for name, wanted in options.items():
        for option in wanted - {"help"}:
            t.check(f"--{option}" in text, f"manual page lacks --{option} of {name}")
t.finish()
