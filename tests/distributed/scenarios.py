"""Programs of ranks, run as `python scenarios.py NAME`: every rank checks what it sees.

Those that take a communicator run on every kind of it: on simulated and real devices, under MPI, in workers of Ray.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import collecting
import devices
import failing
import refusing
from ranks import join

import nbxrt.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable


def everything(comm: Any) -> None:
    """For engines, whose start is slow."""
    refusing.refusals(comm)
    collecting.no_elements(comm)
    collecting.every_collective(comm)
    collecting.overlapping_groups(comm)


def named(name: str) -> Callable[..., None]:
    """The program of that name. Raises: AttributeError."""
    if name == "everything":
        return everything
    home = next((module for module in (collecting, refusing, failing) if hasattr(module, name)), devices)
    program: Callable[..., None] = getattr(home, name)
    return program


def main() -> None:
    program = named(sys.argv[1])
    timeout = float(os.environ.get("TIMEOUT", "60"))
    if program.__code__.co_argcount == 0:
        program()
        return
    if "ENGINE" in os.environ and "TIMEOUT" in os.environ:  # a first one waits for all, who start at different times
        dist.init().close()
    device = int(os.environ["DEVICE"]) if "DEVICE" in os.environ else None
    comm = dist.init(timeout=timeout, device=device) if "ENGINE" in os.environ else join(timeout=timeout)
    with comm:
        program(comm)


if __name__ == "__main__":
    main()
