#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of docs/reference that the tool prints from its own tables of commands and views:
dev/reference.py [BUILD]. tests/e2e/reference.py fails while they differ."""

import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("commands", "views")


def printed(cairn, page):
    return subprocess.run([cairn, "help", "--reference", page], check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    tool = TOP / (sys.argv[1] if len(sys.argv) > 1 else "build") / "cairn"
    for name in PAGES:
        (TOP / "docs/reference" / f"{name}.md").write_bytes(printed(tool, name))
