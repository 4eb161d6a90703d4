"""An API of objects that is nobody's: its file is verified, simulated, and passes the conformance suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from nbxrt import conformance, verifying
from nbxrt.verifying import recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

HERE = Path(__file__).with_name("cards")
HEADER = HERE / "cards.h"

#: Cards that are in a list which is given up, and of which one comes first.
LISTED = {
    "levels": [
        {
            "as": "card",
            "listing": [{"call": "cardList", "args": [{"out": "list", "type": "pointer"}]}],
            "count": [{"call": "cardListCount", "args": ["list"], "returns": {"result": "count", "type": "uint"}}],
            "at": [{"call": "cardListAt", "args": ["list", "index"], "returns": {"pointer": "card"}}],
            "listed": [{"call": "cardListEnd", "args": ["list"]}],
            "release": [{"call": "cardRelease", "args": ["card"]}],
        }
    ],
    "default": {
        "steps": [{"call": "cardFirst", "args": [{"out": "card", "type": "pointer"}]}],
        "identity": [{"call": "cardNumber", "args": ["card", {"out": "identity", "type": "uint64"}]}],
    },
}


def _file(folder: Path, **changes: Any) -> Path:
    file = folder / "cards.yaml"
    data = yaml.safe_load((HERE / "cards.yaml").read_text("utf-8")) | changes
    file.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
    return file


@pytest.mark.tier("all")
@pytest.mark.needs("cxx")
def test_its_simulation_has_the_headers_signatures_and_conforms(
    simulate: Callable[..., Simulation], tmp_path: Path
) -> None:
    file = _file(tmp_path)
    result = verifying.verify(file, headers=[HEADER])
    recording.keep(tmp_path / "signatures" / "cards.json", result)

    simulation = simulate(file)
    report = conformance.run(simulation.open())

    assert result.faults == ()
    assert set(simulation.symbols) == simulation.from_headers
    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.counts["works"] > 40


@pytest.mark.parametrize("devices", [{}, {"devices": LISTED}], ids=["one by one", "a list"])
def test_devices_are_listed_by_steps(simulate: Callable[..., Simulation], tmp_path: Path, devices: Any) -> None:
    simulation = simulate(_file(tmp_path, **devices), devices=3)
    runtime = simulation.open()

    names = [runtime.device_name(device) for device in range(runtime.device_count())]
    runtime.set_device(2)
    runtime.free(runtime.malloc(64))
    runtime._binder.release()

    assert names == [f"Simulated device {device}" for device in range(3)]
    assert simulation.ledger() == []
    assert {call.device for call in simulation.log() if call.operation == "malloc"} == {2}


@pytest.mark.tier("all")
@pytest.mark.needs("cxx")
def test_verifying_asks_about_the_steps_that_list_devices(tmp_path: Path) -> None:
    header = tmp_path / "cards.h"
    header.write_text(HEADER.read_text("utf-8").replace("cardGet(int index, ", "cardGet(long index, "), "utf-8")

    result = verifying.verify(_file(tmp_path), headers=[header])

    assert [row.subject for row in result.faults] == ["devices"]
