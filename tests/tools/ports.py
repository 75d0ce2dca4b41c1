# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine, for servers beside a test."""

import socket


def free_port():
    """One that nobody listens at now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
