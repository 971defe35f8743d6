# SPDX-License-Identifier: MIT
"""Ports of TCP for the servers of tests."""

import contextlib
import random
import socket


def free_port():
    """A port of TCP for a server that starts a little later. The kernel gives ports from 32768 on to anybody who asks
    for any port, also in between."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
