"""A snapshot of an account as plain data, in the form that PyTorch's memory viewer reads.

Its keys and words are those of `torch.cuda.memory._snapshot`: segments of blocks, and a list of events for each device.
"""

import itertools

from nbxrt.memory.layers import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from nbxrt.memory.allocator import DeviceAllocator
    from nbxrt.memory.layers import Site
    from nbxrt.memory.policies import Policy

#: The viewer's words for what History remembers. A free is two events there: asked for, and done.
_ACTIONS = {
    "alloc": ("alloc",),
    "free": ("free_requested", "free_completed"),
    "reserve": ("segment_alloc",),
    "release": ("segment_free",),
}
_EXPANDABLE_ACTIONS = _ACTIONS | {"reserve": ("segment_map",), "release": ("segment_unmap",)}


def snapshot_of(account: "DeviceAllocator") -> "dict[str, Any]":
    """The snapshot of an account."""
    return {
        "segments": [segment for policy in account.policies() for segment in _segments(account, policy)],
        "device_traces": _traces(account),
        "allocator_settings": {
            "backend": account.runtime.name,
            **{f"policy:{policy.home.device}": policy.name for policy in account.policies()},
        },
        "external_annotations": [],
    }


def _segments(account: "DeviceAllocator", policy: "Policy") -> "Iterator[dict[str, Any]]":
    """Each piece of memory that a device's policy has reserved, with the blocks in it."""
    live = sorted(
        (address, entry.nbytes, entry.stream)
        for address, entry in account.live.copy().items()
        if entry.tally is policy.tally
    )
    pieces = sorted(policy.segments(), key=lambda piece: piece[2])
    if not pieces:  # every block is a segment of its own
        pieces = [(stream, True, address, nbytes) for address, nbytes, stream in live]
    pending = policy.pending()
    for stream, is_large, start, nbytes in pieces:
        inside = [(address, size) for address, size, _stream in live if start <= address < start + nbytes]
        blocks = [*_blocks(account, start, nbytes, inside, pending)]
        allocated = sum(size for _address, size in inside)
        yield {
            "device": policy.home.device,
            "address": start,
            "total_size": nbytes,
            "allocated_size": allocated,
            "active_size": sum(block["size"] for block in blocks if block["state"] != "inactive"),
            "requested_size": allocated,
            "stream": _number(stream),
            "segment_type": "large" if is_large else "small",
            "segment_pool_id": (0, 0),
            "is_expandable": policy.name == "expandable",
            "frames": [],
            "blocks": blocks,
        }


def _blocks(
    account: "DeviceAllocator", start: int, nbytes: int, live: "list[tuple[int, int]]", pending: "set[int]"
) -> "Iterator[dict[str, Any]]":
    """The blocks of a segment, held and not, from its beginning to its end."""
    place = start
    for address, size in [*live, (start + nbytes, 0)]:
        if address > place:
            waits = any(place <= other < address for other in pending)
            yield _block(place, address - place, "active_pending_free" if waits else "inactive", ())
        if size:
            yield _block(address, size, "active_allocated", _site(account, address))
        place = address + size


def _block(address: int, nbytes: int, state: str, site: "Site") -> "dict[str, Any]":
    return {
        "address": address, "size": nbytes, "requested_size": nbytes, "state": state, "frames": _frames(site)
    }  # fmt: skip


def _site(account: "DeviceAllocator", address: int) -> "Site":
    sites = (layer.site(address) for layer in account.layers() if "site" in dir(type(layer)))
    return next(filter(None, sites), ())


def _frames(site: "Site") -> "list[dict[str, Any]]":
    return [{"filename": file, "line": line, "name": function} for file, line, function in frames(site)]


def _traces(account: "DeviceAllocator") -> "list[list[dict[str, Any]]]":
    """The remembered events of each device."""
    count = max([policy.home.device + 1 for policy in account.policies()], default=0)
    traces: list[list[dict[str, Any]]] = [[] for _device in range(count)]
    words = {
        policy.home.device: _EXPANDABLE_ACTIONS if policy.name == "expandable" else _ACTIONS
        for policy in account.policies()
    }
    remembered = [list(getattr(layer, "events", ())) for layer in account.layers()]
    for action, address, nbytes, stream, device, when, site in itertools.chain.from_iterable(remembered):
        traces[device] += [
            {
                "action": word,
                "addr": address,
                "size": nbytes,
                "stream": _number(stream),
                "time_us": when // 1000,
                "frames": _frames(site),
            }
            for word in words[device][action]
        ]
    return traces


def _number(stream: "Any") -> int:
    """The handle of a stream, whoever's own it is."""
    handle: int = stream[0] if stream.__class__ is tuple else stream
    return handle
