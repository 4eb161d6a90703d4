"""Which variant of an operation, enum or structure applies here: by system, by symbols, by the library's version."""

from nbxrt import errors
from nbxrt.binding.layout import as_tuple, member, structure
from nbxrt.binding.library import applies, said_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.binder import Binder

#: Forms of an operation that may be for one model of device, which stands first in what they are.
BY_MODEL = ("steps", "policy")


class Variants:
    """The variants of one description that apply in this process.

    A variant is (form, since, before, platforms, what, results), as catalogue/compiling.py writes it.
    """

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._description = binder.description
        self._contract = binder.contract
        self._machine = binder.machine

    # operations

    def of(self, operation: str) -> "tuple[Any, ...]":
        """The variant of an operation that applies on this platform to the library that is here.

        Raises: CapabilityError, UntestedVersionError.
        """
        return self.in_range(f"`{operation}`", self._exported(operation), operation)

    def _exported(self, operation: str) -> "list[tuple[Any, ...]]":
        """The variants of an operation that apply here in some version of the library, which is not asked for its own.

        Raises: CapabilityError.
        """
        if operation in self._description["absent"]:
            raise self._binder.failures.absent(operation)
        _line, variants = self._description["operations"][operation]
        system = self._machine.system
        here = [variant for variant in variants if self._is_for_system(variant)]
        if not here:
            raise errors.CapabilityError(
                f"`{operation}` is not offered by {self._description['title']} on {system}", operation=operation
            )
        return [variant for variant in here if self.exports(variant)] or here

    def by_model(self, operation: str) -> "dict[str, tuple[Any, ...]]":
        """The first variant of each model of device that applies here; an empty model stands for all others."""
        _line, variants = self._description["operations"][operation]
        return first_of_models(self.here(variants) or [self.of(operation)])

    def c_symbol(self, operation: str) -> str:
        """The vendor's function that has the contract's C form, and a name that is not also the contract's; or empty.

        The library is asked for its version only where the answer depends on it: with some libraries the question
        alone initialises the runtime, which a later fork does not survive.
        """
        try:
            symbols = {self._c_symbol_of(variant) for variant in self._exported(operation)}
            return symbols.pop() if len(symbols) == 1 else self._c_symbol_of(self.of(operation))
        except errors.CapabilityError:
            return ""

    def _c_symbol_of(self, variant: "tuple[Any, ...]") -> str:
        form, *_range, what, _results = variant
        if form != "call" or not what[4] or what[0][0] in self._contract["operations"]:
            return ""
        return self.exported_symbol(what)

    def _is_for_system(self, variant: "tuple[Any, ...]") -> bool:
        return variant[3] is None or self._machine.system in variant[3]

    def here(self, variants: "Sequence[tuple[Any, ...]]") -> "list[tuple[Any, ...]]":
        """Those that are for this system and whose functions the libraries export."""
        return [variant for variant in variants if self._is_for_system(variant) and self.exports(variant)]

    def exports(self, variant: "tuple[Any, ...]") -> bool:
        """Whether the libraries export every function of a variant."""
        if variant[0] == "steps":
            return self._binder.asks_for_functions or all(
                self._binder.library(role).exports(symbols) for symbols, role in calls_in(variant[4][2])
            )
        if variant[0] != "call":
            return True
        try:
            return self._binder.library(variant[4][1]).exports(variant[4][0])
        except errors.LibraryNotFoundError:
            return False

    def exported_symbol(self, call: "tuple[Any, ...]") -> str:
        """The first of a call's symbols that its library exports, or an empty string."""
        try:
            library = self._binder.library(call[1])
        except errors.LibraryNotFoundError:
            return ""
        return next((symbol for symbol in call[0] if library.exports((symbol,))), "")

    def symbols(self, operation: str) -> "tuple[str, ...]":
        """The vendor's names that the operation may have here; empty when it is no single vendor function."""
        if operation in self._description["absent"]:
            return ()
        _line, variants = self._description["operations"][operation]
        system = self._machine.system
        return tuple(
            symbol
            for form, _since, _before, platforms, what, _results in variants
            if form == "call" and (platforms is None or system in platforms)
            for symbol in what[0]
        )

    def _role(self, operation: str, entries: "Sequence[tuple[Any, ...]]") -> str:
        calls = [entry[4] for entry in entries if len(entry) > 4 and entry[0] == "call"]
        group = self._contract["operations"][operation]["group"]
        role: str = calls[0][1] if calls else self._contract["groups"][group]
        return role

    def role_of(self, operation: str) -> str:
        """The role whose library the operation's first call is in."""
        if operation not in self._description["operations"]:  # a part of a policy
            return "runtime"
        _line, variants = self._description["operations"][operation]
        return self._role(operation, variants)

    def in_range(
        self, what: str, entries: "Sequence[tuple[Any, ...]]", operation: str, since: int = 1, role: str = ""
    ) -> "tuple[Any, ...]":
        """The first entry whose version range holds the library's version; `since` is where the range stands in it."""
        if all(entry[since] is None and entry[since + 1] is None for entry in entries):
            return entries[0]
        library = self._binder.library(role or self._role(operation, entries))
        version = library.version
        for entry in entries:
            if applies(version, entry[since], entry[since + 1]):
                return entry
        ranges = " or ".join(said_range(entry[since], entry[since + 1]) for entry in entries)
        said = f"{what}: {library.path} is version {as_tuple(version)}, and {self._description['file']} knows {ranges}"
        if self._machine.variable("NBXRT_ALLOW_UNTESTED") == "1" and version:
            errors.warn(f"{said}; the nearest is taken")
            return min(entries, key=lambda entry: _distance(version, entry[since], entry[since + 1]))
        raise errors.UntestedVersionError(
            said, hint="set NBXRT_ALLOW_UNTESTED=1 to take the nearest", operation=operation, version=version
        )

    # numbers and layouts

    def enum(self, kind: str, operation: str) -> "Mapping[str, int]":
        """The vendor's numbers of an enum's words or a flag set's bits, for the library's version."""
        entries = self._description["enums"].get(kind)
        if entries is None:
            return {}
        words: Mapping[str, int] = self.in_range(f"enum `{kind}`", entries, operation, 0, self.role_of(operation))[2]
        return words

    def structure(self, name: str, operation: str, *, is_out: bool = False) -> "tuple[type[ctypes.Structure], bytes]":
        """A structure's class and its bytes before a call.

        One that the library writes (`is_out`) has the room of its largest variant; all others have their true size: it
        decides how a structure travels by value, and rows stand one behind the other at it.
        """
        layouts = self._description["structs"][name]
        _since, _before, nbytes, fields, constants = self.in_range(
            f"structure `{name}`", layouts, operation, 0, self.role_of(operation)
        )
        room = max(layout[2] for layout in layouts) if is_out else nbytes
        kind = structure(name, room, fields)
        template = kind()
        for field, value in constants.items():
            setattr(template, member(field), value)
        return kind, bytes(template)


def first_of_models(variants: "Iterable[tuple[Any, ...]]") -> "dict[str, tuple[Any, ...]]":
    """The first variant that is steps or a policy for each model of device."""
    found: dict[str, tuple[Any, ...]] = {}
    for variant in variants:
        if variant[0] in BY_MODEL:
            found.setdefault(variant[4][0], variant)
    return found


def calls_in(steps: "Sequence[tuple[Any, ...]]") -> "list[tuple[tuple[str, ...], str]]":
    """(symbols, role) of every call in steps, in those inside of them too."""
    found = []
    for verb, payload, undo, always in steps:
        if verb == "call":
            found.append((payload[0], payload[1]))
        inner = payload[3] if verb == "each" else ()
        found += calls_in((*inner, *undo, *always))
    return found


def _distance(version: "tuple[int, ...]", since: "Any", before: "Any") -> "tuple[int, ...]":
    """How far a version lies outside a range, by its first differing number."""
    bound = since if since and version < since else before or version
    return tuple(abs(one - other) for one, other in zip(version, bound, strict=False))
