"""Write what `nbxrt doctor` says on six machines into docs/doctor.md, or with `--check` see that it stands there.

    python scripts/doctor_transcripts.py
    python scripts/doctor_transcripts.py --check

Each machine is a folder that looks like one, with the vendor's libraries made by nbxrt.simulation (which needs a C
compiler, on Linux). What belongs to the machine that writes the page is replaced by what a reader's could be.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nbxrt.cli.console import Writer  # noqa: E402
from nbxrt.cli.doctor import text  # noqa: E402
from nbxrt.simulation import build  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = ROOT / "docs" / "doctor.md"
NVIDIA, AMD = 0x10DE, 0x1002
TOOLKIT, DRIVER, ROCM = "usr/local/cuda/lib64", "usr/lib/x86_64-linux-gnu", "opt/rocm/lib"
WIDTH = "100"


@attrs.frozen
class Image:
    """A machine: its title on the page, what is put on it, and the variables that are set there."""

    title: str
    add: Callable[[Path], None]
    environment: dict[str, str] = attrs.field(factory=dict)


def card(root: Path, vendor: int, *nodes: str) -> None:
    """A display card on the bus, and device nodes."""
    bus = root / "sys/bus/pci/devices"
    folder = bus / f"0000:{0x10 + len(list(bus.iterdir())):02x}:00.0"
    folder.mkdir()
    (folder / "vendor").write_text(f"{vendor:#06x}\n")
    (folder / "class").write_text("0x030000\n")
    for node in nodes:
        place = root / node.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def cuda(root: Path, version: str) -> None:
    """NVIDIA's toolkit and the libraries of its driver."""
    simulation = build("cuda", root / TOOLKIT, version=version, cache=_cache())
    (root / DRIVER).mkdir(parents=True)
    for role in ("driver", "management"):
        file = simulation.paths[role]
        os.link(file.resolve(), root / DRIVER / file.name)  # one library in memory, as its state has to be
        file.unlink()


def hip(root: Path) -> None:
    """ROCm."""
    build("hip", root / ROCM, version={"runtime": "7.1", "management": "26.1"}, cache=_cache())


def _cache() -> Path:
    return Path(tempfile.gettempdir()) / f"nbxrt-doctor-simulations-{os.getuid()}"


def _nothing(_root: Path) -> None:
    """A machine without any GPU."""


def _one_card(root: Path) -> None:
    card(root, NVIDIA, "/dev/nvidia0")
    cuda(root, "12.9")


def _old_driver(root: Path) -> None:
    card(root, NVIDIA, "/dev/nvidia0")
    cuda(root, "13.0")


def _container(root: Path) -> None:
    card(root, AMD)
    hip(root)
    (root / ".dockerenv").touch()


def _two_vendors(root: Path) -> None:
    card(root, NVIDIA, "/dev/nvidia0")
    card(root, AMD, "/dev/kfd")
    cuda(root, "12.9")
    hip(root)


IMAGES = (
    Image("No GPU", _nothing),
    Image("One NVIDIA card", _one_card, {"NBXRT_SIM_DEVICES": "1"}),
    Image(
        "A driver that is older than the toolkit",
        _old_driver,
        {"NBXRT_SIM_FAIL": "cudaGetDeviceCount:1+:no_driver", "NBXRT_SIM_DRIVER_VERSION": "12040"},
    ),
    Image("A card that a variable hides", _one_card, {"CUDA_VISIBLE_DEVICES": "", "NBXRT_SIM_OBEY_VISIBILITY": "1"}),
    Image("A container that was given no device", _container, {"NBXRT_SIM_DEVICES": "0"}),
    Image(
        "Two vendors, a busy card, and a driver that was updated without a reboot",
        _two_vendors,
        {"NBXRT_SIM_FAIL": "cudaMemGetInfo@0:1+:device_unavailable,nvmlInit_v2:1+:driver_mismatch"},
    ),
)


def transcript(image: Image) -> str:
    """What the doctor says on the machine, as it stands on the page."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        image.add(root)
        found = _with_a_readers_machine(_examined(root, image.environment), root)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        text.write(Writer(), found)
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines())


def _examined(root: Path, environment: dict[str, str]) -> dict[str, Any]:
    """The doctor's report, from a process of its own."""
    variables = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    settings = {"NBXRT_SYSROOT": str(root), "NBXRT_SIM_MEMORY": "80G", **environment}
    done = subprocess.run(
        [sys.executable, "-m", "nbxrt", "doctor", "--json"],
        env=variables | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _with_a_readers_machine(found: dict[str, Any], root: Path) -> dict[str, Any]:
    """The report less what is only true here: this folder, this system, this Python, its memory."""
    found = json.loads(json.dumps(found).replace(str(root), ""))
    found["machine"] |= {
        "kernel": "Linux 6.8.0",
        "processor": "x86_64",
        "distribution": "Ubuntu 24.04 LTS",
        "libc": "glibc 2.39",
        "root": "",
    }
    found["python"] |= {
        "implementation": "CPython",
        "version": "3.12.3",
        "executable": "/home/user/venv/bin/python",
        "environment": "virtual environment /home/user/venv",
        "nbxrt_path": "/home/user/venv/lib/python3.12/site-packages/nbxrt",
    }
    ours = ("NBXRT_SIM_", "NBXRT_SYSROOT")
    variables = found["environment"]["set"]
    found["environment"]["set"] = {name: variables[name] for name in variables if not name.startswith(ours)}
    for backend in found["backends"]:
        for device in backend["devices"]:
            if backend["kind"] == "cpu":
                device |= {"free": 58 << 30, "total": 64 << 30}
    return found


def page(current: str) -> str:
    """The page with every transcript anew; its prose stays."""
    for image in IMAGES:
        section = re.compile(rf"(?ms)^(## {re.escape(image.title)}\n.*?```text\n).*?(^```$)")
        found = section.search(current)
        if not found:
            raise SystemExit(f"docs/doctor.md has no section `{image.title}` with a transcript")
        said = f"{found[1]}{transcript(image)}\n{found[2]}"
        current = current[: found.start()] + said + current[found.end() :]
    return current


def main(arguments: list[str]) -> int:
    """Write the page; with `--check`, only say whether it is current (1 when it is not)."""
    os.environ |= {"COLUMNS": WIDTH, "NO_COLOR": "1"}
    current = PAGE.read_text("utf-8")
    wanted = page(current)
    if "--check" in arguments:
        return int(current != wanted)
    PAGE.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
