"""Packages that know a vendor's layouts: what they answer, when they are asked, and that nbxrt agrees with them."""

from __future__ import annotations

import platform
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import nbxrt
from libraries import make_library

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries and the layouts of Linux"),
    pytest.mark.needs("cc"),
]

#: Where each way of installing puts a library: (what to ask for, file, variable, its value).
LAYOUTS = {
    "wheel of CUDA 12": ("cudart", "site/nvidia/cuda_runtime/lib/libcudart.so.12", "", ""),
    "wheel of CUDA 13": ("cudart", "site/nvidia/cu13/lib/libcudart.so.13", "", ""),
    "wheel of NCCL": ("nccl", "site/nvidia/nccl/lib/libnccl.so.2", "", ""),
    "conda": ("cudart", "conda/lib/libcudart.so.12", "CONDA_PREFIX", "conda"),
    "toolkit with lib64": ("cudart", "toolkit/lib64/libcudart.so.12", "CUDA_PATH", "toolkit"),
    "toolkit with lib": ("cudart", "toolkit/lib/libcudart.so.13", "CUDA_HOME", "toolkit"),
    "loader's path": ("cudart", "modules/libcudart.so.12", "LD_LIBRARY_PATH", "modules"),
    "folder of NCCL": ("nccl", "nccl/build/lib/libnccl.so.2", "NCCL_HOME", "nccl"),
}

OURS = """
    import sys
    sys.path[:0] = [sys.argv[1]]
    from nbxrt import descriptions
    from nbxrt.binding.binder import Binder
    from nbxrt.binding.machine import Machine
    binder = Binder(descriptions.built_in("cuda"), descriptions.contract(), Machine())
    role = {"cudart": "runtime", "nccl": "collectives"}[sys.argv[2]]
    choice = binder.library(role).choice
    assert choice.step != "finder"
    print(choice.path)
"""

THEIRS = """
    import site, sys
    site.getsitepackages = lambda: [sys.argv[1]]  # it looks into these folders, and nbxrt into sys.path
    site.ENABLE_USER_SITE = False
    from cuda.pathfinder import load_nvidia_dynamic_lib
    print(load_nvidia_dynamic_lib(sys.argv[2]).abs_path)
"""

#: Ends the process when anything is started.
NOTHING_STARTED = """
    import os, sys
    def refuse(event, arguments):
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"):
            os._exit(77)
    sys.addaudithook(refuse)
"""


def run(program: str, *arguments: object, **environ: object) -> str:
    """What a program prints in a process whose loader knows no cache, so that no toolkit of this one is seen."""
    loader = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}.get(platform.machine())
    if loader is None or not Path(loader).exists():
        pytest.skip("no loader of glibc")
    given = {name: str(value) for name, value in environ.items()}
    done = subprocess.run(
        [loader, "--inhibit-cache", sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        env={"PATH": "/usr/bin", "PYTHONPATH": str(Path(nbxrt.__file__).parents[1]), **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.needs("cuda-pathfinder")
@pytest.mark.parametrize(("asked", "inside", "variable", "folder"), LAYOUTS.values(), ids=LAYOUTS)
def test_nvidias_finder_and_nbxrt_find_the_same_file(
    tmp_path: Path, asked: str, inside: str, variable: str, folder: str
) -> None:
    library = make_library(tmp_path / inside)
    root = tmp_path / "root"
    root.mkdir()
    environ = {variable: tmp_path / folder} if variable else {}

    ours = run(OURS, tmp_path / "site", asked, NBXRT_SYSROOT=root, **environ)
    theirs = run(THEIRS, tmp_path / "site", asked, **environ)

    assert ours == theirs == str(library)


@pytest.mark.needs("cuda-pathfinder")
def test_asking_nvidias_finder_starts_nothing(tmp_path: Path) -> None:
    program = """
        from nbxrt.binding import finders
        from nbxrt.binding.machine import Machine
        for name in ("cudart", "nccl"):
            print(finders.ask(Machine(), "cuda.pathfinder", "load_nvidia_dynamic_lib", name, "abs_path")[1][:8])
    """

    assert run(textwrap.dedent(NOTHING_STARTED) + textwrap.dedent(program)) == "it says:\nit says:"


class TestAsking:
    """A package that answers with a path, a list or an object, or that fails."""

    PROGRAM = """
        import sys
        sys.path[:0] = [sys.argv[1]]
        from nbxrt.binding import search
        from nbxrt.binding.machine import Machine
        step = ("finder", ("toy_finder", sys.argv[2], "libtoy", sys.argv[3]), {})
        steps = (("root", (sys.argv[1],), {"linux": (".",)}), step)
        role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": steps, "mode": "local"}
        last = search.find("toy", "runtime", role, Machine())[2][-1]
        print(last.step, last.verdict, last.path, last.reason, sep="|")
    """

    def ask(self, tmp_path: Path, body: str, answer: str = "") -> list[str]:
        (tmp_path / "site/toy_finder").mkdir(parents=True, exist_ok=True)
        (tmp_path / "site/toy_finder/__init__.py").write_text(textwrap.dedent(body))
        return run(self.PROGRAM, tmp_path / "site", "find", answer).split("|")

    @pytest.mark.parametrize(
        ("body", "answer"),
        [
            ("def find(name): return '{0}'", ""),
            ("import pathlib\ndef find(name): return [pathlib.Path('{0}')]", ""),
            ("class Found: abs_path = '{0}'\ndef find(name): return Found", "abs_path"),
        ],
        ids=["path", "list", "object"],
    )
    def test_an_answer_is_taken(self, tmp_path: Path, body: str, answer: str) -> None:
        library = make_library(tmp_path / "odd/libtoy.so.1")

        assert self.ask(tmp_path, body.format(library), answer) == ["finder", "chosen", str(library), "loaded"]

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            ("def find(name): return []", "it answers with no path"),
            ("def find(name): raise LookupError('nowhere\\nat all')", "it says: nowhere"),
            ("raise ValueError", "it says: ValueError"),
            ("", "it says: module 'toy_finder' has no attribute 'find'"),
        ],
    )
    def test_no_answer_is_a_reason(self, tmp_path: Path, body: str, says: str) -> None:
        assert self.ask(tmp_path, body) == ["finder", "missing", "toy_finder.find", says]

    def test_it_is_not_asked_where_our_own_search_has_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "site/libtoy.so.1").touch()

        assert self.ask(tmp_path, "raise SystemExit('asked')")[1] == "skipped"

    def test_a_file_of_the_users_with_that_name_is_not_run(self, tmp_path: Path) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "site/toy_finder.py").write_text("raise SystemExit('run')")
        said = run(self.PROGRAM, tmp_path / "site", "find", "").split("|")

        assert said[1:] == ["missing", "toy_finder.find", "toy_finder is not installed"]


class TestNothingIsStarted:
    """A09, A22: no program is started to find a library, whatever `find_library` would do."""

    def test_a_whole_search_starts_nothing_and_ends_soon(self) -> None:
        program = """
            import ctypes.util
            def fail(name): raise FileNotFoundError(name)
            ctypes.util.find_library = fail
            import nbxrt
            nbxrt.detect()
            from nbxrt.cli.libraries import report
            from nbxrt.binding.machine import Machine
            for name in ("cuda", "hip", "host"): report(name, Machine())
            print("done")
        """
        start = time.monotonic()

        said = run(textwrap.dedent(NOTHING_STARTED) + textwrap.dedent(program), PATH="")

        assert said == "done"
        assert time.monotonic() - start < 60, "this is about waiting, not about speed"
