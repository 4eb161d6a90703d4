"""The bytes of a kernel's arguments: what C makes of each value, and where each lies."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbxrt
from nbxrt.launch import packing, signature, versions
from nbxrt.runtime import Runtime
from nbxrt.simulation import Simulation

FACTS = versions.KNOWN[3, 9]
INTEGERS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}


@pytest.fixture
def cuda(simulate: Callable[..., Simulation]) -> Runtime:
    return simulate("cuda", "12.9").open()


@pytest.mark.needs("cc")
def test_values_lie_in_cells_of_their_own_before_the_configuration(cuda: Runtime) -> None:
    call, attributes = cuda.launches.of({})
    fixed = {"block": packing.grid_bytes(128, 1, 1), "shared_memory": struct.pack("=I", 64)}
    slots = packing.Slots(call, ["*fp32", "i1", "fp64", "i32"], 2, attributes, fixed=fixed)

    buffer, configuration, _arguments = slots.fresh()
    values = (2**40, -1, 1.5, -7)
    written = {"grid": packing.grid_bytes(3, 2, 1), "stream": 2**33}
    struct.pack_into(slots.format, buffer, slots.begin, *values, *(written.get(each, each) for each in slots.order))

    assert [buffer.raw[at : at + 8].hex() for at in slots.offsets] == [
        "0000000000010000", "ff00000000000000", "000000000000f83f", "f9ffffff00000000",
    ]  # fmt: skip
    assert configuration.value % 8 == 0
    assert ctypes.string_at(configuration.value, 40) == struct.pack("=7I4xQ", 3, 2, 1, 128, 1, 1, 64, 2**33)


@given(st.sampled_from(sorted(INTEGERS)), st.integers(-(2**63), 2**64 - 1))
def test_an_integer_wraps_as_in_c(kind: str, value: int) -> None:
    packed = struct.pack("=" + packing.FORMATS[kind], packing.converted(kind, value))

    assert int.from_bytes(packed, "little") == value % 2 ** INTEGERS[kind]


@given(st.floats(width=32))
def test_a_bfloat16_is_the_upper_half_of_a_float(value: float) -> None:
    assert packing.bfloat16(value) == struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def test_a_float_that_is_too_large_is_infinite() -> None:
    assert packing.converted("fp32", -1e300) == float("-inf")
    assert packing.bfloat16(1e300) == 0x7F80


@pytest.mark.parametrize("kind", ["fp8", "complex64", "", "u128"])
def test_an_unknown_type_is_refused(kind: str) -> None:
    with pytest.raises(nbxrt.ArgumentTypeError, match="is no type of a kernel's argument"):
        packing.format_of(kind)


def test_a_pointer_is_an_address_or_has_one() -> None:
    class Array:
        def data_ptr(self) -> int:
            return 4096

    assert [packing.address_of(value) for value in (None, 16, Array())] == [0, 16, 4096]
    with pytest.raises(TypeError, match="a pointer is wanted, not str"):
        packing.address_of("x")


NESTED = ("*fp32", ("i32", ("constexpr", "fp32")), "constexpr", "i64")


def test_constants_are_dropped_and_tuples_flattened() -> None:
    values = ("address", (3, (1, 2.5)), 64, 9)

    assert signature.flattened(NESTED, FACTS, ()) == ["*fp32", "i32", "fp32", "i64"]
    assert signature.flattened_values(NESTED, values, FACTS, ()) == ["address", 3, 2.5, 9]


def test_a_tuple_of_another_length_is_refused() -> None:
    with pytest.raises(nbxrt.ArgumentTypeError, match="a tuple of 2 is wanted"):
        signature.flattened_values([("i32", "i32")], [(1,)], FACTS, ())


@pytest.mark.parametrize(("version", "flags"), [((3, 6), 1), ((3, 9), 2)])
def test_a_tensor_descriptor_is_passed_in_parts(version: tuple[int, int], flags: int) -> None:
    class Descriptor:
        base, shape, strides, padding, round_f32_to_tf32 = "base", [8, 4], [4, 1], "nan", False

    facts = versions.KNOWN[version]
    types = signature.flattened(["tensordesc<fp16[8, 4]>"], facts, ())
    values: list[Any] = signature.flattened_values(["tensordesc<fp16[8, 4]>"], [Descriptor()], facts, ())

    assert types == ["*fp16", "i64", "i64", "i64", "i64", *["i1"] * flags, "i32", "i32", "i64", "i64"]
    assert values == ["base", 8, 4, 4, 1, *[True, False][:flags], 8, 4, 4, 1]
