"""Check a backend on this machine's real device, and print what was seen as Markdown for docs/hardware.md.

    python scripts/gpu_check.py [BACKEND] [--wheels DIR] [--device N] [--json FILE]

It runs the conformance suite, then facts that only a card can tell. Nothing but Python is needed; a file in
scripts/images named after the backend is the module that the suite loads. Exit status 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import faulthandler
import fnmatch
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import nbxrt  # noqa: E402  # the one beside this script
from nbxrt import conformance, errors  # noqa: E402
from nbxrt.binding.library import applies  # noqa: E402
from nbxrt.conformance.bench import Bench  # noqa: E402
from nbxrt.conformance.checking import Check, Skipped, Wrong, check, expect, expect_that  # noqa: E402
from nbxrt.conformance.suite import judged  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds after which the script ends itself, saying where it stood.
LIMIT = 115
#: What a cell holds before a call that must not write it.
UNTOUCHED = 0x5EAF00D
#: A name of the module's kernel and of its variable, with its value: see scripts/images.
KERNEL, VARIABLE, VALUE = "add", "number", 271828
#: Values of a visibility variable under which no device is left.
HIDDEN = ("", "-1")


# Jobs: what a fresh process does, since a driver that was touched here cannot be untouched. Each answers plain values.


def hidden(name: str) -> dict[str, Any]:
    """What calls answer where no device is visible, by the vendor's functions and by ours."""
    runtime = nbxrt.open(name)
    library, table = runtime.library(), runtime.table()
    count, address = ctypes.c_int(UNTOUCHED), ctypes.c_void_p(UNTOUCHED)
    counted = getattr(runtime, table["device_count"])(ctypes.byref(count))
    allocated = getattr(runtime, table["malloc"])(ctypes.byref(address), 16)
    answer: dict[str, Any] = {
        "counted": (counted, library.error_name(counted), counted in library.codes("no_device"), count.value),
        "allocated": (allocated, library.error_name(allocated), allocated in library.codes("no_device"), address.value),
        "device_count": runtime.device_count(),
    }
    try:
        answer["malloc"] = runtime.malloc(16)
    except errors.NbxrtError as error:
        answer["malloc"] = type(error).__name__
    return answer


def naming(_name: str) -> dict[str, Any]:
    """What is mapped after a backend was named, and whether a process that is forked then can use the device."""
    named = nbxrt.gpu_backend()
    mapped = _mapped(nbxrt.gpu_runtime().table()["driver_libs"])
    child = os.fork()
    if child == 0:
        os._exit(_uses_device())
    return {"named": named, "mapped": mapped, "child": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}


def _mapped(names: tuple[str, ...]) -> list[str]:
    """Those of the libraries that this process has mapped."""
    maps = Path("/proc/self/maps").read_text()
    return [name for name in names if name in maps]


def _uses_device() -> int:
    try:
        runtime = nbxrt.open()
        address = runtime.malloc(4096)
        runtime.memset(address, 7, 4096)
        runtime.sync()
        runtime.free(address)
    except errors.NbxrtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def forked(name: str) -> dict[str, Any]:
    """What a process says that was forked after the driver was initialised."""
    runtime = nbxrt.open(name)
    runtime.free(runtime.malloc(4096))
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writable, repr(_said_of(lambda: runtime.malloc(4096))).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        said: dict[str, Any] = ast.literal_eval(pipe.read().decode() or "{}")
    os.waitpid(child, 0)
    return said


def _said_of(call: Callable[[], Any]) -> dict[str, Any]:
    try:
        call()
    except errors.DeviceError as error:
        return {"kind": error.kind, "code": error.code, "text": str(error)}
    return {"kind": "", "code": 0, "text": ""}


def chosen(name: str) -> dict[str, Any]:
    """The runtime library that is loaded, how it was found, and its version."""
    library = nbxrt.open(name).library()
    return {"path": library.path, "step": library.candidates[-1].step, "version": library.version}


def using(name: str) -> dict[str, Any]:
    """What of the device nodes is mapped before and after the use of a device, and which ids the driver lists then."""
    runtime = nbxrt.open(name)
    runtime.device_count()
    counted = _mapped_nodes()
    address = runtime.malloc(1 << 20)
    used, report = _mapped_nodes(), nbxrt.process_memory_report(0)
    status = Path("/proc/self/status").read_text()
    answer = {
        "counted": counted,
        "used": used,
        "ids": next((line for line in status.splitlines() if line.startswith("NSpid:")), f"pid {os.getpid()}"),
        "namespace": os.fspath(Path("/proc/self/ns/pid").readlink()),
        "listed": [each.pid for each in nbxrt.processes(0)],
        "memory": report.nbytes,
        "reason": report.reason,
    }
    runtime.free(address)
    return answer


def after_torch(name: str) -> dict[str, Any]:
    """The copies of the runtime that are mapped when torch came first."""
    import torch

    torch.zeros(1, device="cuda")
    return beside_torch(name)


def before_torch(name: str) -> dict[str, Any]:
    """The copies of the runtime that are mapped when nbxrt came first."""
    runtime = nbxrt.open(name)
    runtime.free(runtime.malloc(1 << 20))
    import torch

    torch.zeros(1, device="cuda")
    return beside_torch(name)


def beside_torch(name: str) -> dict[str, Any]:
    """The file that is used, and all of its name that are mapped."""
    runtime = nbxrt.open(name)
    runtime.free(runtime.malloc(1 << 20))
    path = runtime.library().path
    stem = Path(path).name.partition(".so")[0] + ".so"
    maps = Path("/proc/self/maps").read_text().splitlines()
    files = {line[line.index("/") :] for line in maps if "/" in line}
    return {"path": path, "mapped": sorted(file for file in files if Path(file).name.startswith(stem))}


def _mapped_nodes() -> list[str]:
    maps = Path("/proc/self/maps").read_text().splitlines()
    return sorted({f"/dev/{line.partition(' /dev/')[2]}" for line in maps if " /dev/" in line})


JOBS = {job.__name__: job for job in (hidden, naming, forked, chosen, using, after_torch, before_torch)}


def in_fresh_process(job: str, backend: str, *, packages: bool = True, **environment: str) -> dict[str, Any]:
    """The answer of a job in a process of its own; without packages, Python sees no installed ones.

    Raises: Wrong when the process failed.
    """
    command = [sys.executable, *([] if packages else ["-S"]), str(HERE), "--job", job, backend]
    environ = {**os.environ, **environment}
    if not packages:
        environ["PYTHONPATH"] = ""
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Wrong(f"the process for `{job}` ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    answer: dict[str, Any] = ast.literal_eval(done.stdout.splitlines()[-1])
    return answer


# Facts


@check("fact")
def without_a_visible_device_calls_say_so_and_write_nothing(bench: Bench) -> str:
    """Every answer counts as `no_device`, and our operations answer 0 devices and NoDeviceError."""
    said = []
    for variable in bench.runtime.description["visibility"][:1]:
        for value in HIDDEN:
            answer = in_fresh_process("hidden", bench.runtime.name, **{variable: value})
            for what in ("counted", "allocated"):
                code, name, meant, cell = answer[what]
                expect_that(meant, f"{variable}={value!r}: {what} {code} {name}, which does not count as `no_device`")
                expect(cell, UNTOUCHED, f"{variable}={value!r}: the cell that {what} {code} {name} must not write")
            expect((answer["device_count"], answer["malloc"]), (0, "NoDeviceError"), f"{variable}={value!r}: by nbxrt")
            said.append(f"{variable}={value!r}: {answer['counted'][0]} and {answer['allocated'][0]}")
    if not said:
        raise Skipped("the backend has no variable that hides devices")
    return "; ".join(said)


@check("fact", ("pointer_attributes", "malloc", "free"))
def the_structure_of_pointer_attributes_has_the_size_that_the_file_says(bench: Bench) -> str:
    """The library writes all of it, and nothing beyond."""
    symbol, nbytes = _attributes(bench)
    function, address = getattr(bench.runtime, symbol), bench.memory(4096)
    written = set()
    for fill in (0xAA, 0x55):
        room = (ctypes.c_ubyte * 4096)(*[fill] * 4096)
        expect(function(ctypes.addressof(room), address), 0, f"status of {symbol}")
        written.add(max((at for at in range(4096) if room[at] != fill), default=-1) + 1)
    expect(max(written), nbytes, f"bytes that {symbol} writes")
    return f"{symbol} writes {nbytes} bytes"


def _attributes(bench: Bench) -> tuple[str, int]:
    """The vendor's function for pointer attributes, and the size of its structure in this version."""
    _line, variants = bench.runtime.description["operations"]["pointer_attributes"]
    for _form, _since, _before, _platforms, call, _results in variants:
        for argument in call[2]:
            if argument[0].startswith("struct_"):
                layouts = bench.runtime.description["structs"][argument[1]]
                version = bench.runtime.version()
                return call[0][0], next(layout[2] for layout in layouts if applies(version, layout[0], layout[1]))
    raise Skipped("the backend's pointer attributes come without a structure")


def _skip_unless_forked(bench: Bench) -> None:
    if bench.runtime.kind == "cpu" or not hasattr(os, "fork"):
        raise Skipped("needs a GPU backend and a system that forks")


@check("fact")
def naming_a_backend_touches_no_driver_and_leaves_a_fork_safe(bench: Bench) -> str:
    """The operating system shows the device, and a process that is forked then opens the backend and uses it."""
    _skip_unless_forked(bench)
    answer = in_fresh_process("naming", bench.runtime.name, NBX_GPU_BACKEND="")
    if answer["named"] != bench.runtime.name:
        raise Skipped(f"the backend that is named here is `{answer['named']}`")
    expect(answer["mapped"], [], "driver libraries that are mapped after a backend was named")
    expect(answer["child"], 0, "exit status of the forked process that used the device")
    return f"{answer['named']}; none of its driver libraries is mapped"


@check("fact")
def a_fork_after_the_driver_was_initialised_is_named(bench: Bench) -> str:
    """The forked process gets an error that says so and what to do."""
    _skip_unless_forked(bench)
    answer = in_fresh_process("forked", bench.runtime.name)
    expect(answer["kind"], "not_initialized", "kind of the error in the forked process")
    expect_that(
        "forked" in answer["text"] and "spawn" in answer["text"], f"the error says nothing of it: {answer['text']}"
    )
    return f"code {answer['code']}"


@check("fact", ("monitor_processes", "malloc", "free"))
def a_device_node_is_mapped_by_a_process_that_uses_a_device(bench: Bench) -> str:
    """In a pid namespace one that has none mapped does not believe the driver's ids. Counting may map them already."""
    if bench.runtime.kind == "cpu" or not Path("/proc/self").is_dir():
        raise Skipped("needs a GPU backend and the /proc of Linux")
    answer = in_fresh_process("using", bench.runtime.name)
    said = (
        f"nodes mapped after a count: {answer['counted']}, after memory: {answer['used']}; this process is "
        f"{answer['ids']} in {answer['namespace']}, the driver lists {answer['listed']}, "
        f"process_memory {answer['memory']} {answer['reason']}"
    )
    nodes = bench.runtime.description["presence"]["linux"][1]
    expect_that(any(_is_one(each, nodes) for each in answer["used"]), said)
    return said


def _is_one(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


@check("fact")
def a_packages_copy_comes_before_the_systems(bench: Bench) -> str:
    """Where both are there."""
    with_packages = in_fresh_process("chosen", bench.runtime.name)
    try:
        without = in_fresh_process("chosen", bench.runtime.name, packages=False)
    except Wrong:
        raise Skipped(f"only one copy is here: {_said(with_packages)}") from None
    if with_packages["step"] != "package" and with_packages["path"] == without["path"]:
        raise Skipped(f"only one copy is here: {_said(with_packages)}")
    expect(with_packages["step"], "package", f"{_said(without)} is there too; step that found {with_packages['path']}")
    return f"{_said(with_packages)} before {_said(without)}"


def _said(copy: dict[str, Any]) -> str:
    return f"{copy['path']} ({copy['step']}, {'.'.join(map(str, copy['version']))})"


@check("fact", ("malloc", "free"))
def one_copy_of_the_runtime_is_mapped_beside_torch(bench: Bench) -> str:
    """Whichever comes first, where torch is installed for this vendor."""
    if bench.runtime.name != "cuda" or importlib.util.find_spec("torch") is None:
        raise Skipped("needs torch, built for this backend")
    found = {job: in_fresh_process(job, bench.runtime.name) for job in ("after_torch", "before_torch")}
    for job, answer in found.items():
        expect(answer["mapped"], [answer["path"]], f"{job}: what is mapped beside {answer['path']}")
    return found["after_torch"]["path"]


FACTS = tuple(value for value in vars().values() if isinstance(value, Check))


# The page


def main() -> int:
    """Check, print, and say by the exit status whether all is well."""
    asked = _parser().parse_args()
    if asked.wheels:
        _see_wheels(asked.wheels)
    if asked.job:
        print(repr(JOBS[asked.job](asked.backend)))
        return 0
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    start = time.perf_counter()
    try:
        runtime = nbxrt.open(asked.backend)
        if not runtime.device_count():
            print(f"{runtime.title} has no device here", file=sys.stderr)
            return 1
        report = conformance.run(runtime, device=asked.device, module_image=_image(runtime.name))
    except errors.NbxrtError as error:
        print(f"error[{error.reference}]: {error}", file=sys.stderr)
        return 2
    rows = [*report.rows, *_facts(runtime, report.device)]
    wrong = [row for row in rows if row.outcome is conformance.Outcome.WRONG]
    seconds = time.perf_counter() - start
    machine = _machine(runtime, report)
    print(_page(report, machine, _libraries(runtime), rows, seconds))
    if asked.json:
        facts = {"machine": machine, "seconds": seconds, "libraries": _libraries(runtime), "report": report.to_dict()}
        asked.json.write_text(json.dumps(facts | {"rows": list(map(_plain, rows))}, indent=2) + "\n", "utf-8")
    return 1 if wrong or not report.ok else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Check a backend on this machine's real device.")
    parser.add_argument("backend", nargs="?", help="its name or file; the best that is here if left out")
    parser.add_argument("--wheels", type=Path, help="a folder of installed packages to look into first")
    parser.add_argument("--device", type=int, help="which device")
    parser.add_argument("--json", type=Path, help="also write everything into this file")
    parser.add_argument("--job", choices=sorted(JOBS), help=argparse.SUPPRESS)
    return parser


def _see_wheels(folder: Path) -> None:
    """Have this process and those that it starts look into the folder."""
    sys.path.insert(0, str(folder.resolve()))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder.resolve()), os.environ.get("PYTHONPATH"))))


def _image(backend: str) -> conformance.ModuleImage | None:
    for path in sorted((HERE.parent / "images").glob(f"{backend}.*")):
        return conformance.ModuleImage(path.read_bytes(), KERNEL, variable=VARIABLE, value=VALUE)
    return None


def _facts(runtime: nbxrt.Runtime, device: int) -> list[conformance.Row]:
    rows = []
    for fact in FACTS:
        start = time.perf_counter()
        try:
            outcome, detail = judged(fact, Bench(runtime, device, runtime.device_count(), None))
        except subprocess.TimeoutExpired as error:
            outcome, detail = conformance.Outcome.WRONG, str(error)
        rows.append(conformance.Row(fact.group, fact.name, fact.needs, outcome, detail, time.perf_counter() - start))
    return rows


def _machine(runtime: nbxrt.Runtime, report: conformance.Report) -> dict[str, str]:
    """What the result holds for."""
    facts = {
        "backend": f"{report.title} (`{report.backend}`)",
        "device": f"{report.device}: {report.device_name}",
        "devices": str(runtime.device_count()),
        "nbxrt": nbxrt.__version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
    }
    if runtime.supports("mem_get_info"):
        facts["memory"] = f"{runtime.mem_get_info()[1] / 2**30:.1f} GiB"
    if runtime.supports("device_attribute"):
        words = ("compute_capability_major", "compute_capability_minor")
        facts["compute capability"] = ".".join(str(runtime.device_attribute(word, report.device)) for word in words)
    return facts


def _libraries(runtime: nbxrt.Runtime) -> list[tuple[str, str, str, str]]:
    """Role, version, file and the step that found it, of every library that is here."""
    rows = []
    for role in runtime.description["libraries"]:
        try:
            library = runtime.library(role)
        except errors.LibraryNotFoundError as error:
            rows.append((role, "", "not found", error.message.split("\n", 1)[0]))
            continue
        rows.append((role, ".".join(map(str, library.version)), library.path, library.candidates[-1].step))
    return rows


def _page(
    report: conformance.Report,
    machine: dict[str, str],
    libraries: list[tuple[str, str, str, str]],
    rows: list[conformance.Row],
    seconds: float,
) -> str:
    counts = {outcome.value: sum(row.outcome is outcome for row in rows) for outcome in conformance.Outcome}
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return "\n".join([
        f"## {report.device_name}, {report.title} {report.versions.get('runtime', '')}".rstrip(),
        "",
        *_table(("what", "found"), list(machine.items())),
        "",
        *_table(("library", "version", "file", "found by"), libraries),
        "",
        f"{said}; {seconds:.0f} s.",
        "",
        *_table(("group", "check", "outcome", "seen"), [_cells(row) for row in rows]),
    ])  # fmt: skip


def _cells(row: conformance.Row) -> tuple[str, str, str, str]:
    outcome = f"**{row.outcome}**" if row.outcome is conformance.Outcome.WRONG else str(row.outcome)
    return row.group, row.check, outcome, "; ".join(row.detail.splitlines())


def _table(head: tuple[str, ...], rows: Any) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def _plain(row: conformance.Row) -> dict[str, Any]:
    return {**vars(row), "outcome": row.outcome.value}


if __name__ == "__main__":
    sys.exit(main())
