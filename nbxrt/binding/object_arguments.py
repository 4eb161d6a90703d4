"""Kernels' arguments that are objects: an address is given as the object that it lies in, or as a slice of that."""

import sys

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.states import State


class ObjectArguments:
    """Arguments of devices to which an address is nothing."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        #: By the model of device.
        self._set = binder.parts_by_model("kernels", "set_buffer")
        self._slice, self._unslice, self._alignment = (
            binder.optional_part("kernels", part) for part in ("slice", "unslice", "slice_alignment")
        )
        #: Of which the beginning of a slice is a multiple, in bytes, by device.
        self._alignments: dict[State, int] = {}

    def are_for(self, state: "State") -> bool:
        """Whether the device takes objects."""
        return state.model in self._set or "" in self._set

    def places(self, state: "State", given: "list[tuple[str, Any]]") -> "list[tuple[str, Any]]":
        """The arguments, each address among them as its place. Raises: ArgumentValueError."""
        return [self._place(state, index, *each) for index, each in enumerate(given)]

    def _place(self, state: "State", index: int, kind: str, value: "Any") -> "tuple[str, Any]":
        """An address as the object that it lies in, the offset there and the bytes that follow; 0 stands for none.

        Raises: ArgumentValueError for memory that is not there, or that the device does not take as an argument.
        """
        if kind != "pointer":
            return kind, value
        address = number(value)
        if not address:
            return "buffer", (0, 0, 0)
        block = self._binder.addresses.find(address, "launch_kernel")
        if block.state is not state:
            raise foreign(index, block.state, state)
        offset = block.offset_of(address)
        if offset and self._alignment is not None:
            if state not in self._alignments:
                self._alignments[state] = self._alignment(state) // 8
            alignment = self._alignments[state]
            if offset % alignment:
                raise errors.ArgumentValueError(
                    f"`launch_kernel`: argument {index} begins {offset} bytes inside its allocation, and "
                    f"{self._binder.description['title']} takes there multiples of {alignment}",
                    hint="copy it to the start of an allocation",
                    operation="launch_kernel", parameter="arguments",
                )  # fmt: skip
        return "buffer", (block.target, offset, block.address + block.nbytes - address)

    def slices(self, state: "State") -> "Slices":
        """What makes slices for one launch."""
        return Slices(state, self._slice, self._unslice)

    def set(self, state: "State", function: int, encoder: int, index: int, target: int, offset: int) -> None:
        """Set an argument that is an object and an offset."""
        part = self._set.get(state.model) or self._set[""]
        part(state, function, encoder, index, target, offset)


class Slices:
    """Parts of objects that are arguments of one launch, for an API that takes no offset beside an object.

    They go when the launch was given to the device, which keeps what it works on.
    """

    def __init__(self, state: "State", make: "Any", release: "Any") -> None:
        self._state = state
        self._make = make
        self._release = release
        self._made: dict[tuple[int, int], int] = {}

    def instead(self, kind: str, value: "Any") -> "tuple[str, Any]":
        """An argument that is an object and an offset, with a slice in place of the two where there is an offset.

        The same part of an object twice is one slice.
        """
        if kind != "buffer":
            return kind, value
        target, offset, nbytes = value
        if not offset or self._make is None:
            return kind, (target, offset)
        if (target, offset) not in self._made:
            self._made[target, offset] = self._make(self._state, target, offset, nbytes)
        return kind, (self._made[target, offset], 0)

    def release(self) -> None:
        """Give every slice up."""
        for made in self._made.values():
            self._release(self._state, made)


def foreign(index: int, home: "State", state: "State") -> errors.ArgumentValueError:
    """The error for an argument that is memory of another device."""
    said = f"argument {index} is memory of device {home.index}, and the stream is of device {state.index}"
    return errors.ArgumentValueError(f"`launch_kernel`: {said}", operation="launch_kernel", parameter="arguments")


def number(value: "Any") -> int:
    """The unsigned integer that a ctypes value holds, whatever its class: also one that came as bytes."""
    return int.from_bytes(bytes(value), sys.byteorder)
