"""What a process may do around nbxrt: fork, end, lose its folder, name odd files; each has an answer."""

from __future__ import annotations

import contextlib
import copy
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from toys import PLAIN, open_toy, write

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform != "linux", reason="forks, pipes and the loader of Linux"),
]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nbxrt.Runtime]:
    yield open_toy(tmp_path, monkeypatch)
    nbxrt.reset()


def run(program: str, *, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environ}, cwd=cwd, timeout=100, check=False
    )


class TestForks:
    def test_a_child_is_not_held_up_by_a_lock_that_a_thread_of_its_parent_holds(self) -> None:
        done = run("""
            import os, signal, threading, nbxrt
            nbxrt.open("host")
            nbxrt.detect()  # an import that a fork cuts off is Python's to mend
            threading.Thread(target=lambda: [nbxrt.detect() for _ in iter(int, 1)], daemon=True).start()
            for _ in range(20):
                child = os.fork()
                if not child:
                    signal.alarm(20)
                    nbxrt.reset()
                    nbxrt.open("host").malloc(16)
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            print("fine")
        """)

        assert done.stdout == "fine\n", done.stderr


class TestTheEnd:
    def test_finalizers_may_ask_for_the_table_and_the_memory_while_the_interpreter_ends(self) -> None:
        done = run("""
            import nbxrt
            class Tensor:
                def __init__(self):
                    self.address, self.itself = nbxrt.open("host").malloc(64), self
                def __del__(self):
                    getattr(nbxrt.gpu_runtime(), nbxrt.backend_table()["free"])(self.address)
                    nbxrt.device_memory().free(0)
                    nbxrt.gpu_backend(), nbxrt.device_label(self)
            nbxrt.open("host")
            tensor = Tensor()
        """)

        assert (done.returncode, done.stderr) == (0, "")


class TestPlaces:
    def test_a_working_folder_that_is_gone_is_no_error(self, tmp_path: Path) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()

        done = run(f"""
            import os
            os.rmdir({str(gone)!r})
            import nbxrt
            nbxrt.detect()
            print(nbxrt.open("host").name)
        """, cwd=gone)  # fmt: skip

        assert done.stdout == "host\n", done.stderr

    def test_a_pipe_is_no_backend_file_and_nobody_waits_for_it(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe.yaml"
        os.mkfifo(pipe)

        (fault,) = nbxrt.validate(pipe)
        done = run("import nbxrt; nbxrt.detect(); print('seen')", NBXRT_BACKEND_PATH=str(tmp_path))

        assert "it is no regular file" in fault.message
        assert done.stdout == "seen\n", done.stderr

    def test_a_path_that_no_file_system_takes_is_no_error(self) -> None:
        done = run("import nbxrt; nbxrt.detect(); print('seen')", NBXRT_BACKEND_PATH="/" + "a" * 5000)

        assert done.stdout == "seen\n", done.stderr

    def test_what_is_no_text_in_the_paths_of_python_is_passed_over_as_python_does(self) -> None:
        done = run("import sys, nbxrt; sys.path += [b'x', ['y'], None]; nbxrt.detect(); print('seen')")

        assert done.stdout == "seen\n", done.stderr

    def test_a_bare_name_in_a_variable_is_the_loaders_and_not_a_file_of_the_working_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from libraries import make_library

        make_library(tmp_path / "libbare.so.1", PLAIN)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("NBXRT_TOY_RUNTIME", "libbare.so.1")

        with pytest.raises(nbxrt.LibraryNotFoundError):
            nbxrt.open(write(tmp_path))


class TestAttributes:
    def test_a_vendor_function_that_is_not_there_is_a_missing_attribute(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rt = open_toy(tmp_path, monkeypatch, operations={"malloc_async": "toyMallocAsync"})

        assert not hasattr(rt, "toyMallocAsync")
        assert hasattr(rt, "toyMalloc")
        nbxrt.reset()

    def test_a_runtime_can_be_copied_and_an_empty_one_has_no_attributes(self, toy: nbxrt.Runtime) -> None:
        assert copy.copy(toy).name == "toy"
        with pytest.raises(AttributeError):
            nbxrt.Runtime.__new__(nbxrt.Runtime).name  # noqa: B018


class TestSelection:
    def test_a_runtime_opened_by_its_files_path_is_asked_for_its_own_devices(self, toy: nbxrt.Runtime) -> None:
        assert nbxrt.gpu_backend(require_device=True) == "toy"

    def test_the_error_of_a_bad_file_is_a_new_one_each_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "bad.yaml").write_text("name: bad\noperations: [")
        monkeypatch.setenv("NBXRT_BACKEND_PATH", str(tmp_path))
        caught: list[Any] = []

        for _ in range(2):
            with pytest.raises(nbxrt.DescriptionError) as error:
                nbxrt.open("bad")
            caught.append(error.value)

        assert caught[0] is not caught[1]
        assert str(caught[0]) == str(caught[1])


@pytest.mark.tier("all")
def test_what_the_path_names_and_is_not_there_is_said_with_an_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBXRT_BACKEND_PATH", os.sep + "no/such.yaml")
    with pytest.raises(nbxrt.BackendNotFoundError, match=r"no.such\.yaml` in NBXRT_BACKEND_PATH: there is no such"):
        nbxrt.open("such")
    assert "such.yaml" in str(nbxrt.detect())


@pytest.mark.parametrize("given", [b"host", 5, object()])
def test_a_backend_is_given_by_text_or_a_path(given: object) -> None:
    with pytest.raises(TypeError, match="name or the path of its file, not by"):
        nbxrt.open(given)  # type: ignore[arg-type]


def test_a_c_form_with_the_wrong_number_of_arguments_is_refused() -> None:
    runtime = nbxrt.open("host")
    with pytest.raises(TypeError, match=r"c_malloc takes 2 arguments \(\*address, nbytes\), not 0"):
        runtime.c_malloc()  # type: ignore[attr-defined]


@pytest.mark.tier("all")
def test_a_warning_points_at_the_users_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("contract: 1\nname: broken\n", encoding="utf-8")
    monkeypatch.setenv("NBXRT_BACKEND_PATH", str(broken))
    nbxrt.reset()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with contextlib.suppress(nbxrt.BackendNotFoundError):
            nbxrt.gpu_backend()
    assert {warning.filename for warning in seen if "broken" in str(warning.message)} == {__file__}


@pytest.mark.parametrize("given", ["host", None, 5])
def test_what_is_no_runtime_is_not_put_in_force(given: object) -> None:
    with pytest.raises(TypeError, match="`use` takes a runtime, not"):
        nbxrt.use(given)  # type: ignore[arg-type]
