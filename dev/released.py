# SPDX-License-Identifier: Apache-2.0
"""What the scripts share that pack the files of `make dist`: dev/packages.py, image.py and distributions.py."""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search(r'"(\d+\.\d+\.\d+)"', (TOP / "tool/base/version.h").read_text("utf-8"))[1]
ABOUT = "Heap profiler for Linux: what holds a program's memory, and what leaks"


def arch_of(file):
    return file.name.rpartition("-")[2]


def arguments(script, known):
    """(directory, files) of the command line; a file for no known processor ends the script."""
    if len(sys.argv) < 3:
        sys.exit(f"usage: {script} DIRECTORY FILE...")
    files = [pathlib.Path(word) for word in sys.argv[2:]]
    strange = [str(file) for file in files if arch_of(file) not in known]
    if strange:
        sys.exit(f"{script}: {' '.join(strange)}: a file is called cairn-VERSION-linux-ARCH, of {' or '.join(known)}")
    return pathlib.Path(sys.argv[1]), files


def seconds():
    """The date of the commit, in seconds since 1970; 0 if nobody knows."""
    said = subprocess.run([TOP / "dev/commit.sh", "--seconds"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(said.strip() or 0)
