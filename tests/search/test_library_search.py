"""Where a library is found, in which order, and what the report says of every place."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from libraries import as_32_bit, for_machine, make_library
from nbxrt import descriptions
from nbxrt.binding import search
from nbxrt.binding.machine import Machine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries and the layouts of Linux")

#: One folder by the layout of each way to install a runtime (facts about wheels and toolkits).
CUDA_LAYOUTS = {
    "wheel of CUDA 11": ("site", "nvidia/cuda_runtime/lib/libcudart.so.11.0", 11),
    "wheel of CUDA 12": ("site", "nvidia/cuda_runtime/lib/libcudart.so.12", 12),
    "wheel of CUDA 13": ("site", "nvidia/cu13/lib/libcudart.so.13", 13),
    "conda": ("CONDA_PREFIX", "lib/libcudart.so.12", 12),
    "toolkit with lib64": ("CUDA_HOME", "lib64/libcudart.so.12", 12),
    "toolkit with lib": ("CUDA_HOME", "lib/libcudart.so.12", 12),
    "toolkit with targets": ("CUDA_PATH", "targets/{machine}-linux/lib/libcudart.so.13", 13),
    "default root": ("root", "usr/local/cuda/lib64/libcudart.so.12", 12),
}


def machine(
    tmp_path: Path, *, site: list[Path] | None = None, start: dict[str, str] | None = None, **environ: Any
) -> Machine:
    """A machine with nothing on it but what the test says; absolute paths lie below an empty folder."""
    given = {name: str(value) for name, value in environ.items()}
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    return Machine(
        environ=given,
        start_environ=given if start is None else start,
        root=str(root),
        paths=[str(path) for path in site or []],
        prefix=str(tmp_path / "no-prefix"),
    )


def runtime_of(backend: str, *, without: tuple[str, ...] = ("loaded",)) -> dict[str, Any]:
    """A shipped backend's runtime role, without the steps that depend on what this process has loaded."""
    role = dict(descriptions.built_in(backend)["libraries"]["runtime"])
    role["search"] = tuple(step for step in role["search"] if step[0] not in without)
    return role


def toy(*steps: Any, names: tuple[Any, ...] = ((1, {"linux": "libtoy.so.1"}),)) -> dict[str, Any]:
    """A runtime role of no vendor."""
    return {"names": names, "search": steps, "mode": "local"}


def root_step(folder: str) -> tuple[str, tuple[str, ...], dict[str, tuple[str, ...]]]:
    return ("root", (folder,), {"linux": (".",)})


def chosen(candidates: list[search.Candidate]) -> list[str]:
    return [candidate.path for candidate in candidates if candidate.verdict == "chosen"]


def reason(candidates: list[search.Candidate], part: str) -> str:
    return next(candidate.reason for candidate in candidates if part in candidate.path)


class TestLayouts:
    """A03: wheels, conda and toolkits put the library in different folders by major."""

    @pytest.mark.parametrize(("place", "inside", "major"), CUDA_LAYOUTS.values(), ids=CUDA_LAYOUTS.keys())
    def test_a_library_is_found_in_every_layout(self, tmp_path: Path, place: str, inside: str, major: int) -> None:
        here = tmp_path / place
        library = make_library(here / inside.replace("{machine}", Machine().processor))
        environ = {} if place in ("site", "root") else {place: here}

        handle, path, candidates = search.find(
            "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, site=[tmp_path / "site"], **environ)
        )

        assert handle is not None
        assert os.path.realpath(path) == str(library)
        assert candidates[-1].major == major

    def test_another_processors_targets_folder_is_not_used(self, tmp_path: Path) -> None:
        make_library(tmp_path / "toolkit/targets/x86_64-linux/lib/libcudart.so.12")
        other = Machine(
            environ={"CUDA_HOME": str(tmp_path / "toolkit")},
            processor="aarch64",
            root=str(tmp_path),
            paths=[],
            prefix="/x",
        )

        handle, _path, candidates = search.find("cuda", "runtime", runtime_of("cuda"), other)

        assert handle is None
        assert not any("x86_64" in candidate.path for candidate in candidates)

    def test_every_part_of_a_namespace_package_is_looked_at_and_the_best_major_wins(self, tmp_path: Path) -> None:
        make_library(tmp_path / "a/nvidia/cuda_runtime/lib/libcudart.so.11.0")
        best = make_library(tmp_path / "b/nvidia/cuda_runtime/lib/libcudart.so.12")

        _handle, path, _candidates = search.find(
            "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, site=[tmp_path / "a", tmp_path / "b"])
        )

        assert path == str(best)


class TestPackages:
    """A06: a missing or shadowed parent package."""

    def test_a_file_that_shadows_the_package_is_noted_and_not_run(self, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine/nvidia.py").write_text("raise SystemExit('run')")
        library = make_library(tmp_path / "site/nvidia/cuda_runtime/lib/libcudart.so.12")

        _handle, path, candidates = search.find(
            "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, site=[tmp_path / "mine", tmp_path / "site"])
        )

        assert path == str(library)
        assert "not run" in reason(candidates, "nvidia.py")

    def test_a_package_that_raises_when_imported_is_not_imported(self, tmp_path: Path) -> None:
        library = make_library(tmp_path / "site/nvidia/cuda_runtime/lib/libcudart.so.12")
        (tmp_path / "site/nvidia/__init__.py").write_text("raise ValueError('imported')")

        _handle, path, _candidates = search.find(
            "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, site=[tmp_path / "site"])
        )

        assert path == str(library)

    def test_nothing_installed_is_a_reason_and_no_error(self, tmp_path: Path) -> None:
        handle, _path, candidates = search.find("cuda", "runtime", runtime_of("cuda"), machine(tmp_path))

        assert handle is None
        assert reason(candidates, "nvidia.cu13") == "not installed"


class TestUnusableFiles:
    """A10, A12: files that bear the name of a library and are none for this process."""

    def test_wrong_architectures_are_named_and_the_good_copy_is_loaded(self, tmp_path: Path) -> None:
        as_32_bit(make_library(tmp_path / "a/libtoy.so.1"))
        foreign = 183 if Machine().processor == "x86_64" else 62
        for_machine(make_library(tmp_path / "b/libtoy.so.1"), foreign)
        good = make_library(tmp_path / "c/libtoy.so.1")
        role = toy(*[root_step(str(tmp_path / folder)) for folder in "abc"])

        _handle, path, candidates = search.find("toy", "runtime", role, Machine(environ={}, root="", paths=[]))

        assert path == str(good)
        assert "ELF32" in reason(candidates, "/a/")
        assert f"and this is {Machine().processor}" in reason(candidates, "/b/")

    def test_what_is_no_library_is_passed_over_each_with_its_own_reason(self, tmp_path: Path) -> None:
        for folder in ("script", "empty", "dangling", "directory/libtoy.so.1", "short"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "script/libtoy.so.1").write_text("/* GNU ld script */ INPUT(libx.so)")
        (tmp_path / "empty/libtoy.so.1").touch()
        (tmp_path / "dangling/libtoy.so.1").symlink_to("gone.so")
        whole = make_library(tmp_path / "good/libtoy.so.1")
        (tmp_path / "short/libtoy.so.1").write_bytes(whole.read_bytes()[:9000])
        folders = ("script", "empty", "dangling", "directory", "short", "good")
        role = toy(*[root_step(str(tmp_path / folder)) for folder in folders])

        _handle, path, candidates = search.find("toy", "runtime", role, Machine(environ={}, root="", paths=[]))

        assert path == str(whole)
        assert [candidate.reason.split(":")[0] for candidate in candidates[:-1]] == [
            "is a linker script, not a library",
            "is empty",
            "broken link to gone.so",
            "is a directory",
            "is truncated",
        ]

    def test_a_missing_dependency_is_named(self, tmp_path: Path) -> None:
        needed = make_library(tmp_path / "needed/libneeded.so.3", "int needed(void) { return 1; }")
        source = "int needed(void); int mark(void) { return needed(); }"
        make_library(tmp_path / "lib/libtoy.so.1", source, flags=(str(needed), "-Wl,--no-as-needed"))

        _handle, _path, candidates = search.find(
            "toy", "runtime", toy(root_step(str(tmp_path / "lib"))), Machine(environ={}, root="", paths=[])
        )

        assert candidates[0].verdict == "broken"
        assert candidates[0].reason == "needs libneeded.so.3, which the loader does not find"


class TestLoaderPath:
    """A15: LD_LIBRARY_PATH as the loader has seen it, and A09: no loader cache."""

    def test_a_variable_changed_after_the_start_is_said_and_the_way_that_works_is_named(self, tmp_path: Path) -> None:
        make_library(tmp_path / "x/libtoy.so.1")
        changed = machine(tmp_path, start={}, LD_LIBRARY_PATH=tmp_path / "x")

        handle, _path, candidates = search.find("toy", "runtime", toy(("system", (), {})), changed)

        assert handle is None
        assert "set NBXRT_TOY_RUNTIME to the folder" in reason(candidates, "LD_LIBRARY_PATH")

    def test_parts_are_searched_and_an_empty_part_is_not_the_working_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_library(tmp_path / "cwd/libtoy.so.1")
        good = make_library(tmp_path / "x/libtoy.so.1")
        monkeypatch.chdir(tmp_path / "cwd")
        with_x = machine(tmp_path, LD_LIBRARY_PATH=f"{tmp_path / 'a'}::{tmp_path / 'x'}:")
        without_x = machine(tmp_path, LD_LIBRARY_PATH=f"{tmp_path / 'a'}::")

        found = search.find("toy", "runtime", toy(("system", (), {})), with_x)
        nothing = search.find("toy", "runtime", toy(("system", (), {})), without_x)

        assert found[1] == str(good)
        assert nothing[0] is None

    def test_the_working_folder_is_not_used_by_the_real_loader_either(self, tmp_path: Path) -> None:
        make_library(tmp_path / "libtoy.so.1")
        program = """
            from nbxrt.binding import search
            from nbxrt.binding.machine import Machine
            role = {"names": ((1, {"linux": "libtoy.so.1"}),), "search": (("system", (), {}),), "mode": "local"}
            print(search.find("toy", "runtime", role, Machine())[0])
        """
        environ = {**os.environ, "LD_LIBRARY_PATH": "/nowhere::"}

        said = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )

        assert said.stdout.strip() == "None"

    def test_a_folder_given_by_variable_works_at_any_time(self, tmp_path: Path) -> None:
        good = make_library(tmp_path / "x/libtoy.so.1")

        found = search.find("toy", "runtime", toy(), machine(tmp_path, NBXRT_TOY_RUNTIME=tmp_path / "x"))

        assert found[1] == str(good)

    def test_without_a_loader_cache_other_folders_are_searched_and_nothing_is_started(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        driver = make_library(tmp_path / "root/run/opengl-driver/lib/libcuda.so.1")
        role = dict(descriptions.built_in("cuda")["libraries"]["driver"])
        role["search"] = tuple(step for step in role["search"] if step[0] != "loaded")
        monkeypatch.setattr(subprocess, "Popen", lambda *_args, **_named: pytest.fail("a program was started"))
        start = time.monotonic()

        found = search.find("cuda", "driver", role, machine(tmp_path, PATH=""))

        assert found[1] == str(driver)
        assert time.monotonic() - start < 60, "this is about waiting, not about speed"

    def test_the_loader_cache_is_read_and_a_damaged_one_is_no_error(self, tmp_path: Path) -> None:
        here = machine(tmp_path)
        (tmp_path / "root/etc").mkdir()
        (tmp_path / "root/etc/ld.so.cache").write_bytes(b"not a cache")

        found = search.find("toy", "runtime", toy(("system", (), {})), here)

        assert found[0] is None


class TestOrder:
    """A16, A17: one documented order, the same on every run."""

    def test_links_to_one_file_are_one_candidate(self, tmp_path: Path) -> None:
        real = make_library(tmp_path / "lib/libcudart.so.12.4.127", soname="libcudart.so.12")
        (tmp_path / "lib/libcudart.so.12").symlink_to(real.name)
        (tmp_path / "lib/libcudart.so").symlink_to("libcudart.so.12")

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _handle, path, candidates = search.find(
                "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, CUDA_HOME=tmp_path)
            )

        assert os.path.realpath(path) == str(real)
        assert len([candidate for candidate in candidates if str(tmp_path / "lib/") in candidate.path]) == 1

    def test_the_choice_does_not_depend_on_the_hash_seed(self, tmp_path: Path) -> None:
        for name in ("libcudart.so.12", "libcudart.so.11.0", "libcudart.so.13"):
            make_library(tmp_path / "lib64" / name)
        program = (
            "from nbxrt import descriptions; from nbxrt.binding import search;"
            "from nbxrt.binding.machine import Machine;"
            "print(search.find('cuda', 'runtime', descriptions.built_in('cuda')['libraries']['runtime'], Machine())[1])"
        )
        answers = set()

        for seed in range(5):
            environ = {**os.environ, "CUDA_HOME": str(tmp_path), "PYTHONHASHSEED": str(seed)}
            environ.pop("CUDA_PATH", None)
            answers.add(
                subprocess.run(
                    [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
                ).stdout
            )

        assert answers == {f"{tmp_path}/lib64/libcudart.so.13\n"}

    @pytest.mark.parametrize(
        "present",
        [
            ("override", "site", "CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME", "root"),
            ("site", "CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME", "root"),
            ("CONDA_PREFIX", "CUDA_PATH", "root"),
            ("CUDA_PATH", "root"),
            ("CUDA_HOME", "root"),
            ("root",),
        ],
        ids=lambda present: present[0],
    )
    def test_an_earlier_step_comes_before_a_later_one(self, tmp_path: Path, present: tuple[str, ...]) -> None:
        places = {
            "override": "exact/libcudart.so.12",
            "site": "site/nvidia/cuda_runtime/lib/libcudart.so.12",
            "CONDA_PREFIX": "conda/lib/libcudart.so.12",
            "CUDA_PATH": "toolkit/lib64/libcudart.so.12",
            "CUDA_HOME": "toolkit/lib64/libcudart.so.12",
            "root": "root/usr/local/cuda/lib64/libcudart.so.12",
        }
        files = {place: make_library(tmp_path / places[place]) for place in present}
        environ: dict[str, Any] = {}
        if "override" in present:
            environ["NBXRT_CUDA_RUNTIME"] = files["override"]
        if "CONDA_PREFIX" in present:
            environ["CONDA_PREFIX"] = tmp_path / "conda"
        for name in {"CUDA_PATH", "CUDA_HOME"} & set(present):
            environ[name] = tmp_path / "toolkit"

        _handle, path, _candidates = search.find(
            "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, site=[tmp_path / "site"], **environ)
        )

        assert path == str(files[present[0]])

    def test_an_empty_variable_counts_as_unset(self, tmp_path: Path) -> None:
        library = make_library(tmp_path / "toolkit/lib64/libcudart.so.12")

        found = search.find(
            "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, CUDA_PATH="", CUDA_HOME=tmp_path / "toolkit")
        )

        assert found[1] == str(library)

    def test_two_variables_that_disagree_are_both_named(self, tmp_path: Path) -> None:
        make_library(tmp_path / "a/lib64/libcudart.so.12")
        make_library(tmp_path / "b/lib64/libcudart.so.12")

        with pytest.warns(RuntimeWarning, match=f"CUDA_PATH={tmp_path}/a and CUDA_HOME={tmp_path}/b"):
            search.find(
                "cuda",
                "runtime",
                runtime_of("cuda"),
                machine(tmp_path, CUDA_PATH=tmp_path / "a", CUDA_HOME=tmp_path / "b"),
            )

    def test_two_variables_that_name_one_place_by_a_link_agree(self, tmp_path: Path) -> None:
        make_library(tmp_path / "cuda-12.4/lib64/libcudart.so.12")
        (tmp_path / "cuda").symlink_to("cuda-12.4")

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            here = machine(tmp_path, CUDA_PATH=tmp_path / "cuda-12.4", CUDA_HOME=tmp_path / "cuda")
            assert search.find("cuda", "runtime", runtime_of("cuda"), here)[0] is not None

    def test_an_override_that_does_not_resolve_is_the_end_of_the_search(self, tmp_path: Path) -> None:
        make_library(tmp_path / "root/usr/local/cuda/lib64/libcudart.so.12")
        missing = tmp_path / "missing.so"

        handle, _path, candidates = search.find(
            "cuda", "runtime", runtime_of("cuda"), machine(tmp_path, NBXRT_CUDA_RUNTIME=missing)
        )

        assert handle is None
        assert [(each.step, each.path, each.reason) for each in candidates] == [
            ("NBXRT_CUDA_RUNTIME", str(missing), "does not exist")
        ]


class TestMajors:
    """A04, H02: only the majors that the file names, compared as numbers."""

    def test_the_wheels_major_comes_before_an_older_system_copy(self, tmp_path: Path) -> None:
        wheel = make_library(tmp_path / "site/_rocm_sdk_core/lib/libamdhip64.so.7")
        old = make_library(tmp_path / "root/opt/rocm/lib/libamdhip64.so.6")
        (old.parent / "libamdhip64.so").symlink_to(old.name)

        found = search.find("hip", "runtime", runtime_of("hip"), machine(tmp_path, site=[tmp_path / "site"]))
        alone = search.find("hip", "runtime", runtime_of("hip"), machine(tmp_path))

        assert found[1] == str(wheel)
        assert alone[1] == str(old)

    def test_a_versioned_file_without_the_plain_name_is_enough(self, tmp_path: Path) -> None:
        wheel = make_library(tmp_path / "site/_rocm_sdk_core/lib/libamdhip64.so.7")

        found = search.find("hip", "runtime", runtime_of("hip"), machine(tmp_path, site=[tmp_path / "site"]))

        assert found[1] == str(wheel)

    def test_a_major_that_the_file_does_not_name_is_refused_with_file_and_range(self, tmp_path: Path) -> None:
        other = make_library(tmp_path / "root/opt/rocm/lib/libamdhip64.so.9")
        (other.parent / "libamdhip64.so").symlink_to(other.name)

        handle, _path, candidates = search.find("hip", "runtime", runtime_of("hip"), machine(tmp_path))

        assert handle is None
        refused = [candidate for candidate in candidates if candidate.verdict == "refused"]
        assert refused
        assert all(candidate.reason == "major 9 is not among 7, 6, 5" for candidate in refused)

    def test_an_untested_major_is_taken_when_the_user_allows_it(self, tmp_path: Path) -> None:
        other = make_library(tmp_path / "root/opt/rocm/lib/libamdhip64.so.9")

        found = search.find("hip", "runtime", runtime_of("hip"), machine(tmp_path, NBXRT_ALLOW_UNTESTED=1))

        assert found[1] == str(other)
        assert "NBXRT_ALLOW_UNTESTED=1" in found[2][-1].reason


class TestLoaded:
    """One process, one runtime: a copy that is mapped already is the one."""

    PROGRAM = """
        import ctypes, sys
        from nbxrt.binding import search
        from nbxrt.binding.machine import Machine
        ctypes.CDLL(sys.argv[1])
        names = ((12, {"linux": "libtoy.so.12"}), (11, {"linux": "libtoy.so.11"}))
        steps = (("loaded", (), {}), ("root", (sys.argv[2],), {"linux": (".",)}))
        role = {"names": names, "search": steps, "mode": "local"}
        handle, path, candidates = search.find("toy", "runtime", role, Machine())
        print(path)
        for candidate in candidates: print(candidate.verdict, candidate.path, candidate.reason)
    """

    def run(self, first: Path, folder: Path) -> list[str]:
        command = [sys.executable, "-c", textwrap.dedent(self.PROGRAM), str(first), str(folder)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    def test_a_mapped_copy_comes_before_every_other(self, tmp_path: Path) -> None:
        mapped = make_library(tmp_path / "a/libtoy.so.11")
        make_library(tmp_path / "b/libtoy.so.12")

        assert self.run(mapped, tmp_path / "b")[0] == str(mapped)

    def test_a_mapped_copy_under_a_hashed_name_is_recognised(self, tmp_path: Path) -> None:
        mapped = make_library(tmp_path / "a/libtoy-0a1b2c3d.so.12.1")
        make_library(tmp_path / "b/libtoy.so.12")

        assert self.run(mapped, tmp_path / "b")[0] == str(mapped)

    def test_a_mapped_copy_of_a_refused_major_ends_the_search(self, tmp_path: Path) -> None:
        mapped = make_library(tmp_path / "a/libtoy.so.9")
        make_library(tmp_path / "b/libtoy.so.12")

        said = self.run(mapped, tmp_path / "b")

        assert said[0] == ""
        assert said[1:] == [
            f"refused {mapped} mapped in this process already, and major 9 is not among 12, 11",
        ]
