"""Runs jobs in workers of Ray and prints what each answers or raises, as JSON: one start of Ray serves all of them."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import ray

import nbxrt.distributed as dist

HOST = {"NBX_GPU_BACKEND": "host"}
DEVICES = {"NBX_GPU_BACKEND": "cuda"}
BOTH = {**HOST, "OMPI_COMM_WORLD_SIZE": "4"}


def scenario(name: str, timeout: float = 60) -> tuple[int, str, int]:
    import scenarios

    with dist.init(timeout=timeout) as comm:
        scenarios.named(name)(comm)
        return comm.rank, comm.runtime.name, comm.device


def one_raises() -> None:
    import failing

    failing.one_raises()


def late() -> tuple[int, str, int]:
    """Workers start at different times: a first communicator waits for all, so that the next one has little time."""
    dist.init().close()
    return scenario("a_rank_is_late", 5.0)


def world() -> str:
    try:
        dist.init()
    except ValueError as error:
        return str(error)
    return ""


JOBS: dict[str, Any] = {
    "host": lambda: dist.ray.run(scenario, "everything", workers=4, gpus_per_worker=0, environment=HOST),
    "devices": lambda: dist.ray.run(scenario, "everything", workers=4, environment=DEVICES, gpus_per_worker=1),
    "killed": lambda: dist.ray.run(
        scenario, "a_rank_is_killed", workers=3, gpus_per_worker=0, environment={**HOST, "TELL": sys.argv[1]}
    ),
    "differ": lambda: dist.ray.run(
        scenario, "a_split_beside_another_call", workers=2, gpus_per_worker=0, environment=HOST
    ),
    "one raises": lambda: dist.ray.run(one_raises, workers=2, gpus_per_worker=0, environment=HOST),
    "late": lambda: dist.ray.run(late, workers=3, gpus_per_worker=0, environment=HOST),
    "both": lambda: dist.ray.run(
        world, workers=1, gpus_per_worker=0, environment={**HOST, "OMPI_COMM_WORLD_SIZE": "4"}
    ),
    "too many": lambda: dist.ray.run(world, workers=5, gpus_per_worker=1),
    "negative": lambda: dist.ray.run(world, workers=1, gpus_per_worker=-1),
    "nothing": lambda: dist.ray.run(world, workers=1, gpus_per_worker=0, cpus_per_worker=0),
    "words": lambda: dist.ray.run(world, workers=1, gpus_per_worker="1"),  # type: ignore[arg-type]
    "raises": lambda: dist.ray.run(scenario, "no such scenario", workers=2, gpus_per_worker=0, environment=HOST),
}


def main() -> None:
    ray.init(num_cpus=4, num_gpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    answers: dict[str, Any] = {}
    for name, job in JOBS.items():
        try:
            answers[name] = job()
        except Exception as error:  # noqa: BLE001  # it is an answer, too
            answers[name] = f"{type(error).__name__}: {error}"
    ray.shutdown()
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
