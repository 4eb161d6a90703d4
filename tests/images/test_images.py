"""Real layouts of real machines: which copy of each library is chosen, and what the report says of the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import imaging
from nbxrt import descriptions, presence
from nbxrt.cli.libraries import report

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries and the layouts of Linux"),
    pytest.mark.needs("cc"),
]

IMAGES = imaging.images()


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
def test_an_image_gives_the_choice_and_the_sentences_that_it_says(image: dict[str, Any], tmp_path: Path) -> None:
    machine = imaging.build(image, tmp_path)
    backend = image.get("backend", "cuda")

    found = report(backend, machine)

    there, why = presence.device_there(descriptions.built_in(backend), machine)
    told = "\n".join([*lines(found), f"device: {why}"]).replace(str(tmp_path), "")
    chosen = {each["role"]: choice(each).replace(str(tmp_path), "") for each in found["libraries"]}
    assert {role: chosen[role] for role in image["chooses"]} == image["chooses"], told
    for sentence in image["says"]:
        assert sentence in told
    if "device" in image:
        assert there is {True: True, False: False, "unknown": None}[image["device"]]


def test_there_are_enough_images() -> None:
    assert len(IMAGES) >= 40


def choice(library: dict[str, Any]) -> str:
    """The path of a library, or `none` or `broken`."""
    return {"chosen": library["path"], "missing": "none"}.get(library["status"], library["status"])


def lines(found: dict[str, Any]) -> list[str]:
    """The report as lines without columns."""
    said = [f"warning: {each}" for each in found["warnings"]]
    for library in found["libraries"]:
        said.append(f"{library['role']}: {library['says']}")
        said += [f"{each['step']} {each['verdict']} {each['path']}: {each['reason']}" for each in library["candidates"]]
        said.append(f"hint: {library['hint']}")
    return said
