"""What ranks cost before they do anything: start, meeting, identity, memory. The constants of docs/scale.md.

mpirun -n 4 python benchmarks/scale.py            # with NBX_GPU_BACKEND=host where there is no device
python benchmarks/scale.py --ray 4
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

TURNS = 200


def kibibytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def timed(call: Any, turns: int = TURNS) -> float:
    """Microseconds of one call, from many."""
    start = time.perf_counter()
    for _turn in range(turns):
        call()
    return 1e6 * (time.perf_counter() - start) / turns


def one_rank(engine: str) -> dict[str, Any]:
    """The constants as one rank has them."""
    empty, start = kibibytes(), time.perf_counter()
    import nbxrt.distributed as dist
    from nbxrt.distributed.initializing import device_label
    from nbxrt.distributed.worlds import find_world

    imported = time.perf_counter()
    world = find_world(engine, 60)
    found = time.perf_counter()
    comm = dist.init(engine)
    ready, memory = time.perf_counter(), kibibytes()
    label = device_label(comm.runtime, comm.device)
    facts = pickle.dumps({"backend": comm.runtime.name, "device": comm.device, "label": label})
    answer = {
        "ranks": comm.size,
        "backend": comm.runtime.name,
        "import ms": 1e3 * (imported - start),
        "engine ms": 1e3 * (found - imported),
        "init ms": 1e3 * (ready - found),
        "memory MiB": (memory - empty) / 1024,
        "facts bytes": len(facts),
        "exchange us": timed(lambda: world.exchange(facts)),
        "barrier us": timed(comm.barrier),
        "split ms": timed(lambda: comm.split(0).close(), 10) / 1e3,
    }
    comm.close()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ray", type=int, metavar="WORKERS")
    asked = parser.parse_args()
    if asked.ray:
        import nbxrt.distributed.ray as on_ray

        start = time.perf_counter()
        answers = on_ray.run(one_rank, "ray", workers=asked.ray, cpus_per_worker=0.25)
        answers[0]["run s"] = time.perf_counter() - start
        print(json.dumps(answers[0]))
        return
    from mpi4py import MPI

    answer = one_rank("mpi")
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
