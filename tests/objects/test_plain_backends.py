"""Objects on a backend that offers only what every backend must."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nbxrt
import toys
from nbxrt.objects.state import state_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.runtime import Runtime

pytestmark = [
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform == "win32", reason="the toy is compiled on Linux and macOS"),
]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_force: Callable[[Runtime], Runtime]) -> Runtime:
    return in_force(toys.open_toy(tmp_path, monkeypatch))


def test_bytes_are_copied_and_filled(toy: Runtime) -> None:
    buffer, other, out = nbxrt.Buffer(8), nbxrt.Buffer(8), bytearray(8)

    buffer.fill(3)
    buffer[4:].copy_from(b"abcd")
    other.copy_from(buffer, stream=nbxrt.current_stream())
    other.copy_to(out)

    assert bytes(out) == b"\3\3\3\3abcd"


def test_sources_are_kept_until_somebody_waits(toy: Runtime) -> None:
    stream, buffer = nbxrt.Stream(), nbxrt.Buffer(8)

    for _each in range(5):
        buffer.copy_from(bytearray(8), stream=stream)
    before = len(state_of(toy).keeper)
    stream.sync()

    assert (before, len(state_of(toy).keeper)) == (5, 0)


def test_what_is_not_offered_is_named(toy: Runtime) -> None:
    uses: list[Callable[[], object]] = [
        lambda: nbxrt.Stream(non_blocking=True),
        lambda: nbxrt.Stream(priority=-1),
        lambda: nbxrt.Event(blocking=True),
        lambda: nbxrt.Stream().query(),
        lambda: nbxrt.Buffer(8, kind="pinned"),
        lambda: nbxrt.Buffer(8, kind="managed"),
        lambda: nbxrt.Device(0).name,
        lambda: nbxrt.Device(0).memory_info,
        lambda: nbxrt.Stream().capture().__enter__(),
    ]
    for use in uses:
        with pytest.raises(nbxrt.CapabilityError, match="the toy has none"):
            use()


def test_devices_without_peers_stage_their_copies(toy: Runtime) -> None:
    assert not nbxrt.Device(0).can_access(1)
    assert nbxrt.Device(0).copy_path(1) == "staged"


def test_the_host_sees_what_the_buffer_protocol_gives_it(host: Runtime) -> None:
    buffer, array = nbxrt.Buffer(4), nbxrt.zeros((2, 2), "uint8")

    buffer.__buffer__(0)[:] = b"abcd"
    array.__buffer__(0)[0, 1] = 9

    assert buffer.tobytes() == b"abcd"
    assert array.numpy().tolist() == [[0, 9], [0, 0]]
    with pytest.raises(BufferError, match="or it is not contiguous"):
        array.T[:1].__buffer__(0)
    if sys.version_info >= (3, 12):
        assert bytes(memoryview(buffer)) == b"abcd"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_numpy_sees_the_elements_whichever_protocol_it_asks_first(
    host: Runtime, dtype: str, shape: tuple[int, ...]
) -> None:
    """From Python 3.12 on it is the buffer protocol, and the array interface before."""
    array = nbxrt.zeros(shape, dtype)

    seen = [np.asarray(array)]
    if dtype not in ("float16", "complex64") and shape != (2, 0, 3):
        seen.append(np.asarray(array.__buffer__(0)))

    assert [(each.dtype, each.shape) for each in seen] == [(np.dtype(dtype), shape)] * len(seen)


def test_elements_that_the_buffer_protocol_has_no_word_for_are_not_taken_for_bytes(host: Runtime) -> None:
    for array in (nbxrt.zeros(3, "bfloat16"), nbxrt.zeros((2, 0)), nbxrt.zeros(2, "float8_e5m2")):
        with pytest.raises(BufferError, match=r"the buffer protocol has no word for DeviceArray[^$]*hint: `\.numpy"):
            array.__buffer__(0)
    with pytest.raises(TypeError, match="is not made a NumPy array in passing"):
        np.asarray(nbxrt.zeros(3, "bfloat16"))
