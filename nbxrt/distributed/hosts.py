"""Which host a rank is on, and which other processes it sees there by their numbers."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def host() -> str:
    """What tells this host apart: its name, and when it was started where the system says so."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        started = ""
    return f"{socket.gethostname()} {started}"


def neighbourhood() -> str:
    """What tells apart where a process has the same number for all: a host, and a container with its own numbers."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return f"{host()} {numbers}"
