"""Check the collectives of this machine's real devices: a process for each, and NumPy says what is right.

    python scripts/gpu_collectives.py [BACKEND] [--ranks N] [--json FILE] [--only PROGRAM ...] [--ray]

It runs the programs of tests/distributed/scenarios.py that the tests run on simulated devices, those in which a rank
is late or killed among them, and beside them the example's training. With `--ray` some of them run in workers of Ray
instead, one after the other. Exit status 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "tests" / "distributed"
sys.path.insert(0, str(ROOT))

import nbxrt  # noqa: E402  # the one beside this script

CALLS = (
    "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "recv",
)  # fmt: skip

#: Program, variables, and the exit status of the last rank: -9 where it kills itself.
PROGRAMS: tuple[tuple[str, dict[str, str], int], ...] = (
    ("every_collective", {}, 0),
    ("no_elements", {}, 0),
    ("refusals", {}, 0),
    ("different_calls", {"NBXRT_DIST_CHECK": "1"}, 0),
    ("overlapping_groups", {}, 0),
    ("a_captured_collective", {}, 0),
    ("shared_memory", {}, 0),
    ("training", {}, 0),
    ("a_rank_is_late", {"TIMEOUT": "2"}, 0),
    ("a_rank_is_killed", {}, -9),
    ("a_rank_that_ends", {}, -9),
    ("a_rank_that_ends_as_it_joins", {}, -9),
    ("a_rank_leaves", {}, 0),
    ("closing_in_another_order", {}, 0),
    ("an_exit_in_the_middle", {}, 4),
    ("a_fork", {}, 0),
    *(("a_rank_that_ends_in_the_middle", {"OPERATION": operation}, -9) for operation in CALLS),
    ("an_end_that_leaves_work_behind", {}, 0),
)
#: Those that run in workers of Ray.
BY_RAY = ("no_elements", "every_collective", "refusals", "overlapping_groups", "training")
#: Programs that run at once.
JOBS = 4


def run(program: str, settings: dict[str, str], last: int, size: int, backend: str) -> dict[str, Any]:
    """Run a program in a process for each device; what went wrong, or nothing, and how long it took."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as meeting:
        environ = {**os.environ, "BACKEND": backend, "SIZE": str(size), "MEET": meeting, **settings}
        environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SCENARIOS), environ.get("PYTHONPATH", "")])
        ranks = [
            subprocess.Popen(
                [sys.executable, str(SCENARIOS / "scenarios.py"), program],
                env={**environ, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(size)
        ]
        said = [_said(rank) for rank in ranks]
    expected = [0] * (size - 1) + [last]
    codes = [rank.returncode for rank in ranks]
    wrong = "" if codes == expected else f"ended with {codes}\n" + "\n".join(said)
    name = " ".join([program, *settings.values()]) if "OPERATION" in settings else program
    return {"program": name, "seconds": round(time.perf_counter() - start, 2), "wrong": wrong}


def run_by_ray(names: Sequence[str], size: int) -> list[dict[str, Any]]:
    """Run programs in workers of Ray. Raises: what the first one raises that is wrong."""
    import ray

    import nbxrt.distributed as dist

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SCENARIOS), os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=size, num_gpus=size, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    return dist.ray.run(in_worker, names, workers=size, gpus_per_worker=1, timeout=60)[0]


def in_worker(names: Sequence[str]) -> list[dict[str, Any]]:
    """What each worker does, whose communicator is of all of them."""
    import scenarios

    import nbxrt.distributed as dist

    rows = []
    with dist.init(timeout=30) as comm:
        for name in names:
            start = time.perf_counter()
            scenarios.named(name)(comm)
            rows.append({"program": f"{name}, by Ray", "seconds": round(time.perf_counter() - start, 2), "wrong": ""})
    return rows


def results(asked: argparse.Namespace, size: int, backend: str) -> Iterator[dict[str, Any]]:
    """How each program that is asked for went."""
    programs = [each for each in PROGRAMS if not asked.only or each[0] in asked.only]
    if asked.ray:
        yield from run_by_ray([name for name, *_rest in programs if name in BY_RAY], size)
        return
    with ThreadPoolExecutor(JOBS) as pool:
        yield from pool.map(lambda each: run(*each, size, backend), programs)


def show(row: dict[str, Any]) -> None:
    """Print how a program went."""
    print(f"{'wrong' if row['wrong'] else 'fine':<6} {row['seconds']:6.2f} s  {row['program']}", flush=True)
    if row["wrong"]:
        print(row["wrong"], flush=True)


def _said(rank: subprocess.Popen[str]) -> str:
    try:
        return rank.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        rank.kill()
        return rank.communicate()[0] + "\nit did not end within 60 s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend", nargs="?", default="")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", metavar="PROGRAM")
    parser.add_argument("--ray", action="store_true")
    asked = parser.parse_args()
    runtime = nbxrt.open(asked.backend or nbxrt.gpu_backend())
    size = asked.ranks or runtime.device_count()
    version = ".".join(map(str, runtime.version("collectives")))
    print(f"{runtime.title}, {size} devices ({runtime.device_name(0)}), collectives {version}\n")
    rows = []
    for row in results(asked, size, runtime.name):
        rows.append(row)
        show(row)
    if asked.json:
        asked.json.write_text(json.dumps({"devices": size, "collectives": version, "programs": rows}, indent=2) + "\n")
    sys.exit(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    main()
