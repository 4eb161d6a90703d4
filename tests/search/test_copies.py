"""Several copies on one machine: which is used, what is said of the others, and what a failing driver's error says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nbxrt
from libraries import make_library
from machines import stub_runtime
from nbxrt.binding import search
from nbxrt.binding.machine import Machine

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries and the layouts of Linux"),
    pytest.mark.needs("cc"),
]

DRIVER = """
int cuLaunchKernel(void) {{ return {code}; }}
int cuInit(unsigned flags) {{ return {code}; }}
int cuModuleLoadData(void **module, const void *image) {{ return {code}; }}
int cuGetErrorName(int code, const char **name) {{ *name = "CUDA_ERROR_OF_THIS_TEST"; return 0; }}
"""

#: A runtime that opens its driver by name, as the vendor's does.
OPENING = """
#include <dlfcn.h>
int cudaGetDeviceCount(int *count) {
    *count = ((int (*)(void))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel"))();
    return 0;
}
"""


def may_mount() -> bool:
    """Whether a process of this user may have mounts of its own."""
    return shutil.which("unshare") is not None and not subprocess.run(["unshare", "-m", "true"], check=False).returncode


def run(program: str, *arguments: object, first: tuple[str, ...] = (), **environ: object) -> list[str]:
    """The lines that a Python program prints in a process of its own, where no vendor's variable is set."""
    ours = ("CUDA", "NBX", "LD_", "PYTHON", "ROCM", "CONDA")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    given = {name: str(value) for name, value in environ.items()}
    command = [*first, sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(
        command,
        env=inherited | given | {"PYTHONPATH": str(Path(nbxrt.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class TestMixedVersions:
    """A01: the wheel's newer runtime is loaded, not the system's of the same soname."""

    PROGRAM = """
        import ctypes, sys
        from nbxrt import descriptions
        from nbxrt.binding import search
        from nbxrt.binding.machine import Machine
        sys.path.insert(0, sys.argv[1])
        role = descriptions.built_in("cuda")["libraries"]["runtime"]
        handle, path, candidates = search.find("cuda", "runtime", role, Machine())
        print(path)
        ctypes.CDLL(sys.argv[2])
        rest = search.untried("cuda", "runtime", role, Machine(), candidates)
        print(*(f"{each.step} {each.verdict} {each.path}" for each in rest if sys.argv[3] in each.path), sep="\\n")
    """

    def test_a_third_library_finds_the_newer_symbol(self, tmp_path: Path) -> None:
        older = "int cudaGetDeviceCount(int *count) { return 100; }"
        newer = older + "int newSym(void) { return 1; }"
        wheel = make_library(tmp_path / "site/nvidia/cuda_runtime/lib/libcudart.so.12", newer)
        system = make_library(tmp_path / "sys/libcudart.so.12", older)
        third = make_library(
            tmp_path / "libthird.so", "int newSym(void); int third(void) { return newSym(); }", needs=(wheel,)
        )

        said = run(self.PROGRAM, tmp_path / "site", third, tmp_path / "sys", LD_LIBRARY_PATH=tmp_path / "sys")

        assert said == [str(wheel), f"system untried {system}"]


class TestOverrides:
    """An override to another copy than the one that is mapped is honoured, and both are named."""

    PROGRAM = """
        import ctypes, sys, warnings
        from nbxrt.binding import search
        from nbxrt.binding.machine import Machine
        ctypes.CDLL(sys.argv[1])
        role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": (("loaded", (), {}),), "mode": "local"}
        handle, path, candidates = search.find("toy", "runtime", role, Machine())
        print(path)
        print(candidates[-1].warning)
    """

    def test_another_copy_is_taken_and_both_are_named(self, tmp_path: Path) -> None:
        mapped = make_library(tmp_path / "a/libtoy.so.1")
        named = make_library(tmp_path / "b/libtoy.so.1")

        path, warning = run(self.PROGRAM, mapped, NBXRT_TOY_RUNTIME=named)

        assert path == str(named)
        assert warning == (
            f"{named}: taken because NBXRT_TOY_RUNTIME names it, though {mapped} is mapped in this process already: "
            "two copies in one process do not share what they hold"
        )

    def test_the_mapped_copy_itself_is_no_reason_to_warn(self, tmp_path: Path) -> None:
        mapped = make_library(tmp_path / "a/libtoy.so.1")

        assert run(self.PROGRAM, mapped, NBXRT_TOY_RUNTIME=mapped) == [str(mapped), ""]


class TestGone:
    """A copy that this process has mapped stays the one, though its file was deleted or replaced since."""

    PROGRAM = """
        import ctypes, os, sys
        from nbxrt.binding import search
        from nbxrt.binding.machine import Machine
        mapped, fresh, then, asked = sys.argv[1:]
        library = ctypes.CDLL(mapped)
        os.remove(os.path.realpath(mapped))
        if then: os.replace(fresh, then)
        step = ("root", (os.path.dirname(fresh),), {"linux": (".",)})
        role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": (("loaded", (), {}), step), "mode": "local"}
        if asked: os.environ["NBXRT_TOY_RUNTIME"] = asked
        handle, path, candidates = search.find("toy", "runtime", role, Machine())
        print(path, handle.mark(), handle._handle == library._handle)
        print(candidates[-1].reason)
    """

    @pytest.fixture
    def copies(self, tmp_path: Path) -> tuple[Path, Path]:
        """One to be mapped, and another that stands ready."""
        old = make_library(tmp_path / "a/libtoy.so.1", "int mark(void) { return 1; }")
        return old, make_library(tmp_path / "b/libtoy.so.1", "int mark(void) { return 2; }")

    def test_a_deleted_file(self, copies: tuple[Path, Path]) -> None:
        assert run(self.PROGRAM, *copies, "", "") == [f"{copies[0]} 1 True", "loaded; its file is gone since"]

    def test_a_replaced_file(self, copies: tuple[Path, Path]) -> None:
        old, new = copies

        assert run(self.PROGRAM, old, new, old, "")[0] == f"{old} 1 True"

    def test_a_file_behind_a_link(self, copies: tuple[Path, Path]) -> None:
        old, new = copies
        real = old.rename(old.with_name("libtoy.so.1.2.3"))
        old.symlink_to(real.name)

        assert run(self.PROGRAM, old, new, "", "")[0] == f"{real} 1 True"

    def test_a_file_that_is_only_read_is_not_taken_for_loaded(self, copies: tuple[Path, Path]) -> None:
        program = """
            import mmap, sys
            from nbxrt.binding import loader
            from nbxrt.binding.machine import Machine
            file = open(sys.argv[1], "rb")
            held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            print(sys.argv[1] in loader.mapped(Machine()))
        """

        assert run(program, copies[0]) == ["False"]

    @pytest.mark.skipif(not may_mount(), reason="mounting is not permitted here")
    def test_a_file_whose_file_system_was_unmounted(self, tmp_path: Path, copies: tuple[Path, Path]) -> None:
        """As an image of an application or a network share that was let go of while it is in use."""
        program = """
            import ctypes, shutil, subprocess, sys
            from nbxrt.binding import search
            from nbxrt.binding.machine import Machine
            share, fresh = sys.argv[1:]
            subprocess.run(["mount", "-t", "tmpfs", "none", share], check=True)
            shutil.copy(fresh, share)
            library = ctypes.CDLL(share + "/libtoy.so.1")
            subprocess.run(["umount", "-l", share], check=True)
            step = ("root", (fresh.rpartition("/")[0],), {"linux": (".",)})
            role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": (("loaded", (), {}), step), "mode": "local"}
            print(search.find("toy", "runtime", role, Machine())[0]._handle == library._handle)
        """
        share = tmp_path / "share"
        share.mkdir()

        assert run(program, share, copies[1], first=("unshare", "-m")) == ["True"]

    def test_another_copy_that_a_variable_names_is_taken_and_both_are_named(self, copies: tuple[Path, Path]) -> None:
        said = run(self.PROGRAM, *copies, "", copies[1])

        assert said[0] == f"{copies[1]} 2 False"
        assert f"though {copies[0]} is mapped in this process already" in said[1]


class TestScope:
    """A21: each runtime calls its own functions, and lends them to nobody."""

    PROGRAM = """
        import ctypes, sys
        from nbxrt.binding import loader
        from nbxrt.binding.machine import Machine
        a, _why = loader.load(sys.argv[1], sys.argv[4], Machine())
        b, _why = loader.load(sys.argv[2], sys.argv[4], Machine())
        print(a.ask(), b.ask())
        print(loader.load(sys.argv[3], "local", Machine())[1] or "loaded")
    """

    @pytest.fixture
    def libraries(self, tmp_path: Path) -> list[Path]:
        source = "int cudaMalloc(void) {{ return {mark}; }} int ask(void) {{ return cudaMalloc(); }}"
        both = [make_library(tmp_path / f"lib{mark}.so", source.format(mark=mark)) for mark in (1, 2)]
        return [
            *both,
            make_library(tmp_path / "plugin.so", "int cudaMalloc(void); int go(void) { return cudaMalloc(); }"),
        ]

    def test_symbols_are_local(self, libraries: list[Path]) -> None:
        marks, plugin = run(self.PROGRAM, *libraries, "local")

        assert marks == "1 2"
        assert "undefined symbol: cudaMalloc" in plugin

    def test_a_file_may_ask_for_global_symbols(self, libraries: list[Path]) -> None:
        assert run(self.PROGRAM, *libraries, "global")[1] == "loaded"


class TestStubsAndCompatibility:
    """A07, A23: a driver that is none, or is not for this card, is named with its path and with the other copy."""

    PROGRAM = """
        import sys
        import nbxrt
        runtime = nbxrt.open("cuda")
        try:
            runtime.module_load(b"image")
        except nbxrt.DeviceError as error:
            print(type(error).__name__, error.code, error.kind)
            print(error)
        else:
            print("called", runtime.library("driver").path)
    """

    @pytest.fixture
    def cuda(self, tmp_path: Path, simulate: Callable[..., Any]) -> Path:
        """The runtime of a simulation, alone in its folder."""
        simulation = simulate("cuda", "12.4", folder=tmp_path / "simulation")
        return Path(simulation.paths["runtime"])

    def open(self, runtime: Path, first: Path, **environ: object) -> str:
        return "\n".join(run(self.PROGRAM, NBXRT_CUDA_RUNTIME=runtime, LD_LIBRARY_PATH=first.parent, **environ))

    def test_a_working_driver_is_used_instead_of_a_stub(self, tmp_path: Path, cuda: Path) -> None:
        stub = make_library(tmp_path / "stubs/libcuda.so.1", DRIVER.format(code=34))
        driver = make_library(tmp_path / "root/usr/lib64/libcuda.so.1", DRIVER.format(code=0))

        said = self.open(cuda, stub, NBXRT_SYSROOT=tmp_path / "root")

        assert said == f"called {driver}"

    def test_where_there_is_only_a_stub_it_is_named_and_never_called_no_device(
        self, tmp_path: Path, cuda: Path
    ) -> None:
        stub = make_library(tmp_path / "root/x/stubs/libcuda.so.1", DRIVER.format(code=34))

        said = self.open(cuda, stub, NBXRT_SYSROOT=tmp_path / "root")

        assert said.startswith("DriverError 34 stub_library")
        assert f"{stub} is in use, a stub of the toolkit" in said
        assert "hint: there is no other copy: install NVIDIA's driver" in said
        assert "no device" not in said

    @pytest.mark.parametrize("code", [803, 804])
    def test_a_compatibility_driver_on_another_card_is_named_with_the_other_copy(
        self, tmp_path: Path, cuda: Path, code: int
    ) -> None:
        compat = make_library(tmp_path / "root/usr/local/cuda/compat/libcuda.so.1", DRIVER.format(code=code))
        other = make_library(tmp_path / "root/usr/lib64/libcuda.so.1", DRIVER.format(code=0))

        said = self.open(cuda, compat, NBXRT_SYSROOT=tmp_path / "root")

        assert said.startswith(f"DriverError {code} driver_mismatch")
        assert f"{compat} is in use, the driver of a forward-compatibility package" in said
        assert f"{other} is another copy" in said
        assert f"hint: set NBXRT_CUDA_DRIVER={other} and restart" in said

    COUNTING = """
        import ctypes
        from nbxrt import descriptions
        from nbxrt.binding.binder import Binder
        from nbxrt.binding.machine import Machine
        binder = Binder(descriptions.built_in("cuda"), descriptions.contract(), Machine())
        count = ctypes.c_int()
        ctypes.CDLL(binder.library("runtime").path).cudaGetDeviceCount(ctypes.byref(count))
        print(count.value)
    """

    def test_the_copy_that_the_hint_names_is_the_one_that_the_runtime_gets(self, tmp_path: Path) -> None:
        """The runtime opens its driver by name: it gets the one that is mapped under that name."""
        runtime = make_library(tmp_path / "cuda/libcudart.so.12", OPENING)
        stub = make_library(tmp_path / "stubs/libcuda.so.1", DRIVER.format(code=34))
        real = make_library(tmp_path / "real/libcuda.so.1", DRIVER.format(code=3))

        said = run(self.COUNTING, NBXRT_CUDA_RUNTIME=runtime, NBXRT_CUDA_DRIVER=real, LD_LIBRARY_PATH=stub.parent)

        assert said == ["3"]

    def test_collectives_find_the_management_library_where_the_loader_does_not_know_its_folder(
        self, tmp_path: Path
    ) -> None:
        runtime = make_library(tmp_path / "cuda/libcudart.so.12")
        collectives = make_library(
            tmp_path / "nccl/libnccl.so.2",
            "#include <dlfcn.h>\n#include <stddef.h>\n"
            'int ncclGetVersion(int *n) { *n = dlopen("libnvidia-ml.so.1", RTLD_NOW) != NULL; return 0; }',
        )
        make_library(tmp_path / "usr/local/nvidia/lib64/libnvidia-ml.so.1")
        named = {"NBXRT_CUDA_RUNTIME": runtime, "NBXRT_CUDA_COLLECTIVES": collectives, "NBXRT_SYSROOT": tmp_path}
        program = self.COUNTING.replace('"runtime"', '"collectives"').replace("cudaGetDeviceCount", "ncclGetVersion")

        assert run(program, **named) == ["1"]

    @pytest.mark.parametrize("folder", ["run/opengl-driver/lib", "usr/local/nvidia/lib64", "usr/lib/wsl/lib"])
    def test_a_driver_in_a_folder_that_the_loader_does_not_know_is_the_one_that_the_runtime_gets(
        self, tmp_path: Path, folder: str
    ) -> None:
        """NixOS, Google's Kubernetes nodes, WSL: the runtime of a wheel would find no driver at all."""
        runtime = make_library(tmp_path / "cuda/libcudart.so.12", OPENING)
        make_library(tmp_path / folder / "libcuda.so.1", DRIVER.format(code=3))

        assert run(self.COUNTING, NBXRT_CUDA_RUNTIME=runtime, NBXRT_SYSROOT=tmp_path) == ["3"]


class TestOddNames:
    """A path that is not UTF-8: Python's own words for what is missing there cannot be read."""

    PROGRAM = """
        import nbxrt, sys
        sys.stdout.reconfigure(errors="backslashreplace")
        try: nbxrt.open("cuda")
        except nbxrt.NbxrtError as error: print(type(error).__name__, error.summary)
        else: print(nbxrt.open("cuda").library().path)
    """

    def open(self, tmp_path: Path, make: Callable[[Path], Path]) -> str:
        prefix = tmp_path / os.fsdecode(b"caf\xe9")
        make(prefix / "lib/libcudart.so.12")
        return run(self.PROGRAM, CONDA_PREFIX=prefix, NBXRT_SYSROOT=tmp_path / "none")[0]

    def test_a_library_is_opened_and_its_path_shown_escaped(self, tmp_path: Path) -> None:
        said = self.open(tmp_path, lambda path: stub_runtime(path, "cuda"))

        assert said == f"{tmp_path}/caf\\udce9/lib/libcudart.so.12"

    def test_a_symbol_that_is_missing_is_named(self, tmp_path: Path) -> None:
        said = self.open(tmp_path, lambda path: make_library(path, "int cudaGetDeviceCount(int *n) { return 100; }"))

        assert said.startswith("SymbolNotFoundError")
        assert "/caf\\udce9/lib/libcudart.so.12" in said

    def test_why_it_cannot_be_loaded_is_told(self, tmp_path: Path) -> None:
        said = self.open(
            tmp_path, lambda path: make_library(path, "int lacking(void); int go(void) { return lacking(); }")
        )

        assert said.startswith("LibraryBrokenError")
        assert "undefined symbol: lacking" in said


class TestUntried:
    """The candidates after the chosen one: found by looking, judged by reading, never loaded."""

    def test_nothing_of_them_is_loaded(self, tmp_path: Path) -> None:
        aborts = "#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }"
        make_library(tmp_path / "a/libtoy.so.1")
        make_library(tmp_path / "b/libtoy.so.1", aborts)
        (tmp_path / "c").mkdir()
        (tmp_path / "c/libtoy.so.1").touch()
        make_library(tmp_path / "d/libtoy.so.9")
        steps = tuple(("root", (str(tmp_path / folder),), {"linux": (".",)}) for folder in "abcde")
        role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": steps, "mode": "local"}
        machine = Machine(environ={}, root="", paths=[])

        _handle, path, candidates = search.find("toy", "runtime", role, machine)
        rest = search.untried("toy", "runtime", role, machine, candidates)

        assert [(each.path[len(str(tmp_path)) :], each.verdict, each.reason) for each in rest] == [
            ("/b/libtoy.so.1", "untried", f"{path} comes first"),
            ("/c/libtoy.so.1", "broken", "is empty"),
            ("/d/libtoy.so.9", "refused", "major 9 is not among 1"),
            ("/e", "missing", "does not exist"),
        ]

    def test_a_broken_file_of_the_loaders_folders_is_not_opened_by_its_name(self, tmp_path: Path) -> None:
        whole = make_library(tmp_path / "x/libtoy-of-this-test.so.1")
        whole.write_bytes(whole.read_bytes()[:9000])
        program = """
            from nbxrt.binding import search
            from nbxrt.binding.machine import Machine
            names = ((1, {"linux": "libtoy-of-this-test.so.1"}),)
            role = {"names": names, "search": (("system", (), {}),), "mode": "local"}
            for each in search.find("toy", "runtime", role, Machine())[2]: print(each.verdict, each.reason)
        """

        said = run(program, LD_LIBRARY_PATH=whole.parent)

        assert said[-2].startswith("broken is truncated")
        assert said[-1] == "skipped the loader would take the unusable copy above"

    @pytest.mark.parametrize("damage", [9000, -9000], ids=["cut off", "zeros at the end"])
    def test_a_damaged_file_that_a_variable_names_without_a_folder_is_not_opened_either(
        self, tmp_path: Path, damage: int
    ) -> None:
        whole = make_library(tmp_path / "x/libcudart.so.12")
        data = whole.read_bytes()
        whole.write_bytes(data[:damage] if damage > 0 else data[:1024] + bytes(len(data) - 1024))
        program = """
            import nbxrt
            try: nbxrt.open("cuda")
            except nbxrt.LibraryBrokenError as error: print(error)
        """

        said = run(program, NBXRT_CUDA_RUNTIME="libcudart.so.12", LD_LIBRARY_PATH=whole.parent)

        assert f"library {whole} (NBXRT_CUDA_RUNTIME) is " in said[0]
        assert said[-1].endswith("NBXRT_CUDA_RUNTIME is set, so nothing else was tried: correct it, or unset it")

    def test_a_file_that_a_description_names_by_its_whole_path_is_looked_at_like_all_others(
        self, tmp_path: Path
    ) -> None:
        whole = make_library(tmp_path / "libtoy.so.1")
        whole.write_bytes(whole.read_bytes()[:9000])
        program = """
            import sys
            from nbxrt.binding import search
            from nbxrt.binding.machine import Machine
            names = tuple((1, {"linux": path}) for path in sys.argv[1:])
            role = {"names": names, "search": (("system", (), {}),), "mode": "local"}
            for each in search.find("toy", "runtime", role, Machine())[2]: print(each.verdict, each.path, each.reason)
        """

        said = run(program, tmp_path / "none.so", whole)

        assert f"missing {tmp_path}/none.so does not exist" in said
        assert any(line.startswith(f"broken {whole} is truncated") for line in said)

    def test_a_library_whose_dependency_is_cut_off_is_passed_over_before_it_kills_the_process(
        self, tmp_path: Path
    ) -> None:
        needed = make_library(tmp_path / "bad/libneeded-of-this-test.so.1", "int needed(void) { return 1; }")
        make_library(tmp_path / "bad/libtoy.so.1", needs=(needed,), flags=("-Wl,-rpath,$ORIGIN",))
        needed.write_bytes(needed.read_bytes()[:9000])
        good = make_library(tmp_path / "good/libtoy.so.1")
        program = """
            import sys
            from nbxrt.binding import search
            from nbxrt.binding.machine import Machine
            steps = tuple(("root", (folder,), {"linux": (".",)}) for folder in sys.argv[1:])
            role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": steps, "mode": "local"}
            for each in search.find("toy", "runtime", role, Machine())[2]: print(each.verdict, each.path, each.reason)
        """

        said = run(program, tmp_path / "bad", good.parent)

        assert said[0].startswith(
            f"broken {tmp_path}/bad/libtoy.so.1 needs libneeded-of-this-test.so.1: {needed} is trunc"
        )
        assert said[1] == f"chosen {good} loaded"
