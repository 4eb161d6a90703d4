"""Where description files are found, which one is in force, and that data is found in every kind of installation."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt.catalogue import sources
from nbxrt.errors import DescriptionError, NbxrtError

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(nbxrt.__file__).parent


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, said: str | None = None, folder: str = "user", *, override: bool = False) -> Path:
        file = tmp_path / folder / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"name: {said or name}\n" + "override: true\n" * override, "utf-8")
        return file

    return write


def found(*paths: Path | str, explicit: Path | None = None) -> sources.Found:
    return sources.find(explicit, {sources.PATH_VARIABLE: os.pathsep.join(map(str, paths))})


def test_every_built_in_file_is_found_by_the_name_in_it() -> None:
    for name, source in sources.find(environment={}).sources.items():
        assert source.origin == "built in"
        assert f"\nname: {name}\n" in source.file.read_bytes().decode()


def test_files_and_folders_on_the_path_are_found(written: Callable[..., Path]) -> None:
    one, two = written("one"), written("two", "zwei", folder="more")
    (two.parent / "notes.txt").write_text("name: three\n", "utf-8")

    paths = found(one, two.parent)

    assert (paths.sources["one"].file, paths.sources["zwei"].file) == (one, two)
    assert paths.sources["zwei"].origin == "NBXRT_BACKEND_PATH"
    assert "three" not in paths.sources
    assert paths.missing == ()


def test_empty_parts_are_ignored_and_the_current_directory_is_never_read(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written("here").parent)

    paths = sources.find(environment={sources.PATH_VARIABLE: os.pathsep + " " + os.pathsep})

    assert list(paths.sources) == list(sources.find(environment={}).sources)
    assert paths.missing == ()


def test_a_missing_path_and_an_empty_folder_are_told_and_end_nothing(
    tmp_path: Path, written: Callable[..., Path]
) -> None:
    (tmp_path / "empty").mkdir()

    paths = found(tmp_path / "none.yaml", tmp_path / "empty", written("one"))

    assert [str(each) for each in paths.missing] == [
        f"`{tmp_path / 'none.yaml'}` in NBXRT_BACKEND_PATH: there is no such file or folder",
        f"`{tmp_path / 'empty'}` in NBXRT_BACKEND_PATH: the folder holds no `*.yaml` file",
    ]
    assert "one" in paths.sources


def test_space_around_a_path_does_not_count(written: Callable[..., Path]) -> None:
    value = f" {written('one')} {os.pathsep} {written('two')} "

    assert {"one", "two"} <= set(sources.find(environment={sources.PATH_VARIABLE: value}).sources)


@pytest.mark.parametrize(
    ("part", "meant"),
    [("~/mine.yaml", "`~` stands for no home folder here"), ('"/etc/mine.yaml"', "quotes are a part of the name here"),
     ("/etc/one.yaml,/etc/two.yaml", f"paths are separated by `{os.pathsep}`")],
)  # fmt: skip
def test_a_path_that_a_shell_would_have_read_otherwise_says_so(part: str, meant: str) -> None:
    (missing,) = sources.find(environment={sources.PATH_VARIABLE: part}).missing

    assert missing.reason == f"there is no such file or folder: {meant}"


def test_a_file_that_takes_a_name_without_saying_so_is_refused_with_both_files(written: Callable[..., Path]) -> None:
    """F01: two files of one backend."""
    file = written("mine", "host")

    paths = found(file)

    with pytest.raises(DescriptionError) as raised:
        paths.select("host")
    (fault,) = raised.value.diagnostics
    assert (fault.reference, fault.file, fault.line, fault.column) == ("name-taken", str(file), 1, 7)
    assert "backends/host.yaml" in fault.message
    assert "`override: true`" in fault.hint


def test_a_refused_file_harms_no_other(written: Callable[..., Path]) -> None:
    paths = found(written("mine", "host"), written("one"))

    assert paths.select("one").name == "one"


def test_a_file_that_says_override_takes_the_name(written: Callable[..., Path]) -> None:
    file = written("mine", "host", override=True)

    assert found(file).select("host").file == file


def test_two_files_of_the_user_with_one_name_need_override_as_well(written: Callable[..., Path]) -> None:
    one, two, three = written("one", "same"), written("two", "same"), written("three", "same", override=True)

    with pytest.raises(DescriptionError, match=r"one\.yaml"):
        found(one, two).select("same")
    assert found(one, three).select("same").file == three


def test_one_file_named_twice_is_one_file(written: Callable[..., Path]) -> None:
    file = written("one")

    assert found(file, file.parent).select("one").file == file


def test_an_explicit_file_comes_last_and_needs_no_leave(written: Callable[..., Path]) -> None:
    file = written("mine", "host")

    paths = found(explicit=file)

    assert paths.select("host") == sources.Source("host", file, str(file), "given by path")


def test_a_broken_file_goes_by_its_file_name_and_is_told_when_selected(written: Callable[..., Path]) -> None:
    file = written("broken")
    file.write_text("name: [\n", "utf-8")

    paths = found(file, written("one"))

    assert paths.select("one").name == "one"
    with pytest.raises(DescriptionError, match="not valid YAML"):
        paths.select("broken")


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        found().select("nothing")


def test_data_comes_from_inside_the_package_first(tmp_path: Path) -> None:
    (tmp_path / "nbxrt" / "schema").mkdir(parents=True)

    assert sources.data_folder("schema", tmp_path / "nbxrt") == tmp_path / "nbxrt" / "schema"


def test_a_checkout_counts_only_with_our_project_file_beside_the_package(tmp_path: Path) -> None:
    (tmp_path / "nbxrt").mkdir()
    (tmp_path / "schema").mkdir()
    project = tmp_path / "pyproject.toml"

    with pytest.raises(NbxrtError, match="has no folder `schema`"):
        sources.data_folder("schema", tmp_path / "nbxrt")
    project.write_text('[project]\nname = "other"\n', "utf-8")
    with pytest.raises(NbxrtError):
        sources.data_folder("schema", tmp_path / "nbxrt")
    project.write_text('[project]\nname = "nbxrt"\n', "utf-8")
    assert sources.data_folder("schema", tmp_path / "nbxrt") == tmp_path / "schema"


@pytest.mark.checkout
def test_the_contract_and_the_built_in_files_are_read_from_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "nbxrt.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in PACKAGE.rglob("*.py"):
            file.write(path, Path("nbxrt") / path.relative_to(PACKAGE))
        for kind in ("backends", "schema"):
            for data in sources.data_folder(kind).iterdir():
                if data.name.endswith((".yaml", ".json")):
                    file.writestr(f"nbxrt/{kind}/{data.name}", data.read_bytes())
    code = (
        "from nbxrt.catalogue import contract, reading, sources, validation\n"
        "found = sources.find(environment={})\n"
        "for source in found.sources.values():\n"
        "    assert validation.check(reading.read(source.file, source.shown), contract.load()) == ()\n"
        "print(contract.__file__, sorted(found.sources))"
    )
    environment = {**os.environ, "PYTHONPATH": str(archive)}

    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert answer.stdout.split()[0].startswith(str(archive))
    assert str(sorted(sources.find(environment={}).sources)) in answer.stdout
