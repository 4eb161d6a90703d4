"""What `import nbxrt` costs over bare Python, and what `open` of a built-in backend costs over the bare `dlopen`.

    python benchmarks/import_and_open.py [BACKEND] [--rounds N]

Each figure is the median over fresh interpreters that keep their bytecode. Times are taken inside the interpreter,
since its start varies more than what is measured; whole processes are shown beside them.
"""

from __future__ import annotations

import argparse

from measuring import in_turn, median, process_ms, said_by_process, show

TIMED = "import time; a = time.perf_counter_ns(); {}; b = time.perf_counter_ns(); print((b - a) / 1e6)"
NOTHING = "pass"
IMPORT = "import nbxrt"
CTYPES = "import ctypes"
DLOPEN = "import ctypes; ctypes.CDLL({path!r})"
OPEN = "nbxrt.open({name!r})"
OPENED = (
    "import nbxrt, time; a = time.perf_counter_ns(); nbxrt.open({name!r}); b = time.perf_counter_ns(); "
    "print((b - a) / 1e6)"
)
FIRST = (
    "import nbxrt, time; rt = nbxrt.open({name!r}); a = time.perf_counter_ns(); rt.malloc; b = time.perf_counter_ns(); "
    "print((b - a) / 1e6)"
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of `import nbxrt` and of `nbxrt.open`.")
    parser.add_argument("backend", nargs="?", help="the best that is here if left out")
    parser.add_argument("--rounds", type=int, default=21)
    asked = parser.parse_args()
    import nbxrt

    runtime = nbxrt.open(asked.backend)
    path = runtime.library().path
    names = {"name": runtime.name, "path": path if path.startswith("/") or ":" in path else None}
    inside(names, asked.rounds)
    whole(names, asked.rounds)


def inside(names: dict[str, str | None], rounds: int) -> None:
    """Times that fresh interpreters measure of themselves."""
    programs = {
        "nothing": TIMED.format(NOTHING),
        "import nbxrt": TIMED.format(IMPORT),
        "import ctypes": TIMED.format(CTYPES),
        "import ctypes, dlopen": TIMED.format(DLOPEN.format(**names)),
        "open, nbxrt imported before": OPENED.format(**names),
        "first use of one operation": FIRST.format(**names),
    }
    measured = in_turn(
        {name: (lambda program=program: said_by_process(program)[0]) for name, program in programs.items()}, rounds
    )
    rows = {name: median(values) for name, values in measured.items()}
    show(f"inside the interpreter, {names['name']} ({names['path'] or 'this process'}), median of {rounds}", rows, "ms")
    print(f"  => import nbxrt over bare Python: {rows['import nbxrt'] - rows['nothing']:.2f} ms")
    print(
        "  => open over the bare dlopen (with ctypes):"
        f" {rows['open, nbxrt imported before'] - rows['import ctypes, dlopen']:.2f} ms"
    )


def whole(names: dict[str, str | None], rounds: int) -> None:
    """Wall times of whole processes."""
    programs = {
        "bare Python": NOTHING,
        "import nbxrt": IMPORT,
        "bare dlopen": DLOPEN.format(**names),
        "import nbxrt and open": f"{IMPORT}; {OPEN.format(**names)}",
    }
    measured = in_turn(
        {name: (lambda program=program: process_ms(program)) for name, program in programs.items()}, rounds
    )
    rows = {name: median(values) for name, values in measured.items()}
    show(f"whole processes, median of {rounds}", rows, "ms")
    print(f"  => import nbxrt over bare Python: {rows['import nbxrt'] - rows['bare Python']:.2f} ms")
    print(f"  => import and open over bare dlopen: {rows['import nbxrt and open'] - rows['bare dlopen']:.2f} ms")


if __name__ == "__main__":
    main()
