# SPDX-License-Identifier: Apache-2.0
"""Ports for programs that must be told one."""
import contextlib
import random
import socket


def free_port():
    """One that nobody has, and that the kernel gives nobody who leaves the choice to it: those who bind or connect
    meanwhile get another one."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


held = []


def held_port():
    """One that stays nobody's, and refuses whoever connects, until a server of this test listens on it (with SO_REUSEADDR, as all do)."""
    while True:
        port, holder = free_port(), socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            holder.bind(("127.0.0.1", port))
            held.append(holder)
            return port


def free_ports(n):
    """So many of them, each another one."""
    ports = set()
    while len(ports) < n:
        ports.add(free_port())
    return list(ports)
