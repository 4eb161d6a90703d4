"""Stand-ins: simulated libraries of vendors whose operations are several calls or messages, written and not generated.

Each is a folder of `stand_ins`, named after the backend or its ABI, with the sources of each role's library below. They
are written after the vendor's interface and include its header where there is one, not after the backend file.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbxrt import descriptions
from nbxrt.errors import CapabilityError
from nbxrt.simulation.building import CompilerError, cache_folder, compiler, link
from nbxrt.simulation.controlling import Controlled
from nbxrt.simulation.header import contract_header
from nbxrt.simulation.messages import described_header, failing, hearts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FLAGS = ("-shared", "-fPIC", "-O1", "-std=gnu11", "-pthread", "-w")
#: The order in which the libraries of roles are linked: what others call comes first.
_ROLES = ("driver", "runtime")
#: Whether messages of Objective-C, which are assembly, are for this machine.
_IS_FOR_THIS_MACHINE = (platform.system(), platform.machine()) == ("Linux", "x86_64")


class StandIn(Controlled):
    """A stand-in's libraries in a folder, how a process is told to use them, and what this process can tell of them.

    That for Objective-C counts and records the messages since a method for faults or the log was first used.
    """

    def __init__(self, description: Mapping[str, Any], paths: Mapping[str, Path], devices: int, memory: int) -> None:
        super().__init__(description, descriptions.contract(), paths, {"watch": (None, ())})
        if description["abi"] == "objc":
            self._controls = "driver"
            self.operations = frozenset(hearts(description))
            self.symbols = tuple(failing(description))
        self._settings = {"devices": devices, "memory": memory}

    def __repr__(self) -> str:
        return f"<nbxrt.simulation.StandIn for {self.name}: {self.paths['runtime']}>"

    def environment(self, **settings: object) -> dict[str, str]:
        """Variables that make a process use it.

        The settings are `devices`, `memory` and `latency_us`; that for Objective-C knows `fail`, `sleep_us` and `log`.
        """
        libraries = {f"NBXRT_{self.name}_{role}".upper(): str(path) for role, path in self.paths.items()}
        given = {**self._settings, **settings}
        return libraries | {f"NBXRT_SIM_{name}".upper(): str(value) for name, value in given.items()}

    def _settle(self) -> None:
        self._control("watch")


def _folder(description: Mapping[str, Any]) -> Any:
    """The folder of the stand-in for a backend; None where there is none."""
    home = resources.files("nbxrt.simulation").joinpath("stand_ins")
    found = (home.joinpath(name) for name in (description["name"], description["abi"]))
    return next((folder for folder in found if folder.is_dir()), None)


def file_name(description: Mapping[str, Any], role: str) -> str:
    """The name that the stand-in of a role has, whatever the system."""
    return f"libnbxrt_{description['name']}_{role}.so"


def has_stand_in(description: Mapping[str, Any]) -> bool:
    """Whether there is a stand-in for a backend."""
    return _folder(description) is not None


def stand_in(
    backend: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    devices: int = 2,
    memory: int = 8 << 30,
    cache: str | os.PathLike[str] | None = None,
) -> StandIn:
    """Build the stand-in for a backend, by name or file, in a folder.

    What was compiled is kept in `cache`, by default in the user's cache folder.

    Raises: CompilerError; CapabilityError for a backend without one.
    """
    description = descriptions.load(backend)
    source = _folder(description)
    if source is None:
        raise CapabilityError(f"there is no stand-in for {description['title']}", backend=description["name"])
    needs = source.joinpath("needs.txt").read_text("utf-8").strip()
    home = Path(folder).absolute()
    home.mkdir(parents=True, exist_ok=True)
    kept = cache_folder(cache, home)
    paths: dict[str, Path] = {}
    for role in _ROLES:
        if (folder_of_role := source.joinpath(role)).is_dir():
            texts = {file.name: file.read_text("utf-8") for file in folder_of_role.iterdir()}
            texts |= _shared(texts.pop("core.txt", "").split(), description)
            target = home / file_name(description, role)
            fresh = target.with_name(f".{target.name}.{os.getpid()}")
            fresh.write_bytes(_compiled(texts, target.name, [*paths.values()], kept, needs))
            fresh.replace(target)
            paths[role] = target
            link(home, target.name, _files(description, role))
    return StandIn(description, paths, devices, memory)


def _shared(core: Sequence[str], description: Mapping[str, Any]) -> dict[str, str]:
    """Files of the simulator's core that a stand-in names, with what they include."""
    if not core:
        return {}
    contract = descriptions.contract()
    home = resources.files("nbxrt.simulation").joinpath("core")
    texts = {name: home.joinpath(name).read_text("utf-8") for name in (*core, "core.h", "state.h")}
    return {**texts, "contract.h": contract_header(contract), "described.h": described_header(description, contract)}


def _files(description: Mapping[str, Any], role: str) -> list[str]:
    """The names under which a role's library is looked for on Linux."""
    return [files["linux"] for _major, files in description["libraries"][role]["names"] if "linux" in files]


def _compiled(texts: Mapping[str, str], name: str, linked: Sequence[Path], cache: Path, needs: str) -> bytes:
    """The library of one role, from the cache or made anew."""
    program = compiler()
    sources = [each for each in texts if not each.endswith(".h")]
    is_objective_c = not all(each.endswith(".c") for each in sources)
    if is_objective_c and (why := why_no_objective_c(program)):
        hint = needs if _IS_FOR_THIS_MACHINE else "build it on such a machine"
        raise CompilerError(f"the stand-in cannot be compiled here: {why}", hint=hint)
    flags = [*_FLAGS, f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN", *(["-lobjc"] if is_objective_c else [])]
    key = "\0".join((*program, *flags, *(each.name for each in linked), *texts, *texts.values()))
    kept = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.stand-in"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=cache) as work:
            for source, text in texts.items():
                (Path(work) / source).write_text(text, "utf-8")
            command = [*program, *sources, *map(str, linked), "-o", "made.so", *flags]
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603
            if done.returncode or not (Path(work) / "made.so").exists():
                error = next((line for line in done.stderr.splitlines() if "error" in line), "no reason given")
                raise CompilerError(
                    f"`{program[0]}` does not compile the stand-in: {error}", hint=needs, output=done.stderr
                )
            (Path(work) / "made.so").replace(kept)
    return kept.read_bytes()


@functools.cache
def why_no_objective_c(program: tuple[str, ...]) -> str:
    """Why a compiler does not make the stand-in for Objective-C, whose messages are assembly; empty when it does."""
    if not _IS_FOR_THIS_MACHINE:
        return "its messages are written for Linux on x86-64"
    command = [*program, "-print-prog-name=cc1obj"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # the compiler
    return "" if Path(found.stdout.strip()).is_absolute() else f"`{program[0]}` has no Objective-C"
