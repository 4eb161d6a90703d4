"""Running the command line as people do, in a process of its own, on a machine that the test describes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import nbxrt
from libraries import make_library
from machines import add_node, empty_bus
from toys import PLAIN, write

#: The folder, or the zip, that the nbxrt under test is imported from.
HOME = str(Path(nbxrt.__file__).parents[1])

#: All that a run inherits of this process's variables.
INHERITED = ("PATH", "HOME", "SYSTEMROOT", "TEMP", "TMP", "LD_LIBRARY_PATH")

#: What a toy's library tells of its devices.
FACTS = r"""
int toyVersion(int *version) { *version = 2003; return 0; }
int toyDeviceName(char *out, int n, int device) { snprintf(out, n, "Toy %d", device); return 0; }
int toyUuid(unsigned char *out, int device) { for (int i = 0; i < 16; i++) out[i] = 16 * device + i; return 0; }
int toyPci(char *out, int n, int device) { snprintf(out, n, "0000:%02x:00.0", device + 1); return 0; }
int toyMemory(size_t *free_, size_t *total) { *free_ = 3ul << 30; *total = 4ul << 30; return 0; }
int toyBusy(size_t *free_, size_t *total) { return 46; }
int toyNone(int *count) { *count = 0; return 0; }
int toyNoDevice(size_t *free_, size_t *total) { return 100; }
int toyAbort(int *count) { abort(); }
int toyHang(int *count) { for (;;) pause(); }
int toyNoisy(int *count) { printf("{\"stage\": \"noise\"}\n"); fflush(stdout); *count = 1; return 0; }
int toyWrong(void *d, const void *s, size_t n, int kind) {
    memmove(d, s, n); if (kind == 12) ((char *)d)[n / 2] ^= 1; return 0;
}
"""

FACT_OPERATIONS = {
    "device_name": "toyDeviceName",
    "device_uuid": "toyUuid",
    "pci_bus_id": "toyPci",
    "mem_get_info": "toyMemory",
    "malloc_host": "toyMalloc",
    "free_host": "toyFree",
}


@dataclass
class Ended:
    """How a run ended: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass
class CommandLine:
    """The command line on one machine; `environment` is what the machine's variables add to each run."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str | os.PathLike[str], **environment: str) -> Ended:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        done = subprocess.run(
            [sys.executable, "-m", "nbxrt", *arguments],
            cwd=self.folder,
            env={**inherited, "PYTHONPATH": HOME, "PYTHONUTF8": "1", **self.environment, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    """The command line on this machine, with none of its variables that matter."""
    return CommandLine(tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> CommandLine:
    """The command line on a machine whose every folder is empty."""
    return bare_machine(tmp_path)


def bare_machine(folder: Path) -> CommandLine:
    """The command line on a machine whose every folder, below `root`, is empty."""
    empty_bus(folder / "root")
    return CommandLine(folder, {"NBXRT_SYSROOT": str(folder / "root")})


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """How `nbxrt demo` ended on a bare machine."""
    return bare_machine(tmp_path_factory.mktemp("demo"))("demo")


@dataclass
class Toy:
    """A machine with a toy: a card, a library and a backend file, each of which a test can leave out or change."""

    run: CommandLine
    root: Path

    def add(self, *, card: bool = True, library: bool = True, **changes: Any) -> CommandLine:
        """Put it there. `changes` are those of the toy's backend file."""
        if card:
            add_node(self.root, "/dev/toy0")
        changes["operations"] = {**FACT_OPERATIONS, **changes.get("operations", {})}
        changes["role"] = {"hint": "install Toy", "version": {"call": "toyVersion", "digits": [1000, 1]}, "search": [
            {"environment": ["TOY_HOME"], "folder": "."}]}  # fmt: skip
        changes.setdefault("presence", {"visibility": ["TOY_VISIBLE"], "linux": {"nodes": ["/dev/toy[0-9]"]}})
        changes.setdefault("status", {"kinds": {"out_of_memory": 2, "no_device": 100, "device_unavailable": 46}})
        changes.setdefault("priority", 5)
        home = self.root.parent / "toy"
        home.mkdir(exist_ok=True)
        if library:
            make_library(home / "libtoy.so.1", PLAIN + FACTS, flags=("-lpthread",))
        self.run.environment["NBXRT_BACKEND_PATH"] = str(write(self.root.parent, **changes))
        self.run.environment["TOY_HOME"] = str(home)
        return self.run


@pytest.fixture
def toy(bare: CommandLine, tmp_path: Path) -> Toy:
    """A bare machine that a test puts a toy on."""
    return Toy(bare, tmp_path / "root")
