# SPDX-License-Identifier: Apache-2.0
"""Five programs of Python's own library, and a recursion of 200 calls times the scale.
work.py NAME SCALE [exit|tracemalloc]: `exit` ends with what was made alive, and
`tracemalloc` prints what that tells of it first: bytes and blocks of tracebacks through work()."""
import ast
import collections
import json
import os
import re
import sqlite3
import sys
import tracemalloc


def documents(scale):
    made = [{"id": i, "name": str(i) * 3, "tags": [str(i % 7), str(i % 11)]} for i in range(400 * scale)]
    return json.loads(json.dumps(made))


class Node:
    def __init__(self, depth):
        self.depth, self.children = depth, [Node(depth - 1) for _ in range(3)] if depth else []

    def count(self):
        return 1 + sum(child.count() for child in self.children)


def objects(scale):
    return [Node(5) for _ in range(scale)], Node(4).count()


def texts(scale):
    text = " ".join(f"word{i * 7919 % 1009} {i}" for i in range(1500 * scale))
    words = collections.Counter(re.findall(r"[a-z]+\d+", text))
    return sorted(words.items()), text.upper().split()


def rows(scale):
    base = sqlite3.connect(":memory:")
    base.execute("create table t(a integer primary key, b text)")
    base.executemany("insert into t(b) values (?)", ((f"value {i}",) for i in range(600 * scale)))
    return base, base.execute("select a, b from t order by b").fetchall()


def sources(scale):
    text = "\n".join(f"def function{i}(a, b={i}):\n    return [a + b for _ in range({i})]" for i in range(25 * scale))
    return compile(ast.parse(text), "<made>", "exec")


def nested(depth):
    held = bytearray(600), [depth] * 200
    return nested(depth - 1) + len(held) if depth else 0


def recursion(scale):
    sys.setrecursionlimit(300 * scale + 1000)
    return nested(200 * scale)


PROGRAMS = {function.__name__: function for function in (documents, objects, texts, rows, sources, recursion)}


def work(name, scale):
    return PROGRAMS[name](scale)


def tell():
    """Of what is alive and was made below work(): bytes and blocks."""
    lines = {line for *_, line in work.__code__.co_lines() if line}
    found = [trace for trace in tracemalloc.take_snapshot().traces
             if any(frame.filename == __file__ and frame.lineno in lines for frame in trace.traceback)]
    print(sum(trace.size for trace in found), len(found), flush=True)


PROGRAMS[sys.argv[1]](int(sys.argv[2]))  # what is made once for all is there before work()
kept = work(sys.argv[1], int(sys.argv[2]))
if sys.argv[3:] == ["tracemalloc"]:
    tell()
if sys.argv[3:]:
    os._exit(0)
