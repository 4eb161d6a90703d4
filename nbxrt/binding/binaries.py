"""What is said of a module that holds no code for the device: what the device is, and what the module is for.

Only read when a load has failed already. The names come from the backend's file: `binaries`.
"""

import re

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nbxrt.binding.binder import Binder

#: Targets of one module that are named; a library for every card has dozens.
_MOST = 12


def explain(binder: "Binder", given: "Mapping[str, Any]", device: int) -> "list[str]":
    """Sentences on the device's target, the targets that stand in the bytes of `image`, and the variables."""
    rules = binder.description["binaries"]
    notes = []
    if own := _target(binder, rules["device"], device):
        notes.append(f"device {device} is {own}")
    image = given.get("image")
    if rules["targets"] and isinstance(image, (bytes, bytearray, memoryview)):
        found = targets(bytes(image), rules["targets"])
        shown = ", ".join(found[:_MOST]) + (f" and {len(found) - _MOST} more" if len(found) > _MOST else "")
        notes.append(
            f"the module names {shown}" if found else f"the module names no target that begins {rules['targets']}"
        )
    environ = binder.machine.environ
    said = (f"is set to {environ[name]!r}" if name in environ else "is not set" for name in rules["variables"])
    return [*notes, *map(" ".join, zip(rules["variables"], said, strict=True))]


def targets(image: bytes, prefix: str) -> "list[str]":
    """The targets that a module's bytes name, by number and then by letter: `gfx90a` before `gfx942`."""
    found = re.findall(rb"(?<![A-Za-z0-9_])" + re.escape(prefix.encode()) + rb"[0-9][0-9a-z]*", image)
    return sorted({name.decode() for name in found}, key=lambda name: (len(name), name))


def _target(binder: "Binder", written: str, device: int) -> str:
    """The device's own target, or an empty string where it cannot be told."""
    if not written or device < 0:
        return ""
    try:
        numbers = {
            part: binder.function("device_attribute")(f"compute_capability_{part}", device)
            for part in ("major", "minor")
        }
    except errors.NbxrtError:
        return ""
    return written.format(**numbers)
