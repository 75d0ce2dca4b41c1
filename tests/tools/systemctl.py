#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""systemctl enable --now NAME.socket, where systemd does not run: listens where the socket's unit says, and at the first
request starts what the service's unit says, with the socket as systemd would hand it over (sd_listen_fds)."""

import os
import pathlib
import re
import select
import socket
import sys

UNITS = pathlib.Path("/etc/systemd/system")
FIRST_FD = 3


def word(unit, key):
    return re.search(rf"^{key}=(.*)$", (UNITS / unit).read_text("utf-8"), re.M)[1]


_, enable, now, name = sys.argv
assert (enable, now) == ("enable", "--now") and name.endswith(".socket"), sys.argv
address = word(name, "ListenStream")
os.makedirs(os.path.dirname(address), exist_ok=True)
listening = socket.socket(socket.AF_UNIX)
listening.bind(address)
os.chmod(address, int(word(name, "SocketMode"), 8))
listening.listen()
if not os.fork():
    os.setsid()
    select.select([listening], [], [])
    command = word(name.replace(".socket", ".service"), "ExecStart").split()
    if listening.fileno() != FIRST_FD:
        os.dup2(listening.fileno(), FIRST_FD)
    os.set_inheritable(FIRST_FD, True)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    os.execvp(os.path.basename(command[0]), command)
