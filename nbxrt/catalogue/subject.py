"""A file as the meaning checks see it: only the parts whose form is right, with the contract beside them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.contract import Operation
from nbxrt.catalogue.diagnostics import listed
from nbxrt.catalogue.forms import Name, names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.diagnostics import Diagnostic, Related
    from nbxrt.catalogue.document import Document, Path


#: Of those that need one thing, how many are shown with their places.
_SHOWN = 4


@attrs.frozen(eq=False)
class Variant:
    """One way that a file does an operation; a bare symbol counts as a call without `args`."""

    operation: Operation
    path: Path
    spec: Mapping[str, Any]
    _named: list[tuple[Path, Any, Name]] = attrs.field(factory=list, init=False)

    @property
    def symbol(self) -> str:
        """The symbol that is called, the first where there are several; empty when none is."""
        called = self.spec.get("call", "")
        return str(called[0] if isinstance(called, list) else called)

    @property
    def is_call(self) -> bool:
        """Whether a C function is called."""
        return "call" in self.spec

    @property
    def returns(self) -> Any:
        """What the function returns, as the file says it."""
        return self.spec.get("returns", "status")

    def arguments(self) -> Iterator[tuple[Path, Any]]:
        """Path and value of each argument; those of the contract's usual order stand where the symbol does."""
        if "args" in self.spec:
            yield from (((*self.path, "args", index), each) for index, each in enumerate(self.spec["args"]))
        else:
            yield from ((self.path, each) for each in self.operation.c or ())

    def named(self) -> list[tuple[Path, Any, Name]]:
        """Path and value of each argument, with each name in it; looked for once."""
        if not self._named:
            self._named.extend(
                (path, argument, name) for path, argument in self.arguments() for name in names_in(argument)
            )
        return self._named


@attrs.frozen(eq=False)
class Subject:
    """The file under check. `faulty` has every path at which the schema found a fault, `broken` also those above."""

    document: Document
    contract: Contract
    faulty: frozenset[Path]
    broken: frozenset[Path]
    _found: list[Variant] = attrs.field(factory=list, init=False)

    @classmethod
    def of(cls, document: Document, contract: Contract, faults: Iterable[Path]) -> Subject:
        """A subject, given the paths of the faults of its form."""
        faulty = frozenset(faults)
        broken = frozenset(path[:end] for path in faulty for end in range(len(path) + 1))
        return cls(document, contract, faulty, broken)

    def diagnostic(self, path: Path, reference: str, message: str, **facts: Any) -> Diagnostic:
        """A fault at the value of `path`, or with `at="key"` at its key."""
        return self.document.diagnostic(path, reference, message, **facts)

    def lacking(self, users: Sequence[tuple[Path, str]], says: str, *, of: Path) -> dict[str, Any]:
        """What a fault says of all that need one thing which is not there: one cause is one fault, at the first user.

        `users` are paths with the names of operations, which stand for `USERS` in what is said (`use(s)` is the verb of
        one), and `of` is where the thing would stand.
        """
        names = list(dict.fromkeys(name for _path, name in users))
        said = re.sub(r"\((e?s)\)", r"\1" if len(names) == 1 else "", says).replace("USERS", listed(names))
        also = [self.related(path, "also") for path, _name in users[1:_SHOWN]]
        return {"message": said, "related": (*self.nearest(*of), *also)}

    def nearest(self, *path: str | int) -> tuple[Related, ...]:
        """A node that is not as it should be, or the nearest above it that is there; none where that is the file."""
        return self.document.nearest(path)

    def is_inherited(self, path: Path) -> bool:
        """Whether a node stands in a file that this one extends."""
        return self.document.is_inherited(path)

    def related(self, path: Path, message: str) -> Related:
        """A node that a fault elsewhere has to do with."""
        return self.document.related(path, message)

    def value(self, *path: str) -> Any:
        """The value at a path, None when there is none or its form is wrong."""
        return None if path in self.broken else self._written(path)

    def mapping(self, *path: str) -> dict[str, Any]:
        """The mapping at a path as it is written, faults below it included; empty when there is none."""
        found = self._written(path)
        return found if isinstance(found, dict) else {}

    def _written(self, path: tuple[str, ...]) -> Any:
        node = self.document.data
        for part in path:
            if not isinstance(node, dict) or part not in node:
                return None
            node = node[part]
        return node

    def section(self, *path: str) -> dict[str, Any]:
        """The sound entries of a mapping; empty when there is no mapping."""
        return {key: value for key, value in self.mapping(*path).items() if (*path, key) not in self.broken}

    def variants(self) -> list[Variant]:
        """Every sound variant of every operation that the contract has; looked for once, asked for by most checks."""
        if not self._found:
            self._found.extend(self._variants())
        return self._found

    def _variants(self) -> Iterator[Variant]:
        for name, spec in self.mapping("operations").items():
            operation = self.contract.operations.get(name)
            if operation is not None:
                for path, each in self.entries(("operations", name), spec):
                    yield Variant(operation, path, {"call": each} if isinstance(each, str) else each)

    def calls(self) -> Iterator[Variant]:
        """The variants that call a C function."""
        return (variant for variant in self.variants() if variant.is_call)

    def invocations(self) -> Iterator[Variant]:
        """The calls of C functions, and those that are steps; what is kept of devices stands for an operation."""
        yield from self.calls()
        for variant in self.variants():
            yield from _calls_in(variant.operation, (*variant.path, "steps"), variant.spec.get("steps", ()))
        for section in ("state", "policies", "devices"):
            if (section,) not in self.faulty:
                operation = self._stand_in(section)
                for path, call in _calls_below((section,), self.mapping(section)):
                    if path not in self.broken:
                        yield Variant(operation, path, call)

    def role_calls(self) -> Iterator[Variant]:
        """The calls of the libraries themselves: `version`, `init`, what a code is called."""
        for path, call in _calls_below(("libraries",), self.mapping("libraries")):
            if path not in self.broken:
                yield Variant(self._stand_in("libraries"), path, call)

    @staticmethod
    def _stand_in(name: str) -> Operation:
        return Operation(name, "device", "", (), ())

    def entries(self, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
        """The sound variants of a value that may be one or a list of them, with their paths."""
        if path in self.faulty:
            return
        items = [((*path, index), item) for index, item in enumerate(value)] if isinstance(value, list) else None
        yield from ((where, item) for where, item in items or [(path, value)] if where not in self.broken)

    def role_of(self, variant: Variant) -> str:
        """The role whose library has the variant's symbol."""
        return str(variant.spec.get("library", self.contract.groups[variant.operation.group].library))

    def library(self, role: str) -> tuple[str, dict[str, Any] | None]:
        """The role that serves a role, and what the file says about it; None when there is nothing sound."""
        libraries = self.section("libraries")
        library = libraries.get(role)
        if isinstance(library, dict) and "same_as" in library:
            role = library["same_as"]
            library = libraries.get(role)
        return role, library if isinstance(library, dict) and "same_as" not in library else None


def _calls_in(operation: Operation, path: Path, steps: Iterable[Any]) -> Iterator[Variant]:
    for where, call in _calls_below(path, list(steps)):
        yield Variant(operation, where, call)


def _calls_below(path: Path, node: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Every call at or below a node, with its path."""
    if isinstance(node, dict):
        if "call" in node and isinstance(node.get("args", []), list):
            yield path, node
        for key, value in node.items():
            if key != "args":
                yield from _calls_below((*path, key), value)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _calls_below((*path, index), value)
