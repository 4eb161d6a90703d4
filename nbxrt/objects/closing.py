"""How what a process made is released: by a close, or with its object, and never by a forked child."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from nbxrt.objects.device import Device

#: Which process this is, in a cell: a forked child is another one, and releases nothing of its parent.
process = [1]


def _is_forked() -> None:
    process[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_is_forked)


class Closing:
    """What is released once: by `close`, after a `with` block, or with the object by its finalizer.

    A class of it has `_process`, the number of the process that made it, which is there until it is closed; and
    `_close`, which releases by `on` what is there.
    """

    __slots__ = ()

    device: "Device"
    _process: int

    def close(self) -> None:
        """Release it; closing it again does nothing, also from several threads at once. Raises: DeviceError."""
        try:
            del self._process  # one thread alone can
        except AttributeError:
            return
        self._close(self.device.on)

    def _close(self, on: "Callable[..., object]") -> None:
        raise NotImplementedError

    def __del__(self, _is_over: "Callable[[], bool]" = sys.is_finalizing, _now: "list[int]" = process) -> None:
        try:
            if self._process == _now[0] and not _is_over():
                self._close(self.device.release)
        except Exception:  # noqa: BLE001, S110  # nothing raises from a finalizer; also one that is closed or was never made
            pass

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self.close()
