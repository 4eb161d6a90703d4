"""Ray as the engine: `run` places one worker a device, through Ray's own accounting, and each worker calls `init`."""

from __future__ import annotations

import math
import os
import secrets
import time
from typing import TYPE_CHECKING, Any

import ray

from nbxrt import errors
from nbxrt.distributed import watch
from nbxrt.distributed.checks import seconds_of
from nbxrt.distributed.communicator import TIMEOUT
from nbxrt.distributed.raylink import Meeting, RayLink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nbxrt.distributed.links import Link
    from nbxrt.runtime import Runtime

#: The world of this worker, None in every other process.
_own: RayWorld | None = None


def run(
    function: Callable[..., Any],
    *arguments: Any,
    workers: int,
    gpus_per_worker: float | None = None,
    cpus_per_worker: float = 1,
    resources: Mapping[str, float] | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> list[Any]:
    """Call a function in so many workers of Ray at once; what each answers, in order of rank.

    Inside, `nbxrt.distributed.init()` gives the communicator of the workers. `gpus_per_worker` is what Ray counts as
    `GPU`, 1 when left out, or 0 where the backend in force is one of a processor; accelerators that Ray counts under
    another name are `resources`. `environment` are variables of the workers. Ray is started here if it was not.
    Workers have `timeout` seconds to start; when one fails the others have as long to end, and then are ended.

    Raises: ArgumentTypeError; ArgumentValueError when the cluster can never place them, CommunicatorTimeoutError when
    it does not in time; what the function raised in the first worker that failed, or Ray's error for one that died.
    """
    seconds_of(timeout)
    if not callable(function):
        raise errors.wrong_type("`run`", "a function", function)
    gpus = _usual_gpus() if gpus_per_worker is None else gpus_per_worker
    share = {"CPU": cpus_per_worker, "GPU": gpus, **_mapping("resources", resources)}
    variables = _mapping("environment", environment)
    _demand_sense(workers, share, variables)
    share = {name: amount for name, amount in share.items() if amount}
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    _demand_room(workers, share)
    group = ray.util.placement_group([share] * workers, strategy="PACK")
    try:
        _demand_placed(group, workers, share, timeout)
        return _worked(group, share, workers, function, arguments, variables, timeout)
    finally:
        ray.util.remove_placement_group(group)


def _usual_gpus() -> float:
    from nbxrt import descriptions
    from nbxrt.detection import gpu_backend
    from nbxrt.runtime import in_force

    runtime = in_force()
    kind = runtime.kind if runtime else descriptions.load(gpu_backend())["kind"]
    return 0 if kind == "cpu" else 1


def _mapping(name: str, given: Any) -> dict[str, Any]:
    try:
        return dict(given or {})
    except (TypeError, ValueError):
        raise errors.wrong_type(f"`{name}`", "a mapping", given) from None


def _demand_sense(workers: Any, share: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
    """What Ray would take as something else, or wait for without end. Raises: ArgumentTypeError, ArgumentValueError."""
    if workers.__class__ is not int or workers < 1:
        raise errors.ArgumentValueError(f"`workers` is a number from 1, not {workers!r}", parameter="workers")
    for name, amount in share.items():
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise errors.ArgumentTypeError(f"a worker takes a number of {name}, not {amount!r}", value=amount)
        if not 0 <= amount < math.inf:
            raise errors.ArgumentValueError(f"a worker takes no less than 0 {name}, not {amount!r}", value=amount)
    if not any(share.values()):
        raise errors.ArgumentValueError(
            "a worker takes something of what Ray counts, and nothing is asked for",
            hint="`cpus_per_worker`, which may be a part of 1",
        )
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise errors.ArgumentTypeError(f"`environment` is of texts, not {name!r}: {value!r}", value=value)


def _demand_room(workers: int, share: Mapping[str, float]) -> None:
    there = ray.cluster_resources()
    for name, amount in share.items():
        if there.get(name, 0) < amount * workers:
            raise errors.ArgumentValueError(
                f"{workers} workers want {amount * workers:g} {name}, and Ray's cluster has {there.get(name, 0):g}",
                hint="`gpus_per_worker`, `cpus_per_worker` and `resources` say what a worker takes",
            )


def _demand_placed(group: Any, workers: int, share: Mapping[str, float], seconds: float) -> None:
    if not group.wait(seconds):
        said = ", ".join(f"{amount:g} {name}" for name, amount in share.items())
        raise errors.CommunicatorTimeoutError(
            f"Ray did not place {workers} workers of {said} within {seconds:g} s",
            hint="somebody else holds them; `ray status` shows what is free",
            seconds=seconds,
        )


def _worked(
    group: Any,
    share: Mapping[str, float],
    workers: int,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    environment: dict[str, str],
    seconds: float,
) -> list[Any]:
    place = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group)
    # Each worker waits in a call of its own for all others.
    meeting = ray.remote(Meeting).options(num_cpus=0, max_concurrency=4 * workers + 16).remote()
    name = secrets.token_hex(8)
    others = {kind: amount for kind, amount in share.items() if kind not in ("CPU", "GPU")}
    worker = ray.remote(_Worker).options(
        num_cpus=share.get("CPU", 0),
        num_gpus=share.get("GPU", 0),
        resources=others or None,
        scheduling_strategy=place,
        runtime_env={"env_vars": environment} if environment else None,
    )
    actors = [worker.remote() for _rank in range(workers)]
    try:
        calls = [
            actor.work.remote(function, arguments, meeting, name, rank, workers) for rank, actor in enumerate(actors)
        ]
        return _answers(calls, seconds)
    finally:
        for actor in [*actors, meeting]:
            ray.kill(actor)


def _answers(calls: Sequence[Any], seconds: float) -> list[Any]:
    """What all calls answer. Once one has failed, the others have a while to find out by themselves."""
    waiting, first, end = list(calls), None, math.inf
    while waiting and time.monotonic() < end:
        done, waiting = ray.wait(waiting, timeout=None if first is None else max(end - time.monotonic(), 0))
        if first is None and (first := next(filter(None, map(_failed, done)), None)) is not None:
            end = time.monotonic() + seconds
    if first is not None:
        raise first
    return [ray.get(call) for call in calls]


def _failed(call: Any) -> BaseException | None:
    """The error of a call that has ended, None for one that answered or goes on."""
    try:
        ray.get(call, timeout=0)
    except ray.exceptions.GetTimeoutError:
        return None
    except ray.exceptions.RayTaskError as error:
        cause: BaseException = error.cause if error.cause is not None else error
        if cause is not error:
            cause.__cause__ = error  # which shows where in the worker it was raised
        return cause
    except ray.exceptions.RayError as error:
        died: BaseException = error
        return died
    return None


class _Worker:
    """The actor of one rank."""

    def work(
        self, function: Callable[..., Any], arguments: Sequence[Any], meeting: Any, name: str, rank: int, size: int
    ) -> Any:
        global _own  # noqa: PLW0603  # a worker is of one world
        _own = RayWorld(meeting, name, rank, size)
        try:
            return function(*arguments)
        except BaseException:  # its process goes on, and others may wait for it
            watch.abort_all()
            raise


def own_world(seconds: float) -> RayWorld:
    """The world of this worker. Raises: ArgumentValueError in a process that `run` did not start."""
    if _own is None:
        raise errors.ArgumentValueError(
            "this process is no worker of `nbxrt.distributed.ray.run`, so that it has no rank",
            hint="`nbxrt.distributed.ray.run(function, workers=N)` starts workers that have one",
        )
    return _own.opened(seconds)


class RayWorld:
    """The workers of one `run`."""

    engine = "Ray"

    def __init__(self, meeting: Any, name: str, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.local_rank = self.local_size = 0
        self.device: int | None = _device_of_ray()
        self._meeting, self._name = meeting, name
        self._worlds = 0
        self._seconds = TIMEOUT
        self._calls = 0

    def opened(self, seconds: float) -> RayWorld:
        """For one more `init`; which number on its host each rank has is found out."""
        self._worlds += 1
        self._seconds, self._calls = seconds, 0
        hosts = self.exchange(ray.get_runtime_context().get_node_id())
        self.local_rank = hosts[: self.rank].count(hosts[self.rank])
        self.local_size = hosts.count(hosts[self.rank])
        return self

    def exchange(self, value: Any) -> list[Any]:
        """What every rank says, in order of rank. Raises: CommunicatorTimeoutError."""
        self._calls += 1
        name = f"{self._name}.{self._worlds}/world/{self._calls}"
        ray.get(self._meeting.say.remote(name, self.rank, value))
        heard = self._meeting.hear.remote(name, list(range(self.size)), self.size)
        try:
            answers: list[Any] = ray.get(heard, timeout=self._seconds)
        except ray.exceptions.GetTimeoutError:
            missing = ray.get(self._meeting.missing.remote(name, list(range(self.size))))
            raise errors.CommunicatorTimeoutError(
                f"rank {self.rank} of {self.size}: ranks {', '.join(map(str, missing))} did not come to `init` "
                f"within {self._seconds:g} s",
                operation="init",
                rank=self.rank,
                size=self.size,
                missing=tuple(missing),
                seconds=self._seconds,
            ) from None
        return answers

    def link(self, runtime: Runtime, device: int, seconds: float) -> tuple[Link, bytes]:
        """Collectives on host memory through Ray's object store, and what tells this communicator apart."""
        name = f"{self._name}.{self._worlds}"
        return RayLink(runtime, device, self._meeting, name, self.rank, self.size, seconds), name.encode()

    def close(self) -> None:
        """Nothing is held: the meeting is the workers' for as long as they live."""


def _device_of_ray() -> int | None:
    """The device that Ray gave this worker: the first visible one, or by its number where Ray hides none."""
    given = [ids for ids in ray.get_runtime_context().get_accelerator_ids().values() if ids]
    if not given:
        return None
    hides = any(os.environ.get(name) == ",".join(given[0]) for name in os.environ if name.endswith("VISIBLE_DEVICES"))
    return 0 if hides or not given[0][0].isdigit() else int(given[0][0])
