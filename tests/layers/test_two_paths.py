"""A built-in backend is the same by its compiled module and by its YAML: description and generated functions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt import descriptions
from nbxrt.binding.machine import Machine
from nbxrt.binding.source import source_of
from nbxrt.catalogue.sources import data_folder
from nbxrt.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nbxrt.simulation import Simulation

BUILT_IN = list(descriptions.INDEX)
OPERATIONS = list(descriptions.contract()["operations"])


def by_yaml(name: str, folder: Path) -> dict[str, Any]:
    """The built-in file read as a user's, from a copy."""
    file = folder / f"{name}.yaml"
    file.write_bytes((data_folder("backends") / f"{name}.yaml").read_bytes())
    return dict(descriptions.load(file))


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_compiled_description_is_that_of_the_yaml(name: str, tmp_path: Path) -> None:
    compiled, read = dict(descriptions.built_in(name)), by_yaml(name, tmp_path)

    assert (compiled.pop("file"), read.pop("file")) == (f"backends/{name}.yaml", str(tmp_path / f"{name}.yaml"))
    assert read.pop("layers") == (str(tmp_path / f"{name}.yaml"),)
    for operation in OPERATIONS:
        assert compiled["operations"].get(operation) == read["operations"].get(operation), operation
        assert compiled["absent"].get(operation) == read["absent"].get(operation), operation
    assert compiled == read


@pytest.mark.parametrize("name", BUILT_IN)
def test_extending_a_backend_and_saying_nothing_more_changes_no_operation(name: str, tmp_path: Path) -> None:
    file = tmp_path / "same.yaml"
    file.write_text(f"contract: 1\nextends: {name}\n", "utf-8")

    extended = descriptions.load(file)

    compiled = descriptions.built_in(name)
    for operation in OPERATIONS:
        assert (
            extended["operations"].get(operation, (0, None))[1] == compiled["operations"].get(operation, (0, None))[1]
        )
    assert {key: extended[key] for key in ("structs", "enums", "needs", "presence", "triton", "visibility")} == {
        key: compiled[key] for key in ("structs", "enums", "needs", "presence", "triton", "visibility")
    }


def texts(description: Mapping[str, Any], machine: Machine) -> dict[str, str]:
    """The source of every operation's function; empty for one that is not offered."""
    runtime = Runtime(description, descriptions.contract(), machine)
    found = {}
    for operation in OPERATIONS:
        try:
            found[operation] = source_of(runtime._binder.function(operation))
        except nbxrt.CapabilityError as error:
            found[operation] = str(error).replace(description["file"], "FILE")
    return found


def test_the_generated_functions_of_host_are_equal(tmp_path: Path) -> None:
    compiled, read = descriptions.built_in("host"), by_yaml("host", tmp_path)

    assert texts(compiled, Machine()) == texts(read, Machine())


@pytest.mark.needs("cc")
@pytest.mark.parametrize("name", ["cuda", "hip"])
def test_the_generated_functions_of_a_vendor_are_equal(
    name: str, tmp_path: Path, simulate: Callable[..., Simulation]
) -> None:
    machine = Machine(environ={**os.environ, **simulate(name).environment()})
    compiled, read = descriptions.built_in(name), by_yaml(name, tmp_path)

    mine = texts(compiled, machine)

    assert sum(text.startswith("def ") for text in mine.values()) > len(OPERATIONS) / 2
    assert mine == texts(read, machine)
