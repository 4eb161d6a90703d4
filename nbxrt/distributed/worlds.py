"""Which engine has started this process: MPI or Ray, by what they leave in it; and what init needs of either."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any, Protocol

from nbxrt import errors
from nbxrt.distributed.checks import seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbxrt.distributed.links import Link
    from nbxrt.runtime import Runtime

#: Variables that launchers of MPI set for every process: Open MPI, MPICH and its kin, PMIx as `srun --mpi=pmix` has it.
MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_RANK")
ENGINES = ("mpi", "ray")


class World(Protocol):
    """All ranks that an engine has started."""

    engine: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    #: The device that the engine has given to this rank; None where ranks take devices by their number on the host.
    device: int | None

    def exchange(self, value: Any) -> list[Any]:
        """What every rank says, in order of rank. Raises: CommunicatorTimeoutError."""

    def link(self, runtime: Runtime, device: int, seconds: float) -> tuple[Link, bytes]:
        """The engine's own collectives on host memory, and what tells this communicator apart."""

    def close(self) -> None:
        """Give back what belongs to the world's own messages."""


def find_world(engine: str | None, seconds: float, environ: Mapping[str, str] = os.environ) -> World:
    """The world that this process belongs to.

    Raises: BackendNotFoundError when there is none, ArgumentValueError when two claim it or the engine is unknown,
    CapabilityError when the engine's package is not installed, CommunicatorTimeoutError.
    """
    seconds_of(seconds)
    if engine is not None and engine not in ENGINES:
        raise errors.ArgumentValueError(f"`engine` is one of {', '.join(ENGINES)}, not {engine!r}", value=engine)
    claims = {"mpi": claim_of_mpi(environ), "ray": claim_of_ray()}
    if engine is None:
        engine = _only_claim(claims)
    return _MAKERS[engine](claims[engine], seconds)


def _only_claim(claims: Mapping[str, str]) -> str:
    made = [engine for engine, claim in claims.items() if claim]
    if len(made) == 1:
        return made[0]
    if made:
        raise errors.ArgumentValueError(
            f"MPI and Ray both claim this process: {claims['mpi']}, and {claims['ray']}",
            hint='say which one is meant: `init(engine="mpi")` or `init(engine="ray")`',
        )
    raise errors.ArgumentValueError(
        "no engine has started this process, so that it has no rank",
        hint="start it by `mpirun -n 4 python …`, by `srun --mpi=pmix`, or by `nbxrt.distributed.ray.run`; "
        '`init(engine="mpi")` makes a world of one',
    )


def claim_of_mpi(environ: Mapping[str, str] = os.environ) -> str:
    """What shows that MPI has started this process; empty when nothing does."""
    for name in MPI_VARIABLES:
        if environ.get(name):
            return f"{name} is {environ[name]}"
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and mpi.COMM_WORLD.Get_size() > 1:
        return f"mpi4py has a world of {mpi.COMM_WORLD.Get_size()}"
    return ""


def claim_of_ray() -> str:
    """What shows that this process is a worker of Ray; empty when nothing does."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return ""
    place = ray.get_runtime_context()
    worker = place.get_actor_id() or place.get_task_id()
    return f"it is the worker {worker[:8]} of Ray" if worker else ""


def _mpi_world(claim: str, seconds: float) -> World:
    _demand_package("mpi4py", "mpi", claim or "MPI is asked for")
    from nbxrt.distributed.mpi import MpiWorld

    return MpiWorld(seconds)


def _ray_world(claim: str, seconds: float) -> World:
    _demand_package("ray", "ray", claim or "Ray is asked for")
    from nbxrt.distributed.ray import own_world

    return own_world(seconds)


def _demand_package(package: str, extra: str, claim: str) -> None:
    for needed in (package, "numpy"):
        if importlib.util.find_spec(needed) is None:
            raise errors.CapabilityError(
                f"{claim}, and the package `{needed}` is not installed", hint=f"`pip install nbxrt[{extra}]`"
            )


_MAKERS = {"mpi": _mpi_world, "ray": _ray_world}
