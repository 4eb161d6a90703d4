"""Whether a vendor's device is there, as the operating system shows it: no driver is touched.

The answer is yes, no, or None when only the vendor's runtime can tell; each with its reason.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nbxrt.binding.machine import Machine

    Answer = tuple[bool | None, str]

_PCI = "/sys/bus/pci/devices"


def device_there(description: "Mapping[str, Any]", machine: "Machine") -> "Answer":
    """Whether a device of this backend is there, and why nbxrt thinks so."""
    if machine.system not in description["platforms"]:
        return False, f"{description['title']} does not run on {machine.system}"
    rule = description["presence"].get(machine.system)
    if rule is None:
        return None, "only the runtime can tell"
    pci, nodes, ask, _hint = rule
    for node in ask:
        if found := _existing(node, machine):
            return None, f"{found} is there, behind which only the runtime can tell"
    card, why = _on_pci(pci, machine) if pci else (None, "")
    if card is False:
        return False, why
    if not nodes:
        return card, why
    for node in nodes:
        if found := _existing(node, machine):
            return True, ", ".join(filter(None, (why, f"{found} is there")))
    missing = f"no {' or '.join(nodes)}"
    return False, f"{why}, but {missing}: its kernel driver is not loaded or not passed in" if card else missing


def forbidden(description: "Mapping[str, Any]", machine: "Machine") -> "list[str]":
    """Device nodes of which this process may read and write none, each with its owner and our groups.

    One of each pattern is told; those of other vendors may match it too, so one that may be used is enough.
    """
    patterns = (*_nodes_of_cards(description, machine), *description["nodes_beside"].get(machine.system, ()))
    found = [_matches(pattern, machine) for pattern in patterns]
    return [_refusal(nodes[0]) for nodes in found if nodes and not any(map(_may_use, nodes))]


def lacking(description: "Mapping[str, Any]", machine: "Machine") -> "list[str]":
    """The nodes beside a card's that are not there, where the card's is: a driver may make them at its first use."""
    if not any(_matches(pattern, machine) for pattern in _nodes_of_cards(description, machine)):
        return []
    beside: tuple[str, ...] = description["nodes_beside"].get(machine.system, ())
    return [f"there is no {machine.under(pattern)}" for pattern in beside if not _matches(pattern, machine)]


def _nodes_of_cards(description: "Mapping[str, Any]", machine: "Machine") -> "tuple[str, ...]":
    rule = description["presence"].get(machine.system)
    return rule[1] if rule else ()


def _may_use(node: str) -> bool:
    return os.access(node, os.R_OK | os.W_OK)


def _refusal(node: str) -> str:
    said = f"{node} is there, and this process may not read and write it"
    if sys.platform == "win32":  # which has no groups of that kind
        return said
    try:
        status = os.stat(node)
    except OSError:  # it has gone
        return said
    ours = ", ".join(map(str, sorted({os.getegid(), *os.getgroups()})))
    return (
        f"{said}: its mode is {status.st_mode & 0o777:04o}, its group is {status.st_gid}, and this process is of the "
        f"groups {ours}"
    )


def _existing(pattern: str, machine: "Machine") -> str:
    """The first file of a pattern, or an empty string."""
    return next(iter(_matches(pattern, machine)), "")


def _matches(pattern: str, machine: "Machine") -> "list[str]":
    """The files of a pattern; wildcards stand in its last part only."""
    folder, name = os.path.split(machine.under(pattern))
    if not any(wildcard in name for wildcard in "*?["):
        return [os.path.join(folder, name)] if os.path.exists(os.path.join(folder, name)) else []
    try:
        return [os.path.join(folder, each) for each in sorted(_matching(name, os.listdir(folder)))]
    except OSError:
        return []


def _matching(pattern: str, names: "list[str]") -> "list[str]":
    """The names that a pattern stands for, by the C library: Python's own matcher imports `re`, which takes longer."""
    if sys.platform == "win32":  # whose devices are in no folder
        return []
    import ctypes  # the library is looked for by it in any case

    match = ctypes.CDLL(None).fnmatch
    match.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    return [name for name in names if match(os.fsencode(pattern), os.fsencode(name), 0) == 0]


def _on_pci(pci: "tuple[int, tuple[int, ...]]", machine: "Machine") -> "Answer":
    """Whether the bus has a card of the vendor and one of the base classes; None where the bus cannot be read."""
    vendor, classes = pci
    try:
        devices = sorted(os.listdir(machine.under(_PCI)))
    except OSError:
        return None, ""
    for device in devices:
        folder = os.path.join(machine.under(_PCI), device)
        if _number(folder, "vendor") == vendor and _number(folder, "class") >> 16 in classes:
            return True, f"PCI {device} is a card of vendor {vendor:#06x}"
    return False, f"no card of PCI vendor {vendor:#06x}"


def _number(folder: str, name: str) -> int:
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return int(file.read(), 16)
    except (OSError, ValueError):
        return -1
