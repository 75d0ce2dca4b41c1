# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine, for servers beside a test."""

import pathlib
import random
import socket

LOWEST = 10000


def free_port():
    """One that nobody listens at now, below those that the kernel gives to connections: one of these may take the
    port before the server does, and a client that asks it again and again comes to be connected with itself."""
    first_given = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    while True:
        port = random.randrange(LOWEST, max(first_given, LOWEST + 1000))
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
