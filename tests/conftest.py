"""What every test shares: tiers, tools that a test may need, and how a run says what it left out.

NBXRT_TEST_TIER is `fast` (default), `all` or `nightly`. A test that lacks a tool is not run in the fast tier and fails
in the others; the closing lines list each reason.
"""

from __future__ import annotations

import ctypes.util
import gc
import importlib.util
import itertools
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

import nbxrt
import objective_c

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation

ROOT = Path(__file__).resolve().parents[1]
TIERS = ("fast", "all", "nightly")
TIER = os.environ.get("NBXRT_TEST_TIER", "fast")

# The same examples on every run, so that a change is judged and not its luck; the nightly run looks for new ones. How
# long examples take is nobody's concern: a machine that is busy is no fault.
for tier, count in {"fast": 50, "all": 300, "nightly": 5000}.items():
    hypothesis.settings.register_profile(
        tier,
        max_examples=count,
        deadline=None,
        derandomize=tier != "nightly",
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile(TIER)

# Where scripts/setup-opencl.sh has installed Intel's runtime.
INTEL_OPENCL = ROOT / os.environ.get("VENV", ".venv") / "intel-opencl" / "installed"

# Where scripts/setup-wheels.sh unpacks the vendors' wheels.
WHEELS = ROOT / os.environ.get("VENV", ".venv") / "wheels"


def _program(*names: str) -> Callable[[], str]:
    """Whether one of the programs is on the PATH."""
    return lambda: "" if any(map(shutil.which, names)) else f"no `{names[0]}` on the PATH"


def _module(name: str) -> Callable[[], str]:
    return lambda: "" if importlib.util.find_spec(name) else f"`{name}` is not installed"


def _pathfinder() -> str:
    there = importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.pathfinder")
    return "" if there else "`cuda-pathfinder` is not installed"


def _wheels() -> str:
    there = [WHEELS / name / "installed" for name in ("cuda-11", "cuda-12", "cuda-13")]
    return "" if all(map(Path.exists, there)) else "scripts/setup-wheels.sh has not run"


def _apple_wheels() -> str:
    there = [WHEELS / name / "installed" for name in ("pyobjc-metal", "metal-cpp")]
    return "" if all(map(Path.exists, there)) else "scripts/setup-wheels.sh has not run"


#: Where scripts/setup-triton.sh makes an environment for each version of Triton.
TRITONS = ROOT / os.environ.get("VENV", ".venv") / "triton"


def _triton(version: str) -> Callable[[], str]:
    return lambda: (
        "" if (TRITONS / version / "installed").exists() else f"`scripts/setup-triton.sh {version}` has not run"
    )


def _opencl() -> str:
    """A loader, PoCL, and Intel's runtime in its environment."""
    if not ctypes.util.find_library("OpenCL") or not Path("/etc/OpenCL/vendors/pocl.icd").exists():
        return "scripts/setup-system.sh has not installed a loader and PoCL"
    return "" if INTEL_OPENCL.exists() else "scripts/setup-opencl.sh has not run"


# Where scripts/setup-engines.sh installs mpi4py and Ray, each in an environment of its own.
ENGINES = WHEELS.parent / "engines"


def _engine(name: str, *programs: str) -> Callable[[], str]:
    def missing() -> str:
        if not (ENGINES / name / "bin" / "python").exists():
            return "scripts/setup-engines.sh has not run"
        return next((f"no `{program}` on the PATH" for program in programs if not shutil.which(program)), "")

    return missing


def _level_zero() -> str:
    there = Path("/usr/include/level_zero/ze_api.h").exists() and ctypes.util.find_library("ze_loader")
    return "" if there else "scripts/setup-system.sh has not installed `libze-dev`"


def _headers() -> str:
    names = (
        "triton",
        "nvml",
        "nccl",
        "cccl-12",
        "cccl-13",
        "torch-npu",
        "amd-smi",
        "rccl",
        "cuda-12-windows",
        "debian",
    )
    there = [WHEELS / name / "installed" for name in names]
    return _wheels() or ("" if all(map(Path.exists, there)) else "scripts/setup-wheels.sh could not fetch all of them")


#: What a test may need, and what says why it is not here (an empty text: it is).
TOOLS: dict[str, Callable[[], str]] = {
    "apple-wheels": _apple_wheels,
    "cc": _program(os.environ.get("CC", "cc"), "gcc", "clang"),
    "cxx": _program(os.environ.get("CXX", "c++"), "g++", "clang++"),
    "check-jsonschema": _module("check_jsonschema"),
    "cuda-pathfinder": _pathfinder,
    "gobjc": objective_c.missing,
    "mingw": _program("x86_64-w64-mingw32-ld"),
    "mpi": _engine("mpi", "mpirun"),
    "mypy": _module("mypy"),
    "level-zero": _level_zero,
    "headers": _headers,
    "node": _program("node"),
    "npm": _program("npm"),
    "numpy": _module("numpy"),
    "pefile": _module("pefile"),
    "pyelftools": _module("elftools"),
    "opencl": _opencl,
    "ray": _engine("ray"),
    "wheels": _wheels,
    **{f"triton-{version}": _triton(version) for version in ("3.5", "3.6", "3.7", "3.8", "3.9")},
}


def pytest_configure() -> None:
    if TIER not in TIERS:
        message = f"NBXRT_TEST_TIER={TIER!r} is none of {', '.join(TIERS)}"
        raise pytest.UsageError(message)


def pytest_report_header() -> list[str]:
    return [f"tier: {TIER}", f"nbxrt: {nbxrt.__version__} from {Path(nbxrt.__file__).parent}"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("tier"):
        if TIERS.index(TIER) < TIERS.index(marker.args[0]):
            pytest.skip(f"belongs to the tier `{marker.args[0]}`")
    if item.get_closest_marker("checkout") and not is_checkout():
        pytest.skip("about the files of the repository, and another copy of nbxrt is tested")
    for missing in _missing(item):
        if TIER == "fast":
            pytest.skip(missing)
        pytest.fail(missing, pytrace=False)


def _missing(item: pytest.Item) -> Iterator[str]:
    for marker in item.iter_markers("needs"):
        for tool in marker.args:
            why = TOOLS[tool]()
            if why:
                yield f"needs {tool}: {why}"


def is_checkout() -> bool:
    """Whether the nbxrt under test is the one beside these tests."""
    return Path(nbxrt.__file__).parent == ROOT / "nbxrt"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The tests that were not run, by reason."""
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    if reasons:
        terminalreporter.section("not run")
    for reason, tests in sorted(reasons.items()):
        files = sorted({test.partition("::")[0] for test in tests})
        terminalreporter.line(f"{len(tests):4} {reason} ({', '.join(files)})")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository, or of what was unpacked of it."""
    return ROOT


@pytest.fixture(scope="session")
def wheels() -> Path:
    """The folder that holds the vendors' wheels, each in a folder of its own: `cuda-11`, `cuda-12`, `cuda-13`."""
    return WHEELS


@pytest.fixture(scope="session")
def tritons() -> Path:
    """The folder that holds an environment for each version of Triton, such as `3.9`."""
    return TRITONS


@pytest.fixture(scope="session")
def engines() -> Path:
    """The folder of the environments `mpi` and `ray`."""
    return ENGINES


_folders = itertools.count()


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder whose path no test before had, whose folder may be gone: the loader knows a library by its path."""
    folder = tmp_path / str(next(_folders))
    folder.mkdir()
    return folder


@pytest.fixture
def no_garbage() -> None:
    """What tests before have left in circles is gone: it would call a library that this test shares with them.

    Error reports are such circles, and hold whatever their test had. What lives on is not looked through again, which
    would count as time that a test takes.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., Simulation]:
    """Builds a simulated vendor library in a folder of its own, so that its state is this test's alone."""
    import simulations

    count = itertools.count()

    def simulated(backend: Any, version: str | None = None, **options: Any) -> Simulation:
        folder = options.pop("folder", None) or tmp_path / f"simulation-{next(count)}"
        return simulations.built(backend, folder, version=version, **options)

    return simulated
