"""A program that compiles, launches and tunes a kernel on a simulated vendor; run by triton_processes.py.

    program.py VENDOR FOLDER THREADS ROUNDS PROCESSES

The simulation is built in FOLDER; after that no program is on the PATH but what lies there, and CC is what LATER_CC
says. Each round begins with an empty cache, in all PROCESSES at once. It prints which programs were started all the
same, and whether torch is there.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

started = []


def watch(event, details):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.spawn"):
        command = details[0] if isinstance(details[0], (str, bytes, os.PathLike)) else details[1]
        started.append(os.path.basename(os.fsdecode(command)))


def meet(place, processes):
    """Go on when all processes have come here, with a cache of their own that is empty."""
    place.mkdir(exist_ok=True)
    (place / str(os.getpid())).touch()
    while len(list(place.iterdir())) < processes:
        time.sleep(0.002)
    os.environ["TRITON_CACHE_DIR"] = str(place.with_suffix(".cache"))


def main(vendor, folder, threads, rounds, processes):
    import binaries

    import nbxrt
    from nbxrt.simulation import build

    simulation = build(vendor, folder, cache=os.environ["SIMULATIONS"])
    os.environ["PATH"] = folder
    os.environ.pop("CC", None)
    if "LATER_CC" in os.environ:
        os.environ["CC"] = os.environ["LATER_CC"]
    sys.addaudithook(watch)
    simulation.on_image(binaries.module_text)
    simulation.set_architecture("gfx942:sramecc+:xnack-")
    simulation.set_attribute("compute_capability_major", 9)
    simulation.set_attribute("compute_capability_minor", 0)
    runtime = simulation.open()
    nbxrt.triton.install(runtime)
    import kernels
    import triton

    x = nbxrt.zeros(1024, device=nbxrt.Device(0, runtime=runtime))
    failures = []

    def run():
        try:
            kernels.add[(4,)](x, x, x, 1024, BLOCK=256)
        except BaseException as error:
            failures.append(repr(error))

    folders = Path(os.environ["TRITON_CACHE_DIR"])
    folders.mkdir(parents=True, exist_ok=True)
    for each in range(rounds):
        meet(folders / str(each), processes)
        kernels.add.device_caches.clear()
        workers = [threading.Thread(target=run) for _each in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    configs = [triton.Config({"BLOCK": size}) for size in (128, 256)]
    triton.autotune(configs, key=["n"])(kernels.add)[(4,)](x, x, x, 1024)
    runtime.sync()
    print(
        json.dumps(
            {
                "failures": failures,
                "launches": len([each for each in simulation.launches() if each.grid == (4, 1, 1)]) >= threads * rounds,
                "started": sorted(set(started)),
                "torch": "torch" in sys.modules,
                **nbxrt.triton.stats(),
            }
        )
    )


main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
