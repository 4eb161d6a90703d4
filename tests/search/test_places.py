"""Places that cannot be read, variables that are not ours, and the layouts of Windows and macOS seen from Linux."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import nbxrt
import toys
from libraries import make_library
from nbxrt import descriptions
from nbxrt.binding import candidates, search, steps
from nbxrt.binding.machine import Machine

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries and the layouts of Linux"),
    pytest.mark.needs("cc"),
]


class Spy(Mapping[str, str]):
    """An environment that remembers which of its variables were read."""

    def __init__(self, **values: str) -> None:
        self.values_of = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self.values_of[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the whole environment was walked")

    def __len__(self) -> int:
        return len(self.values_of)


class TestEnvironment:
    """A14: only the variables that the backend file names are read."""

    def test_no_other_variable_is_read(self, tmp_path: Path) -> None:
        spy = Spy(SOME_DIR="/root", JUNK="/" + "x" * 10_000, CUDA_HOME=str(tmp_path))
        data = descriptions.built_in("cuda")["libraries"]["runtime"]

        search.find("cuda", "runtime", data, Machine(environ=spy, root=str(tmp_path), paths=[], prefix="/none"))

        listed = {name for kind, where, _folders in data["search"] if kind == "environment" for name in where}
        own = {"NBXRT_CUDA_RUNTIME", "NBXRT_ALLOW_UNTESTED", "CONDA_PREFIX", "LD_LIBRARY_PATH"}
        assert listed <= spy.read
        assert spy.read <= listed | own | {"PPU_SDK_ROOT", "DTK_ROOT"}

    def test_a_value_that_is_too_long_for_a_path_is_no_error(self, tmp_path: Path) -> None:
        environ = {"CUDA_HOME": "/" + "x" * 10_000}
        data = descriptions.built_in("cuda")["libraries"]["runtime"]

        found = search.find(
            "cuda", "runtime", data, Machine(environ=environ, root=str(tmp_path), paths=[], prefix="/none")
        )[2]

        (said,) = [each for each in found if each.step == "$CUDA_HOME"]
        assert said.verdict == "missing"
        assert len(said.path) < 400


class TestOddPaths:
    """Python's path may hold anything, and a root may be relative to a folder that is left later."""

    def test_what_is_no_text_in_pythons_path_is_passed_over(self, tmp_path: Path) -> None:
        library = make_library(tmp_path / "nvidia/cuda_runtime/lib/libcudart.so.12")
        odd: list[object] = [b"/bytes", None, 7, Path("/a path"), ["a list"], "a\0b", "\ud800", "x" * 9000]
        paths = [*odd, str(tmp_path), str(tmp_path)]
        data = dict(descriptions.built_in("cuda")["libraries"]["runtime"])
        data["search"] = data["search"][1:]
        machine = Machine(environ={}, root=str(tmp_path / "none"), paths=paths, prefix="/none")  # type: ignore[arg-type]

        assert search.find("cuda", "runtime", data, machine)[1] == str(library)

    def test_a_relative_root_becomes_an_absolute_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        library = make_library(tmp_path / "toolkit/lib64/libcudart.so.12")
        data = dict(descriptions.built_in("cuda")["libraries"]["runtime"])
        data["search"] = data["search"][1:]
        monkeypatch.chdir(tmp_path)
        machine = Machine(environ={"CUDA_HOME": "toolkit"}, root=str(tmp_path / "none"), paths=[], prefix="/none")

        assert search.find("cuda", "runtime", data, machine)[1] == str(library)

    @pytest.mark.parametrize(
        ("environ", "paths"),
        [({"CONDA_PREFIX": "here"}, []), ({}, ["here/site"]), ({"LD_LIBRARY_PATH": "here/lib"}, [])],
        ids=["a prefix", "Python's path", "the loader's path"],
    )
    def test_every_relative_place_gives_an_absolute_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], paths: list[str]
    ) -> None:
        inside = "here/site/nvidia/cuda_runtime/lib" if paths else "here/lib"
        library = make_library(tmp_path / inside / "libcudart.so.12")
        data = dict(descriptions.built_in("cuda")["libraries"]["runtime"])
        data["search"] = data["search"][1:]
        monkeypatch.chdir(tmp_path)
        machine = Machine(environ=environ, root=str(tmp_path / "none"), paths=paths, prefix="/none")

        assert search.find("cuda", "runtime", data, machine)[1] == str(library)

    def test_relative_places_lead_nowhere_once_the_working_folder_is_gone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        environ = dict.fromkeys(("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "PPU_SDK_ROOT", "LD_LIBRARY_PATH"), "a/b")
        data = dict(descriptions.built_in("cuda")["libraries"]["runtime"])
        data["search"] = data["search"][1:]

        for more in ({}, {"NBXRT_CUDA_RUNTIME": "./c"}):
            here = Machine(environ={**environ, **more}, root=str(tmp_path), paths=["d"], prefix="/none")
            assert search.find("cuda", "runtime", data, here)[0] is None

    def test_a_home_folder_that_no_shell_has_put_in_is_told(self, tmp_path: Path) -> None:
        here = Machine(environ={"NBXRT_CUDA_RUNTIME": "~/lib/x.so"}, root=str(tmp_path), paths=[])
        data = descriptions.built_in("cuda")["libraries"]["runtime"]

        (candidate,) = search.find("cuda", "runtime", data, here)[2]

        assert candidate.reason == "does not exist; only a shell puts a home folder in place of `~`"


class TestUnreadable:
    """A14: what may not be read is said to be so, and is no exception."""

    PROGRAM = """
        import os, sys
        import nbxrt.binding.identity, nbxrt.binding.dependencies  # from where others may not read
        from nbxrt.binding import search
        from nbxrt.binding.machine import Machine
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": (
            ("environment", ("CLOSED_HOME",), {"linux": ("lib",)}),
            ("root", (sys.argv[1] + "/file",), {"linux": (".",)}),
            ("package", ("closed_package",), {"linux": ("lib",)}),
            ("root", (sys.argv[1] + "/good",), {"linux": (".",)}),
        ), "mode": "local"}
        machine = Machine(environ={"CLOSED_HOME": sys.argv[1] + "/closed"}, paths=[sys.argv[1] + "/closed"], root="")
        for each in search.find("toy", "runtime", role, machine)[2]:
            print(each.step, each.verdict, each.path.removeprefix(sys.argv[1]), each.reason)
    """

    def test_folders_and_files_without_permission_are_named(self, tmp_path: Path) -> None:
        for folder in (tmp_path, *[parent for parent in tmp_path.parents if str(parent).startswith("/tmp/")]):  # noqa: S108
            folder.chmod(0o755)
        make_library(tmp_path / "closed/lib/libtoy.so.1")
        make_library(tmp_path / "file/libtoy.so.1").chmod(0)
        make_library(tmp_path / "good/libtoy.so.1")
        (tmp_path / "closed").chmod(0)

        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(self.PROGRAM), str(tmp_path)],
            env={"PYTHONPATH": str(Path(nbxrt.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
        (tmp_path / "closed").chmod(0o755)

        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "$CLOSED_HOME broken /closed/lib permission denied",
            "root broken /file/libtoy.so.1 permission denied",
            "package broken /closed/closed_package/lib permission denied",
            "root chosen /good/libtoy.so.1 loaded",
        ]


class TestWindows:
    """A27, as far as Linux can show: the folders, the order of the names, and what they mean."""

    @pytest.mark.parametrize(
        ("backend", "file", "major"),
        [
            ("cuda", "site/nvidia/cu13/bin/x86_64/cudart64_13.dll", 13),
            ("cuda", "site/nvidia/cuda_runtime/bin/cudart64_12.dll", 12),
            ("cuda", "site/nvidia/cuda_runtime/bin/cudart64_110.dll", 11),
            ("cuda", "toolkit/bin/cudart64_12.dll", 12),
            ("cuda", "toolkit/bin/x64/cudart64_13.dll", 13),
            ("cuda", "conda/Library/bin/cudart64_12.dll", 12),
            ("cuda", "conda/Library/bin/x64/cudart64_13.dll", 13),
            ("hip", "hip/bin/amdhip64_7.dll", 7),
            ("hip", "hip/bin/amdhip64_6.dll", 6),
            ("hip", "hip/bin/amdhip64.dll", 5),
        ],
    )
    def test_a_dll_is_a_candidate_in_every_layout(self, tmp_path: Path, backend: str, file: str, major: int) -> None:
        dll = tmp_path / file
        dll.parent.mkdir(parents=True)
        dll.write_bytes(b"MZ")
        environ = {
            "CONDA_PREFIX": str(tmp_path / "conda"),
            "CUDA_PATH": str(tmp_path / "toolkit"),
            "HIP_PATH": str(tmp_path / "hip"),
        }
        machine = Machine("windows", "x86_64", environ, root=str(tmp_path / "root"), paths=[str(tmp_path / "site")])
        data = descriptions.built_in(backend)["libraries"]["runtime"]

        found = search.untried(backend, "runtime", data, machine, [])

        usable = [(each.path, each.major) for each in found if each.verdict == "untried"]
        assert usable == [(str(dll), major)]

    @pytest.mark.parametrize(("system", "is_known"), [("windows", True), ("linux", False)])
    def test_a_name_in_capitals_is_the_same_where_the_system_says_so(self, system: str, is_known: bool) -> None:
        data = descriptions.built_in("cuda")["libraries"]["runtime"]
        wanted = candidates.Wanted("cuda", "runtime", data, Machine(system=system, environ={}, root="", paths=[]))
        name = "CUDART64_110.DLL" if system == "windows" else "LIBCUDART.SO.12"

        assert wanted.has_name(name) is is_known
        assert (wanted.major_of(name) == 11) is is_known

    def test_an_older_toolkits_dll_is_refused(self, tmp_path: Path) -> None:
        dll = tmp_path / "toolkit/bin/cudart64_100.dll"
        dll.parent.mkdir(parents=True)
        dll.write_bytes(b"MZ")
        machine = Machine("windows", "x86_64", {"CUDA_PATH": str(tmp_path / "toolkit")}, root=str(tmp_path), paths=[])
        data = descriptions.built_in("cuda")["libraries"]["runtime"]

        found = search.untried("cuda", "runtime", data, machine, [])

        assert [each.verdict for each in found if each.path == str(dll)] == ["refused"]


class TestMacos:
    """A28: frameworks are not files, so nothing asks whether they exist."""

    def test_a_framework_is_given_to_the_loader_without_a_look(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine = Machine("macos", "aarch64", {}, root=str(tmp_path), paths=[])
        asked: list[str] = []
        for module, name in ((os, "stat"), (os, "lstat"), (os, "open"), (os.path, "exists"), (os.path, "lexists")):
            real = getattr(module, name)
            monkeypatch.setattr(
                module, name, lambda path, *more, _real=real, **named: _noted(asked, _real, path, more, named)
            )
        found = []

        for role in ("runtime", "driver"):
            data = descriptions.built_in("metal")["libraries"][role]
            wanted = candidates.Wanted("metal", role, data, machine)
            found += [each for each in steps.STEPS["system"](wanted, (), ()) if each is not None]
        monkeypatch.undo()

        assert [(each.path, each.is_file) for each in found] == [
            ("/System/Library/Frameworks/Metal.framework/Metal", False),
            ("/usr/lib/libobjc.A.dylib", False),
        ]
        assert not [path for path in asked if "Metal" in path or "libobjc" in path]


def _noted(asked: list[str], real: object, path: object, more: object, named: object) -> object:
    asked.append(str(path))
    return real(path, *more, **named)  # type: ignore[operator, misc]


class TestLoadsFirst:
    """Some libraries work only where another one was loaded before: what is not here is passed over."""

    def test_they_are_loaded_before_the_library_and_may_be_missing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = make_library(tmp_path / "libbefore.so", "int before(void) { return 1; }")
        role = {"loads_first": {"linux": [str(tmp_path / "missing.so"), str(first)], "macos": ["/other/Framework"]}}

        toys.open_toy(tmp_path, monkeypatch, role=role)

        assert str(first) in Path("/proc/self/maps").read_text("utf-8")
