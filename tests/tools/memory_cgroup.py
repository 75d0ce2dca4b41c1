# SPDX-License-Identifier: Apache-2.0
"""A control group of the kernel's with a limit of memory, of either version, so that what goes wrong in it takes no
more than that from the machine."""

import os
import pathlib
import subprocess

import cairn_test as t

MIB = 1 << 20


class Cgroup:
    """`path` is None where none can be made, and `reason` says why."""

    PLACES = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))

    def __init__(self, name, mebibytes):
        self.path = None
        for place, limit in self.PLACES:
            path = pathlib.Path(place) / f"cairn-{name}-{os.getpid()}"
            try:
                path.mkdir()
            except OSError as error:
                self.reason = f"no cgroup can be made: {error}"
                continue
            try:
                (path / limit).write_text(str(mebibytes * MIB), encoding="ascii")
                self.path = path
                return
            except OSError as error:
                self.reason = f"no cgroup of memory can be made: {error}"
                path.rmdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.path:
            t.wait_until(lambda: not (self.path / "cgroup.procs").read_text(encoding="ascii"))
            self.path.rmdir()

    def start(self, *argv, **how):
        def enter():
            (self.path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

        return subprocess.Popen(argv, preexec_fn=enter, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how)

    def within(self, *argv):
        """The command that runs argv in it."""
        return ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh", *argv]
