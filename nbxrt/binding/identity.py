"""Whose library a file is, where several vendors ship one of the same name: by what the backend file says of it.

`reason_by_file` reads and loads nothing; `reason_by_asking` is for a loaded library. Both answer with why the library
is another vendor's, or with an empty text.
"""

import os

from nbxrt.binding import asking
from nbxrt.binding.machine import absolute, realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator, Mapping
    from typing import Any

    from nbxrt.binding.candidates import Wanted
    from nbxrt.binding.machine import Machine


def reason_by_file(wanted: "Wanted", path: str, major: "int | None") -> str:
    """By where the file lies and what it is linked to; by its symbols too when its name does not say its version."""
    rules: Mapping[str, Any] = wanted.data["identity"]
    return (
        _by_root(rules, path, wanted.machine)
        or _by_links(rules, path, wanted.machine)
        or ("" if major is not None or not wanted.majors else _by_symbols_in_file(rules, path, wanted.machine))
    )


def _by_root(rules: "Mapping[str, Any]", path: str, machine: "Machine") -> str:
    places = {os.path.dirname(path), os.path.dirname(realpath(path))}
    for written, root in _roots(rules, machine):
        inside = os.path.join(root, "")
        if any(os.path.join(place, "").startswith(inside) for place in places):
            return f"is another vendor's: it lies below {written}"
    return ""


def _roots(rules: "Mapping[str, Any]", machine: "Machine") -> "Iterator[tuple[str, str]]":
    """(as it is written, the folder) of each root of another vendor; a variable that is not set names none."""
    for written in rules["not_under"]:
        root = machine.variable(written[1:]) if written.startswith("$") else machine.under(written)
        if root:
            root = absolute(root)
            yield written, root
            yield written, realpath(root)


def _by_links(rules: "Mapping[str, Any]", path: str, machine: "Machine") -> str:
    if machine.system != "linux" or not (rules["linked_to"] or rules["not_linked_to"]):
        return ""
    from nbxrt.binding import elf

    needed = [name.partition(".so")[0] for name in elf.needed(path)]
    foreign = [name for name in needed if name in rules["not_linked_to"]]
    if foreign:
        return f"is another vendor's: it is linked to {foreign[0]}"
    if rules["linked_to"] and not any(name in rules["linked_to"] for name in needed):
        return f"is another vendor's: it is not linked to {' or '.join(rules['linked_to'])}"
    return ""


def _by_symbols_in_file(rules: "Mapping[str, Any]", path: str, machine: "Machine") -> str:
    if machine.system != "linux" or not (rules["exports"] or rules["lacks"]):
        return ""
    from nbxrt.binding import elf

    exported = elf.exported(path, (*rules["exports"], *rules["lacks"]))
    return _by_symbols(rules, exported) if exported is not None else ""


def _by_symbols(rules: "Mapping[str, Any]", exported: "set[str]") -> str:
    for symbol in rules["exports"]:
        if symbol not in exported:
            return f"is another library: it does not export `{symbol}`"
    for symbol in rules["lacks"]:
        if symbol in exported:
            return f"is another vendor's: it exports `{symbol}`"
    return ""


def reason_by_asking(wanted: "Wanted", library: "ctypes.CDLL") -> str:
    """By the symbols of a loaded library, and by the answer of its probe."""
    rules: Mapping[str, Any] = wanted.data["identity"]
    symbols = (*rules["exports"], *rules["lacks"])
    return _by_symbols(rules, {symbol for symbol in symbols if asking.has(library, symbol)}) or _by_probe(
        rules, library
    )


def _by_probe(rules: "Mapping[str, Any]", library: "ctypes.CDLL") -> str:
    if rules["probe"] is None:
        return ""
    call, equals = rules["probe"]
    symbol = next((symbol for symbol in call[0] if asking.has(library, symbol)), None)
    if symbol is None:
        return f"is another vendor's: it does not export `{call[0][0]}`"
    status, results = asking.ask(library[symbol], call)
    answer = next(iter(results.values()), status)
    said = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return "" if said == equals else f"is another vendor's: `{symbol}` answers {said!r} and not {equals!r}"
