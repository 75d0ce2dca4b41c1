# SPDX-License-Identifier: Apache-2.0
"""For notebooks and IPython: `%load_ext cairn.jupyter`, then `%%cairn` as a cell's first line runs the cell and says
what it allocated. Words after it are options of `cairn report` (--view tree, --top 20, ...)."""
import shlex

from . import Tracker


def _cell(shell):
    def cairn(line, cell):
        """%%cairn [OPTIONS OF cairn report]"""
        with Tracker(name="cell") as tracker:
            result = shell.run_cell(cell)
        if result.success:
            print(tracker.report(*shlex.split(line)))
    return cairn


def load_ipython_extension(shell):
    shell.register_magic_function(_cell(shell), magic_kind="cell", magic_name="cairn")
