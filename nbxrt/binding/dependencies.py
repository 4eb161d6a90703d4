"""The libraries that a library needs: where the loader of Linux will find each, before it is asked to.

Nothing is loaded. A dependency that is cut off kills the process as surely as the library itself.
"""

import os

from nbxrt.binding import elf, examine, loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbxrt.binding.machine import Machine

#: What belongs to the C library that runs this Python: were it damaged, nothing would run. They are not looked at:
#: nearly every library needs them, and looking is on the way to the first call.
_OF_THE_C_LIBRARY = frozenset(
    ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1", "ld-linux-x86-64.so.2",
     "ld-linux-aarch64.so.1")
)  # fmt: skip
#: How far a chain of dependencies is followed.
_DEEPEST = 8


def fault(path: str, machine: "Machine") -> str:
    """Why what the file needs would not load, or would end the process; empty when nothing speaks against it.

    What is not found at all is left to the loader, which knows places of its own.
    """
    loaded = {os.path.basename(each) for each, _address in loader.objects()} if machine.system == "linux" else set()
    for name, between, found in _needed_by(path, machine, loaded | _OF_THE_C_LIBRARY):
        if found and (why := examine.fault(found, machine)):
            chain = "".join(f"{each}, which needs " for each in between)
            return f"needs {chain}{name}: {found} {why}"
    return ""


def chain(path: str, missing: str, machine: "Machine") -> "list[str]":
    """The libraries between a file and one that it needs in the end; empty when it needs it itself or is unknown."""
    return next((between for name, between, _found in _needed_by(path, machine) if name == missing), [])


def _needed_by(path: str, machine: "Machine", but: "Iterable[str]" = ()) -> "Iterator[tuple[str, list[str], str]]":
    """(name, the names between, file or empty) of each library that a file needs, nearest first, as the loader goes.

    Those of `but` are left out, with what they need.
    """
    seen = set(but)
    waiting: list[tuple[str, list[str]]] = [(path, [])]
    while waiting:
        file, between = waiting.pop(0)
        for name in elf.needed(file):
            if name in seen:
                continue
            seen.add(name)
            found = _resolved(name, file, machine)
            yield name, between, found
            if found and len(between) < _DEEPEST:
                waiting.append((found, [*between, name]))


def _resolved(name: str, by: str, machine: "Machine") -> str:
    """The file that the loader takes for a library that another needs, or an empty string."""
    if "/" in name:
        return name if os.path.isfile(name) else ""
    there = (file for file in _places_of(name, by, machine) if os.path.lexists(file))
    return next((file for file in there if not examine.is_passed_over(examine.fault(file, machine))), "")


def _places_of(name: str, by: str, machine: "Machine") -> "Iterator[str]":
    """The files that the loader tries, in its order."""
    before, after = elf.search_path(by)
    yield from (os.path.join(place, name) for place in [*before, *loader.start_path(machine), *after])
    yield from (loader.cached(machine, [name]) or {}).get(name, [])
    yield from (os.path.join(place, name) for place in loader.default_folders(machine))
