"""What a runtime tells of its devices: name, place, identity, memory, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import management
from nbxrt.errors import NbxrtError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime


def described(runtime: Runtime, device: int) -> dict[str, Any]:
    """The facts of one device; what cannot be told is empty or None, and `reason` says why it cannot be used.

    The device is made current, and asking for its memory gives it a context: the truth for this process, also where it
    sees a part of a card. Where that fails the management library is asked, which sees the whole card.
    """
    facts: dict[str, Any] = {"index": device, "name": "", "pci": "", "uuid": "", "free": None, "total": None}
    for key, operation in (("name", "device_name"), ("pci", "pci_bus_id"), ("uuid", "device_uuid")):
        value, _why = _asked(getattr(runtime, operation), device)
        facts[key] = management.uuid_text(value) if isinstance(value, bytes) else value or ""
    monitor, _why = _asked(management.monitor, runtime, device)
    facts["is_part"] = monitor is not None and monitor.is_part
    memory, reason = _asked(_memory, runtime, device)
    facts["is_usable"] = memory is not None
    facts["reason"] = reason
    if memory is None:
        memory, _why = _asked(_memory_by_monitor, runtime, monitor)
    if memory is not None:
        facts["free"], facts["total"] = memory
    return facts


def why_none(runtime: Runtime) -> str:
    """Why the runtime counts no device, in its library's words; empty when it does not say."""
    error = runtime.why_no_device()
    return error.summary if error is not None else _asked(runtime.mem_get_info)[1]


def _memory(runtime: Runtime, device: int) -> tuple[int, int]:
    runtime.set_device(device)
    return runtime.mem_get_info()


def _memory_by_monitor(runtime: Runtime, monitor: management.Monitor | None) -> tuple[int, int] | None:
    if monitor is None or not monitor.is_sure:
        return None
    total = runtime.monitor_memory_total(monitor.handle)
    return total - runtime.monitor_memory_used(monitor.handle), total


def _asked(question: Callable[..., Any], *about: Any) -> tuple[Any, str]:
    """(the answer, "") or (None, why not in one line)."""
    try:
        return question(*about), ""
    except NbxrtError as error:
        return None, error.summary
