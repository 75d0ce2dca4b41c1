#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thirty planted faults, five in each of C, C++, Rust, Python, PHP and Ruby (tests/mcp/faults), each found to its line by an
agent without a model that has cairn mcp alone (tests/tools/mcp_solver.py). Prints how many questions and bytes that took.
`make check` has those of C; CAIRN_LONG=1 all."""

import pathlib
import re
import shutil
import statistics

import cairn_test as t
from mcp_client import Client
from mcp_solver import Solver

FAULTS = t.SOURCE / "tests/mcp/faults"
PLACE = pathlib.Path("root").resolve()
SYMPTOMS = {"leak": "rises", "cache": "rises", "peak": "large", "churn": "often", "grown": "much"}
QUESTIONS_MOST, BYTES_MOST = 5, 10 << 10  # medians
# name: source, what builds it, command, what the agent knows of the language
LANGUAGES = {
    "C": ("faults.c", ["gcc", "-g", "-O1", "-o", "faults-c"], ["./faults-c"], {}),
    "C++": ("faults.cc", ["g++", "-g", "-O1", "-o", "faults-cc"], ["./faults-cc"], {}),
    "Rust": ("faults.rs", ["rustc", "-g", "-C", "opt-level=1", "-o", "faults-rs"], ["./faults-rs"], {}),
    "Python": ("faults.py", None, ["/usr/bin/python3", "faults.py"], {"python": True}),
    "PHP": ("faults.php", None, ["env", "USE_ZEND_ALLOC=0", "php8.2", "faults.php"], {"frames": "php"}),
    "Ruby": ("faults.rb", None, ["ruby", "faults.rb"], {"frames": "ruby"}),
}
IN_CHECK = ("C",)


def planted(source):
    """Fault: the line that has its name behind it."""
    lines = (FAULTS / source).read_text("utf-8").splitlines()
    return {match[1]: f"{source}:{number}" for number, line in enumerate(lines, 1)
            if (match := re.search(r"(?:#|//) (\w+)$", line)) and match[1] in SYMPTOMS}


def is_made(name, source, build, command):
    tool = (build or [word for word in command if word != "env" and "=" not in word])[0]
    if not shutil.which(tool):
        t.skip_part(f"{name}: {tool} is not installed")
        return False
    shutil.copy(FAULTS / source, PLACE / source)
    made = t.run([*build, source], cwd=PLACE) if build else None
    t.check(not made or made.status == 0, f"{name}: {made and made.err}")
    return True


def solve_all():
    solved = []
    for name, (source, build, command, language) in LANGUAGES.items():
        if not (t.IS_LONG or name in IN_CHECK) or not is_made(name, source, build, command):
            continue
        lines = planted(source)
        t.check_equal(f"{name}: faults", set(lines), set(SYMPTOMS))
        for fault, symptom in SYMPTOMS.items():
            with Client("--allow-run", cwd=PLACE) as client:
                found = Solver(client).solve([*command, fault], language, symptom)
            last = "" if found.line == lines[fault] else "\n".join(answer for _, _, answer in found.answers)
            t.check_equal(f"{name} {fault}{last}", found.line, lines[fault])
            solved.append(found)
    return solved


PLACE.mkdir()
t.need("gcc")
found = solve_all()
questions, size = (statistics.median(values) for values in ([one.questions for one in found], [one.bytes for one in found]))
print(f"{len(found)} faults: {questions:g} questions (at most {max(one.questions for one in found)}), {size / 1024:.1f} KiB "
      f"(at most {max(one.bytes for one in found) / 1024:.1f}), medians")
t.check(questions <= QUESTIONS_MOST and size <= BYTES_MOST, f"{questions} questions, {size} bytes")
t.finish()
