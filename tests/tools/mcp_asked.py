# SPDX-License-Identifier: Apache-2.0
"""Questions that cairn mcp is asked about the recordings in tests/mcp; tests/mcp/answers.txt has what it answers.
dev/mcp-answers.py writes that, tests/e2e/mcp_questions.py compares."""

import json
import pathlib
import shutil
import tarfile

import cairn_test as t
from mcp_client import Client, text_of

KEPT = t.SOURCE / "tests/mcp"
RECORDINGS = KEPT / "recordings.tar.xz"
ANSWERS = KEPT / "answers.txt"

QUESTIONS = [
    ("recordings", {}),
    # a leak
    ("summary", {"recording": "serve.cairn"}),
    ("next", {"recording": "serve.cairn"}),
    ("growth", {"recording": "serve.cairn"}),
    ("growth", {"recording": "serve.cairn", "function": "render_page"}),
    ("leaks", {"recording": "serve.cairn"}),
    ("leaks", {"recording": "serve.cairn", "baseline": "serve.cairn"}),
    ("callers", {"recording": "serve.cairn", "function": "^session_open$", "by": "exit"}),
    ("timeline", {"recording": "serve.cairn"}),
    ("top", {"recording": "serve.cairn", "at": "25ms"}),
    ("top", {"recording": "serve.cairn", "between": "10ms,50ms"}),
    ("top", {"recording": "serve.cairn", "group": "sizes"}),
    ("top", {"recording": "serve.cairn", "group": "ages"}),
    ("top", {"recording": "serve.cairn", "group": "temporary", "limit": 1}),
    ("top", {"recording": "serve.cairn", "group": "threads"}),
    ("diff", {"before": "serve.cairn", "before_at": "10ms", "after": "serve.cairn", "after_at": "exit"}),
    ("check", {"recording": "serve.cairn", "max_exit": "1M"}),
    ("source", {"recording": "serve.cairn", "file": "shop.c"}),
    # a peak
    ("summary", {"recording": "load.cairn", "limit": 1}),
    ("next", {"recording": "load.cairn"}),
    ("top", {"recording": "load.cairn", "group": "functions"}),
    ("top", {"recording": "load.cairn", "group": "lines", "by": "peak"}),
    ("top", {"recording": "load.cairn", "group": "files"}),
    ("top", {"recording": "load.cairn", "by": "exit"}),
    ("top", {"recording": "load.cairn", "function": "read_row"}),
    ("top", {"recording": "load.cairn", "ignore": "read_row"}),
    ("tree", {"recording": "load.cairn"}),
    ("tree", {"recording": "load.cairn", "function": "sort_rows", "depth": 2}),
    ("callers", {"recording": "load.cairn", "function": "read_row"}),
    ("source", {"recording": "load.cairn", "file": "shop.c", "by": "peak"}),
    ("check", {"recording": "load.cairn", "max_peak": "4M", "max_calls": "10000"}),
    # a regression
    ("diff", {"before": "parse.cairn", "after": "parse-copies.cairn", "by": "calls"}),
    ("diff", {"before": "parse.cairn", "after": "parse-copies.cairn", "group": "functions", "by": "allocated"}),
    ("check", {"recording": "parse-copies.cairn", "baseline": "parse.cairn", "tolerance": "5%"}),
    ("check", {"recording": "parse.cairn", "baseline": "parse-copies.cairn"}),
    ("verify_fix", {"claim": "left:session_open", "before": "serve.cairn", "after": "parse.cairn"}),
    ("verify_fix", {"claim": "left:session_open", "before": "serve.cairn", "after": "serve.cairn"}),
    ("verify_fix", {"claim": "temporary", "before": "load.cairn", "after": "parse.cairn"}),
    ("next", {"recording": "parse-copies.cairn"}),
    ("top", {"recording": "parse-copies.cairn", "group": "frees"}),
    ("next", {"recording": "parse.cairn"}),
    # mistakes
    ("top", {"recording": "parse.cairn", "function": "session_open"}),
    ("top", {"recording": "nothing.cairn"}),
    ("source", {"recording": "load.cairn", "file": "other.c"}),
    ("callers", {"recording": "load.cairn"}),
]


def unpack(place):
    """The recordings and the source, in a directory of their own."""
    place = pathlib.Path(place)
    place.mkdir()
    with tarfile.open(RECORDINGS) as archive:
        archive.extractall(place, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(place)
    shutil.copy(KEPT / "shop.c", place / "shop.c")
    return place.resolve()


def ask_all(place):
    """All questions with their answers, as the file has them."""
    parts = []
    with Client(cwd=place) as client:
        numbers = [client.ask("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in QUESTIONS[:30]]
        answers = [client.answer(number) for number in numbers]
        answers += [client.request("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in QUESTIONS[30:]]
    for (tool, arguments), answer in zip(QUESTIONS, answers):
        text, is_error = text_of(answer)
        text = text.replace(str(place), "ROOT").rstrip("\n")
        parts.append(f"### {tool} {json.dumps(arguments)}{' (error)' if is_error else ''}\n{text}\n")
    return parts
