"""Host memory of the caller's as `transfers` reaches it: an object of the whole pages around it."""

import mmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt import errors
    from nbxrt.binding.binder import Binder


class WrappedPages:
    """Host memory of the caller's, made an object that the device reaches: whole pages around it."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._table = binder.addresses
        self._registered: set[int] = set()
        self._wrap, self._unwrap = (binder.optional_part("transfers", part) for part in ("wrap", "unwrap"))

    def host_register(self, address: int, nbytes: int) -> None:
        if self._table.look(address) is not None or self._table.look(address + nbytes - 1) is not None:
            raise self._failure("host_register", "already_registered", address=address, nbytes=nbytes)
        if self._wrap is None or self._unwrap is None:
            raise self._binder.failures.lacks_part("transfers", "wrap" if self._wrap is None else "unwrap")
        state = self._binder.state()
        skipped = address % mmap.PAGESIZE
        length = -(-(skipped + nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        target = self._wrap(state, address - skipped, length)
        self._table.add(address, nbytes, target, state, "host", skipped)
        self._registered.add(address)

    def host_unregister(self, address: int) -> None:
        if address not in self._registered:
            raise self._failure("host_unregister", "not_registered", address=address)
        self._registered.discard(address)
        _nbytes, target, state, _memory, _offset = self._table.remove(address, "host_unregister")
        assert self._unwrap is not None  # noqa: S101  # what was registered was wrapped
        try:  # nothing of the device may touch the pages once they are the caller's alone
            self._binder.policy("queues").drain_all(state)
        finally:
            self._unwrap(state, target)

    def _failure(self, operation: str, kind: str, **given: "Any") -> "errors.DeviceError":
        library = self._binder.library("runtime")
        code = (library.codes(kind) or (0,))[0]
        return library.failure(code, operation, "the address table", given, kind=kind)
