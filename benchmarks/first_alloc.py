"""Wall time from the interpreter's start to the first 1 MiB allocation: bare Python, bare ctypes, nbxrt, and its peers.

    python benchmarks/first_alloc.py [BACKEND] [--rounds N]

Every figure is the median of whole processes. The bare ctypes program calls the same function of the same file.
"""

from __future__ import annotations

import argparse
import subprocess

from measuring import in_turn, median, process_ms, show
from peers import FIRST_ALLOCATION, is_installed

NBYTES = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to the first allocation.")
    parser.add_argument("backend", nargs="?", help="the best that is here if left out")
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()
    import nbxrt

    runtime = nbxrt.open(asked.backend)
    named = "" if asked.backend is None else repr(asked.backend)
    programs = {
        "bare Python": "pass",
        "ctypes": by_ctypes(runtime),
        f"nbxrt.open({named})": f"import nbxrt; rt = nbxrt.open({named}); rt.malloc({NBYTES})",
        f"nbxrt.open({runtime.name!r})": f"import nbxrt; rt = nbxrt.open({runtime.name!r}); rt.malloc({NBYTES})",
    }
    if runtime.kind == "gpu":
        programs |= {name: program for name, (module, program) in FIRST_ALLOCATION.items() if is_installed(module)}
    usable = {name: program for name, program in programs.items() if _works(name, program)}
    measured = in_turn(
        {name: (lambda program=program: process_ms(program)) for name, program in usable.items()}, asked.rounds
    )
    rows = {name: median(values) for name, values in measured.items()}
    show(
        f"start to first allocation on {runtime.name} ({runtime.library().path}), median of {asked.rounds}",
        rows,
        "ms",
        1,
    )
    for name in list(rows)[2:]:
        print(f"  => {name}: {rows[name] / rows['ctypes']:.3f} x ctypes")


def by_ctypes(runtime: object) -> str:
    """A program that allocates by hand-written ctypes."""
    from bare import Call

    call = Call(runtime, "malloc")  # type: ignore[arg-type]
    path = call.library.path if call.library.path.startswith("/") else None
    values = {"param": lambda _a: f"ctypes.c_size_t({NBYTES})", "const": lambda a: f"ctypes.c_size_t({a[2]})",
              "out": lambda _a: "ctypes.byref(p)"}  # fmt: skip
    given = ", ".join(values[argument[0]](argument) for argument in call.arguments)
    return (
        f"import ctypes; c = ctypes.CDLL({path!r}); p = ctypes.c_void_p(); "
        f"r = c.{call.symbols[0]}({given}); assert r == 0, r"
    )


def _works(name: str, program: str) -> bool:
    """Whether the program runs; running it once also writes its bytecode and warms the file cache."""
    try:
        process_ms(program)
    except subprocess.CalledProcessError as error:
        print(f"{name} is not measured: {error.stderr.decode().strip().splitlines()[-1:]}")
        return False
    return True


if __name__ == "__main__":
    main()
