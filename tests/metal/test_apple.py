"""Every message of the file against what Apple says of it: two wheels for macOS, read as text and never imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from apple_metadata import MetalCpp, PyObjC
from nbxrt import descriptions
from nbxrt.catalogue import encodings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.needs("apple-wheels"), pytest.mark.checkout]

#: Encodings in which the metadata of pyobjc differs from the file, and why the file is right.
REVIEWED = {
    "status": ("q", "of the command buffer it is an NSUInteger; the metadata has one entry for all classes"),
}


@pytest.fixture(scope="session")
def pyobjc(wheels: Path) -> PyObjC:
    return PyObjC(wheels / "pyobjc-metal" / "Metal" / "_metadata.py")


@pytest.fixture(scope="session")
def metal_cpp(wheels: Path) -> MetalCpp:
    return MetalCpp(wheels / "metal-cpp" / "mlx" / "include" / "metal_cpp")


@pytest.fixture(scope="session")
def messages() -> list[tuple[str, str, str]]:
    """Class, selector and encoding of every message of the file."""
    return list(_messages(descriptions.load("metal")["messages"]))


def _messages(described: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for owner, methods in described.items():
        for selector, (encoding, _signature, _optional) in methods.items():
            yield owner, selector, encoding


def _pyobjc_faults(messages: list[tuple[str, str, str]], pyobjc: PyObjC) -> list[str]:
    faults = []
    for owner, selector, encoding in messages:
        said = pyobjc.encodings.get(selector)
        if said in (None, REVIEWED.get(selector, ("", ""))[0]) or "?" in str(said).replace("@?", ""):
            continue  # classes of Foundation, and those without metadata, are for the C++ headers to judge
        if said != encoding:
            faults.append(f"-[{owner} {selector}] is {said}, and {encoding} in the file")
    return faults


def _metal_cpp_faults(messages: list[tuple[str, str, str]], metal_cpp: MetalCpp) -> list[str]:
    faults = []
    for owner, selector, encoding in messages:
        said = metal_cpp.encodings.get((owner, selector))
        if said is None:
            faults.append(f"{owner} has no {selector}")
        elif said != encoding:
            faults.append(f"-[{owner} {selector}] is {said}, and {encoding} in the file")
    return faults


def test_every_encoding_is_the_one_of_pyobjc(messages: list[tuple[str, str, str]], pyobjc: PyObjC) -> None:
    assert _pyobjc_faults(messages, pyobjc) == []


def test_most_messages_of_metal_are_known_to_pyobjc(messages: list[tuple[str, str, str]], pyobjc: PyObjC) -> None:
    unknown = {selector for owner, selector, _said in messages if owner.startswith("MTL")} - {*pyobjc.encodings}

    assert unknown <= {"setLanguageVersion:", "setMathMode:", "setFastMathEnabled:"}


def test_every_message_belongs_to_its_class_and_has_its_types_in_apples_headers(
    messages: list[tuple[str, str, str]], metal_cpp: MetalCpp
) -> None:
    assert _metal_cpp_faults(messages, metal_cpp) == []


@pytest.mark.parametrize(
    ("planted", "by_pyobjc", "by_headers"),
    [
        (("MTLDevice", "newBufferWithLenght:options:", "@QQ"), 0, 1),  # misspelt
        (
            ("MTLBlitCommandEncoder", "fillBuffer:range:value:", "v@{_NSRange=QQ}Q"),
            1,
            1,
        ),  # an argument of another width
        (("MTLDevice", "contents", "^v"), 0, 1),  # of another class
        (("MTLDevice", "supportsFamily:", "BQ"), 1, 1),  # the other sign
    ],
)
def test_a_planted_mistake_is_found(
    planted: tuple[str, str, str], by_pyobjc: int, by_headers: int, pyobjc: PyObjC, metal_cpp: MetalCpp
) -> None:
    assert len(_pyobjc_faults([planted], pyobjc)) == by_pyobjc
    assert len(_metal_cpp_faults([planted], metal_cpp)) == by_headers


def test_functions_that_make_or_copy_give_ownership(pyobjc: PyObjC) -> None:
    assert {"MTLCopyAllDevices", "MTLCreateSystemDefaultDevice"} <= pyobjc.owning


def test_codes_of_a_command_buffers_error_are_apples(pyobjc: PyObjC) -> None:
    kinds = descriptions.load("metal")["libraries"]["runtime"]["status"]["kinds"]
    numbers = {name: pyobjc.enums[f"MTLCommandBufferError{name}"] for name in ("OutOfMemory", "InvalidResource")}

    assert kinds["out_of_memory"] == (numbers["OutOfMemory"],)
    assert kinds["invalid_value"] == (numbers["InvalidResource"],)
    assert kinds["device_unavailable"] == (pyobjc.enums["MTLCommandBufferErrorDeviceRemoved"],)


def test_ownership_by_name_is_what_the_headers_say_of_metal(metal_cpp: MetalCpp) -> None:
    given = [s for (owner, s), said in metal_cpp.encodings.items() if owner == "MTLDevice" and said.startswith("@")]
    owned = [selector for selector in given if encodings.gives_ownership(selector, "object")]

    assert {"newBufferWithLength:options:", "newCommandQueue", "newSharedEvent"} <= set(owned)
    assert not {"name", "architecture"} & set(owned)
