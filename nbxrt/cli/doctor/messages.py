"""Whether the classes of this process answer the messages of a backend's file, with the types that the file gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import encodings
from nbxrt.catalogue.encodings import EncodingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbxrt.binding.objc import Messages
    from nbxrt.runtime import Runtime


def compared(opened: Runtime) -> dict[str, Any]:
    """How many messages were compared with live classes and protocols, and each difference as a sentence."""
    described = opened.description["messages"]
    if not described:
        return {"compared": 0, "differences": []}
    opened.library("runtime")  # its classes are there once it is loaded
    live = opened.library("driver").messages
    differences = [said for owner, methods in described.items() for said in _differences(live, owner, methods)]
    return {"compared": sum(map(len, described.values())), "differences": differences}


def _differences(live: Messages, owner: str, methods: dict[str, Any]) -> Iterator[str]:
    for selector, (written, signature, optional) in methods.items():
        declared = live.declared(owner, selector)
        if declared is None:
            yield f"there is no class or protocol `{owner}` for `{selector}`"
        elif not declared:
            if not optional:
                yield f"`{owner}` does not declare `{selector}`"
        elif not _agrees(declared, signature):
            yield f"`{selector}` of `{owner}` is `{declared}` here, and `{written}` in the file"


def _agrees(declared: str, signature: Any) -> bool:
    try:
        return encodings.same(encodings.parse_method(declared), signature)
    except EncodingError:
        return False
