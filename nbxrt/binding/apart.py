"""Operations where several devices are here that are called differently, or know nothing of each other's memory.

Which device a call is about follows from what it names. Memory of another device than the stream's, or than the current
one, is its own device's to work on; a copy between two goes through the host.
"""

import ctypes

from nbxrt.binding.addresses import is_minted
from nbxrt.binding.generating import policy_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Stream
    from nbxrt.binding.states import State

#: The operations that copy, and what does the same as one that is ordered on a stream, when that has finished.
COPIES = ("memcpy", "memcpy_async")
WHEN_FINISHED = {"memcpy_async": "memcpy", "memset_async": "memset"}
#: Bytes of the host's that a copy between two devices goes through at a time.
ROOM = 64 << 20


def function(binder: "Binder", operation: str, made: "Mapping[str, Callable[..., Any]]") -> "Callable[..., Any]":
    """The function of an operation, from those for each model of device; an empty model stands for all others."""
    return policy_function(binder, operation, Apart(binder, operation, made).call)


class Apart:
    """One operation on several devices."""

    def __init__(self, binder: "Binder", operation: str, made: "Mapping[str, Callable[..., Any]]") -> None:
        self._binder = binder
        self._operation = operation
        self._made = made
        kinds = [kind for _name, kind, *_rest in binder.contract["operations"][operation]["takes"]]
        self._addresses = [at for at, kind in enumerate(kinds) if kind == "address"]
        self._device = kinds.index("device") if "device" in kinds else -1
        by_queues = "stream" in kinds and "queues" in binder.description["policies"]
        self._stream = kinds.index("stream") if by_queues else -1

    def call(self, *given: "Any") -> "Any":
        if self._device >= 0:
            return self._of(self._binder.listed().numbered(given[self._device]))(*given)
        devices = self._binder.listed()
        homes = self._homes(given)
        stream: Stream | None = self._binder.policy("queues").find(given[self._stream]) if self._stream >= 0 else None
        here: State = self._binder.state() if stream is None else stream.state
        if len(homes) > 1 and self._operation in COPIES:
            return self._through_host(given[0], given[1], given[2], homes, stream)
        home = homes[0] if homes else here
        if devices.share_memory(home, here):
            return self._of(home)(*given)
        if stream is None:
            return self._as_current(home, given)
        if self._operation in WHEN_FINISHED:
            self._binder.policy("queues").drain(stream)
            return self._binder.own(WHEN_FINISHED[self._operation])(*given[: self._stream])
        return self._of(home)(*given)

    def _of(self, state: "State") -> "Callable[..., Any]":
        made = self._made.get(state.model) or self._made.get("")
        if made is None:
            raise self._binder.failures.not_for_model(self._operation, {state.model})
        return made

    def _homes(self, given: "tuple[Any, ...]") -> "list[State]":
        """The devices whose memory a call names, one for those that share theirs; the host's own has none."""
        table = self._binder.addresses
        found: list[State] = []
        for address in [given[at] for at in self._addresses]:
            block = table.find(address, self._operation) if is_minted(address) else table.look(address)
            if block is not None and not any(self._binder.listed().share_memory(block.state, each) for each in found):
                found.append(block.state)
        return found

    def _as_current(self, home: "State", given: "tuple[Any, ...]") -> "Any":
        here = self._binder.listed().here
        before, here.state = self._binder.state(), home
        try:
            return self._of(home)(*given)
        finally:
            here.state = before

    def _through_host(self, dst: int, src: int, nbytes: int, homes: "list[State]", stream: "Stream | None") -> None:
        """Copy between two devices when both have finished, and what the stream had to do before."""
        for address in (dst, src):
            self._binder.addresses.within(address, nbytes, self._operation)
        queues = self._binder.policy("queues")
        if stream is not None:
            queues.drain(stream)
        for home in homes:
            queues.drain_all(home)
        copy = self._binder.own("memcpy")
        room = ctypes.create_string_buffer(min(nbytes, ROOM))
        where = ctypes.addressof(room)
        for done in range(0, nbytes, ROOM):
            part = min(ROOM, nbytes - done)
            copy(where, src + done, part, "device_to_host")
            copy(dst + done, where, part, "host_to_device")
