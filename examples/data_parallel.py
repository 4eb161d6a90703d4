"""Train a small transformer block over several ranks, each on its part of every batch.

    mpirun -n 4 python examples/data_parallel.py                        # a device for each rank
    NBX_GPU_BACKEND=host mpirun -n 4 python examples/data_parallel.py   # no device: host memory, interpreted kernels
    python examples/data_parallel.py --ray 4                            # the same in workers of Ray
    python examples/data_parallel.py --alone                            # one process, the same losses

It prints the loss of every step. Gradients are averaged by one all-reduce of one piece of memory.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nbxrt.distributed import Communicator

BATCH, LENGTH, WIDTH, HIDDEN, RATE = 4, 8, 16, 32, 0.5


def train(comm: Communicator | None, steps: int) -> list[float]:
    """The loss of every step, the same on every rank."""
    from transformer_block import Block

    import nbxrt

    rank, size = (comm.rank, comm.size) if comm else (0, 1)
    block, random, losses = Block(WIDTH, HIDDEN), np.random.default_rng(1), []
    teacher = random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4
    part = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    for _step in range(steps):
        x = random.standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32)[part]
        loss = block.step(nbxrt.from_numpy(x), nbxrt.from_numpy(np.tanh(x @ teacher)))
        if comm:
            comm.all_reduce(block.gradient, "avg")
            comm.all_reduce(loss, "avg")
            comm.wait()
        block.update(RATE)
        losses.append(float(loss.numpy()[0]))
    return losses


def one_rank(steps: int) -> list[float]:
    """What each process does, whoever has started it."""
    import nbxrt.distributed as dist

    with dist.init() as comm:
        losses = train(comm, steps)
        if comm.rank == 0:
            report(losses)
        return losses


def worker(folder: str, steps: int) -> list[float]:
    """What each worker of Ray does."""
    sys.path.insert(0, folder)
    return one_rank(steps)


def report(losses: list[float]) -> None:
    """Print the loss of every step."""
    for step, loss in enumerate(losses):
        print(f"step {step}: loss {loss:.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--ray", type=int, metavar="WORKERS", help="start so many workers of Ray")
    parser.add_argument("--alone", action="store_true", help="one process, no engine")
    asked = parser.parse_args()
    if asked.ray:
        import nbxrt.distributed.ray as on_ray

        folder = str(Path(__file__).resolve().parent)
        report(on_ray.run(worker, folder, asked.steps, workers=asked.ray, cpus_per_worker=0.5)[0])
    elif asked.alone:
        report(train(None, asked.steps))
    else:
        one_rank(asked.steps)


if __name__ == "__main__":
    main()
