"""From a backend's description to a shared library that stands in for the vendor's, by the system's C compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbxrt import descriptions, errors
from nbxrt.simulation import evidence
from nbxrt.simulation.header import contract_header
from nbxrt.simulation.plan import make_plan
from nbxrt.simulation.simulated import Simulation
from nbxrt.simulation.writing import wrapper_source

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

#: Programs that compile C, tried in this order when CC does not name one.
COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread")


class CompilerError(errors.NbxrtError):
    """There is no C compiler, or it refuses the simulation; `output` is what it said."""

    reference = "compiler"
    output = ""


def build(
    description: Mapping[str, Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    version: str | Mapping[str, str] | None = None,
    without: Collection[str] = (),
    devices: int = 2,
    memory: int = 16 << 30,
    contract: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Simulation:
    """Build the simulated library of a backend in a folder, under the file names that the library search looks for.

    `description` is a backend's name, its file, or its compiled form. `version` is the runtime's, or versions by role;
    the best that the file lists when left out. `without` are symbols that the library shall not export. `devices` and
    `memory` (bytes of each) can be changed while it runs. A process loads a folder's library once, so every build wants
    a folder of its own. What was compiled is kept in `cache`, by default in the user's cache folder, and taken from
    there when nothing has changed. Signatures that the vendor's headers have, where they were kept, must be the file's.

    Raises: CompilerError; SignatureError for a file that differs from the headers; CapabilityError for a backend
    without a C library of its own; ArgumentValueError; RecordError.
    """
    given = description if isinstance(description, (str, os.PathLike)) else None
    loaded = descriptions.load(description) if isinstance(description, (str, os.PathLike)) else description
    contract = contract or descriptions.contract()
    system = _system()
    plan = make_plan(loaded, contract, system, version, without)
    record = None if given is None else evidence.recorded(given, plan.description["name"])
    from_headers: frozenset[str] = frozenset()
    if record is not None:
        from_headers = evidence.compared(plan, lambda versions: make_plan(loaded, contract, system, versions), record)
    home = Path(folder).absolute()
    home.mkdir(parents=True, exist_ok=True)
    name = plan.files["runtime"][0]
    compiled = _compiled(wrapper_source(plan), contract_header(contract), name, cache_folder(cache, home))
    _place(compiled, home / name)
    paths = {role: link(home, name, files) for role, files in plan.files.items()}
    return Simulation(plan, paths, devices, memory, from_headers)


def _system() -> str:
    if sys.platform == "win32":
        raise CompilerError("simulations are built on Linux and macOS", hint="use WSL")
    return "macos" if sys.platform == "darwin" else "linux"


def _place(compiled: Path, target: Path) -> None:
    """A copy of its own for every folder: the loader tells libraries apart by their files, and so do their states."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(compiled, fresh)
    fresh.replace(target)


def link(home: Path, library: str, files: Sequence[str]) -> Path:
    """The library under a role's file names; one file serves all roles, which share its state."""
    for file in files:
        if file != library:
            (home / file).unlink(missing_ok=True)
            (home / file).symlink_to(library)
    return home / (files[0] if files else library)


# Compiling


def compiler() -> tuple[str, ...]:
    """The C compiler and its arguments: what CC says, else the first of COMPILERS on the PATH.

    Raises: CompilerError.
    """
    wanted = os.environ.get("CC", "").split()
    names = tuple(wanted[:1]) or COMPILERS
    for name in names:
        if found := shutil.which(name):
            return (found, *wanted[1:])
    said = f"CC names `{names[0]}`, which is not there" if wanted else f"none of {', '.join(COMPILERS)} is on the PATH"
    raise CompilerError(
        f"a simulation needs a C compiler: {said}",
        hint="install one (`apt install gcc`, `dnf install gcc`, `xcode-select --install`), or set CC",
    )


def cache_folder(given: str | os.PathLike[str] | None, home: Path) -> Path:
    """The cache that is given, else the user's, else the build's own folder where that cannot be written to."""
    base = Path(given or os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = base / "nbxrt" / "simulation" if given is None else base
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return home
    return folder if os.access(folder, os.W_OK) else home


def _compiled(wrapper: str, header: str, name: str, cache: Path) -> Path:
    """The library, from the cache or made anew; its name is the key of all that it is made of."""
    core = {file.name: file.read_text("utf-8") for file in _core_files()}
    program = compiler()
    key = _key(*program, header, *core.values())
    library_key = _key(key, name, wrapper)
    library = cache / f"{library_key}.library"
    if not library.exists():
        with tempfile.TemporaryDirectory() as work:
            place = Path(work)
            for file, text in {**core, "contract.h": header, "wrapper.c": wrapper}.items():
                (place / file).write_text(text, "utf-8")
            if not (cache / f"{key}.core").exists():
                _make_core(program, place, [file for file in core if file.endswith(".c")], cache / f"{key}.core")
            shutil.copyfile(cache / f"{key}.core", place / "core.o")
            _make_library(program, place, name, library)
    return library


def _core_files() -> list[Any]:
    files = resources.files("nbxrt.simulation").joinpath("core").iterdir()
    return sorted((file for file in files if file.name.endswith((".c", ".h"))), key=lambda file: file.name)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((*_FLAGS, *_link_flags(""), *parts)).encode()).hexdigest()[:32]


def _make_core(program: Sequence[str], work: Path, sources: Sequence[str], target: Path) -> None:
    """The core as one object: it is the same for every vendor."""
    _run([*program, *_FLAGS, "-r", "-nostdlib", *sources, "-o", "made.o"], work)
    _keep(work / "made.o", target)


def _make_library(program: Sequence[str], work: Path, name: str, target: Path) -> None:
    _run([*program, *_FLAGS, "-shared", "wrapper.c", "core.o", *_link_flags(name), "-lm", "-o", "made.so"], work)
    _keep(work / "made.so", target)


def _link_flags(name: str) -> tuple[str, ...]:
    if sys.platform == "darwin":
        return ("-Wl,-install_name," + name,)
    return ("-Wl,-soname," + name, "-Wl,-Bsymbolic", "-Wl,-z,defs")


def _keep(made: Path, target: Path) -> None:
    """Put a file into the cache at once, whoever else makes the same."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as fresh:
        fresh.write(made.read_bytes())
    Path(fresh.name).replace(target)


def _run(command: Sequence[str], work: Path) -> None:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603  # the compiler
    if done.returncode or not (work / command[-1]).exists():
        raise CompilerError(
            f"`{command[0]}` does not compile the simulation\n{done.stderr.strip()}",
            hint="set CC to a C11 compiler (GCC or Clang)",
            output=done.stderr,
        )
