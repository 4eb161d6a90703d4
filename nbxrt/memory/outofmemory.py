"""The truth about out of memory: who holds what of a device, and the one thing to do next."""

from nbxrt import errors, management
from nbxrt.processlist import DeviceProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nbxrt.memory.policies import Policy

MIB = 1 << 20
#: A process of which the management library knows no number.
_NOT_REPORTED = 2**64 - 1


def explained(
    policy: "Policy", requested: int, cause: errors.OutOfMemoryError, failed: "Sequence[Exception]" = ()
) -> errors.OutOfMemoryError:
    """The error for a request that could not be met, with everything that is known of the device as attributes.

    `failed` is what functions raised that should have freed memory.
    """
    facts = _facts(policy, requested)
    lines = [
        f"{_mib(requested)} were requested and could not be had on device {policy.home.device}",
        _said_of_device(facts),
        f"  this account holds {_mib(facts['allocated'])} of {_mib(facts['reserved'])} reserved; the largest free "
        f"block is {_mib(facts['largest_free'])}, and {facts['fragmentation']:.0%} of what is free is in smaller ones",
        *_said_of_processes(facts),
        *(f"  a reclaim hook raised {type(each).__name__}: {each}" for each in failed),
        f"  after {cause.summary}",
    ]
    fields = {name: getattr(cause, name) for name in ("operation", "symbol", "library", "code", "name", "text", "kind")}
    return errors.OutOfMemoryError(
        "\n".join(filter(None, lines)),
        hint=_next_step(policy, facts, cause.operation),
        **{**fields, "device": policy.home.device},
        **facts,
    )


def _facts(policy: "Policy", requested: int) -> "dict[str, Any]":
    free, total = _device_memory(policy)
    reserved = policy.tally.reserved
    idle = max(0, reserved - policy.tally.allocated)
    largest = policy.largest_free()
    processes, process_other = _processes(policy, reserved)
    return {
        "requested": requested,
        "free": free,
        "total": total,
        "allocated": policy.tally.allocated,
        "reserved": reserved,
        "limit": policy.tally.limit,
        "largest_free": largest,
        "fragmentation": 1 - largest / idle if idle else 0.0,
        "process_other": process_other,
        "processes": processes,
    }


def _device_memory(policy: "Policy") -> "tuple[int | None, int | None]":
    try:
        free, total = policy.home.run(policy.home.runtime.mem_get_info)
    except errors.NbxrtError:
        return None, None
    return free, total


def _processes(policy: "Policy", reserved: int) -> "tuple[tuple[DeviceProcess, ...], int | None]":
    """The other processes on the device, and what this one has there beside the account; as far as the driver tells."""
    import os  # it is loaded in every Python

    runtime = policy.home.runtime
    try:
        rows = runtime.monitor_processes(management.monitor(runtime, policy.home.device).handle)
    except errors.NbxrtError:
        return (), None
    own = [nbytes for pid, nbytes in rows if pid == os.getpid() and nbytes != _NOT_REPORTED]
    others = [
        DeviceProcess(pid, None if nbytes == _NOT_REPORTED else nbytes) for pid, nbytes in rows if pid != os.getpid()
    ]
    return tuple(others), max(0, sum(own) - reserved) if own else None


def _said_of_device(facts: "dict[str, Any]") -> str:
    limit = f"; the limit is {_mib(facts['limit'])}" if facts["limit"] is not None else ""
    if facts["total"] is None:
        return f"  the device does not tell what it has free{limit}"
    return f"  the device has {_mib(facts['free'])} free of {_mib(facts['total'])}{limit}"


def _said_of_processes(facts: "dict[str, Any]") -> "Sequence[str]":
    lines = []
    if facts["process_other"]:
        lines.append(f"  this process has {_mib(facts['process_other'])} more there: context, code, other allocators")
    lines += [
        f"  process {each.pid} has {'an unknown amount' if each.nbytes is None else _mib(each.nbytes)}"
        for each in facts["processes"]
    ]
    return lines


def _next_step(policy: "Policy", facts: "dict[str, Any]", operation: "str | None") -> str:
    requested, limit = facts["requested"], facts["limit"]
    missing = requested - facts["free"] if facts["free"] is not None else 0
    others = sum(each.nbytes or 0 for each in facts["processes"])
    raising = f"free memory, or raise the limit: `limit({policy.home.device}, NBYTES)`"
    if limit is not None and facts["allocated"] + requested > limit:
        return raising
    if facts["total"] is not None and requested > facts["total"]:
        return "the request is larger than the device: split it"
    if facts["reserved"] - facts["allocated"] >= requested and policy.name != "expandable":
        return "enough is free but in pieces: `NBXRT_ALLOCATOR=expandable` moves memory to where it is needed"
    if limit is not None and missing <= 0:
        return raising
    if operation == "mem_address_reserve":
        return "no addresses are left: raise `ulimit -v`, or take `NBXRT_ALLOCATOR=caching`"
    if 0 < missing <= (facts["process_other"] or 0):
        return "this process holds what is missing outside of the account: free it there, as other allocators' caches"
    if 0 < missing <= others:
        return "other processes hold what is missing: end them, or take `nbxrt.most_free_device()`"
    return "free memory or ask for less; `account.snapshot()` shows who holds what"


def _mib(nbytes: int) -> str:
    """A number of bytes as people read it."""
    if nbytes < MIB:
        return f"{nbytes} bytes"
    return f"{nbytes / MIB:.1f} MiB"
