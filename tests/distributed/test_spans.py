"""What an array tells a collective, whatever library it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt import errors
from nbxrt.distributed.spans import HOST, Spans
from nbxrt.objects.device import as_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation

pytestmark = [pytest.mark.needs("cc"), pytest.mark.needs("numpy")]


@pytest.fixture
def spans(simulate: Callable[..., Simulation]) -> Iterator[Spans]:
    with nbxrt.use(simulate("cuda", "12.9").open()) as runtime:
        yield Spans(runtime, as_device(0, runtime))


def test_an_array_of_numpy_is_host_memory(spans: Spans) -> None:
    import numpy as np

    array = np.zeros((3, 5), np.float32)
    address = array.ctypes.data

    assert spans.read(array) == (address, 15, "float32", HOST, True)
    assert spans.read(array[1], "uint8") == (address + 20, 20, "uint8", HOST, True)
    array.flags.writeable = False
    assert spans.read(array)[4] is False


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (lambda array: array[:, 1], "not contiguous"),
        (lambda array: array.astype("<c16"), "`<c16` is no element type of collectives"),
        (lambda array: array.astype(">f4"), "`>f4` is no element type of collectives"),
        (lambda array: array.tolist(), "a collective takes an array, not list"),
    ],
)
def test_what_a_collective_cannot_take_is_refused(spans: Spans, part: Any, said: str) -> None:
    import numpy as np

    with pytest.raises(errors.ArgumentError, match=said):
        spans.read(part(np.zeros((3, 5), np.float32)))


def test_arrays_and_buffers_of_nbxrt_say_where_they_are(spans: Spans) -> None:
    array, buffer = nbxrt.empty((2, 3), "bfloat16"), nbxrt.Buffer(10)

    assert spans.read(array) == (array.ptr, 6, "bfloat16", 0, True)
    assert spans.read(buffer) == (buffer.ptr, 10, "uint8", 0, True)
    assert spans.read(buffer, "float16") == (buffer.ptr, 5, "float16", 0, True)
    assert spans.read(nbxrt.Buffer(8, kind="pinned"))[3] == HOST
    with pytest.raises(errors.ArgumentValueError, match="10 bytes are no whole number of float32"):
        spans.read(buffer, "float32")


def test_an_array_interface_of_the_vendor_tells_all(spans: Spans) -> None:
    class Array:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {"data": (4096, True), "shape": (2, 3), "typestr": "<i4", "version": 3}

    assert spans.read(Array()) == (4096, 6, "int32", None, False)


def test_a_tensor_tells_by_its_methods(spans: Spans) -> None:
    class Tensor:
        dtype: Any = "torch.bfloat16"

        def data_ptr(self) -> int:
            return 4096

        def numel(self) -> int:
            return 6

        def is_contiguous(self) -> bool:
            return True

        def get_device(self) -> int:
            return 1

    assert spans.read(Tensor()) == (4096, 6, "bfloat16", 1, True)


def test_the_current_stream_is_meant_where_none_is_given(spans: Spans) -> None:
    stream = nbxrt.Stream()

    assert (spans.stream(None), spans.stream(77), spans.stream(stream)) == (0, 77, stream.handle)
    with stream:
        assert spans.stream(None) == stream.handle
