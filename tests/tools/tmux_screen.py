# SPDX-License-Identifier: Apache-2.0
"""A command on a terminal of its own, by tmux: keys go in, the screen comes out as text."""

import os
import re
import subprocess
import time

import cairn_test as t

t.need("tmux")
PATIENCE_S = t.PATIENCE_S


class Screen:
    """`command` is for a shell; what it ends with is shown as "status N". One screen at a time."""

    servers = 0

    def __init__(self, command, columns=100, lines=30, locale="C.UTF-8"):
        if Screen.servers:
            self.tmux("kill-server")
        Screen.servers += 1  # the old one may take a while to go
        self.text = ""
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"export LC_ALL={locale}; {command}; echo status $?; sleep 100")

    @staticmethod
    def tmux(*arguments):
        # the server itself knows UTF-8, whatever the command is told
        argv = ["tmux", "-f", "/dev/null", "-S", os.path.abspath(f"tmux.{Screen.servers}"), *arguments]
        return subprocess.run(argv, check=False, capture_output=True,
                              env=t.environment({"LC_ALL": "C.UTF-8"})).stdout.decode()

    def look(self):
        self.text = self.tmux("capture-pane", "-p")
        return self.text

    def styled(self):
        """The screen with its escape sequences."""
        return self.tmux("capture-pane", "-p", "-e")

    def wait_for(self, pattern, what):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if re.search(pattern, self.look()):
                return True
            time.sleep(0.05)
        return t.check(False, f"{what}: no {pattern} in\n{self.text}")

    def press(self, keys, pattern, what):
        self.tmux("send-keys", *keys.split())
        return self.wait_for(pattern, what)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def close(self):
        self.tmux("kill-server")
