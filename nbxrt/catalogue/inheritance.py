"""Which file extends which, and whether all of them together are right.

layers.py puts the files together; here they are found, read and checked, the base first, so that a fault is told where
it was made. validation.py checks one document.
"""

from __future__ import annotations

import functools
import pathlib
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import layers, reading, sources, validation
from nbxrt.catalogue.diagnostics import Diagnostic, Related, did_you_mean, listed, path_text, quoted
from nbxrt.catalogue.forms import names_in
from nbxrt.catalogue.sources import BUILT_IN
from nbxrt.catalogue.subject import Subject
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.document import Document, Path
    from nbxrt.catalogue.layers import Merged, Statement
    from nbxrt.catalogue.sources import Found, Source


@attrs.frozen(eq=False)
class Whole:
    """A description with all that it extends: the files, the base first, and one document made of them.

    `document` is None where a fault lies before the merging.
    """

    sources: tuple[Source, ...]
    document: Document | None
    history: Mapping[Path, tuple[Statement, ...]]
    faults: tuple[Diagnostic, ...]


def whole(source: Source, found: Found, contract: Contract) -> Whole:
    """A file with all that it extends, and every fault of it. `found` is where the names in `extends` are looked up."""
    try:
        document = read(source)
    except DescriptionError as error:
        return Whole((source,), None, {}, error.diagnostics)
    form = validation.check(document, contract)
    if not extends(document):
        return Whole((source,), document, {}, form)
    chain, documents, faults = _chain(source, document, found, contract)
    if any(fault.path == "extends" for fault in form):
        faults = []  # what is no name is no backend's
    if form or faults:
        return Whole(tuple(chain), None, {}, tuple(sorted({*_with_places(form, documents), *faults})))
    merged = layers.merge(documents)
    told = merged.faults or tuple(_faults_of_meaning(merged, documents, contract))
    return Whole(tuple(chain), merged.document, merged.history, told)


def validate_file(path: str | os.PathLike[str], contract: Contract | None = None) -> tuple[Diagnostic, ...]:
    """Every fault of a file, none when it is right; a file that is no YAML or cannot be read is a fault too."""
    scanned = reading.scan(pathlib.Path(path), str(path))
    if scanned.document is None:
        return scanned.diagnostics
    told = {(fault.line, fault.column) for fault in scanned.diagnostics}
    found = _check_with_base(pathlib.Path(path), scanned.document, contract or contracts.load())
    return validation.in_order(
        [*scanned.diagnostics, *(each for each in found if (each.line, each.column) not in told)]
    )


def _check_with_base(path: pathlib.Path, document: Document, contract: Contract) -> tuple[Diagnostic, ...]:
    """Every fault of a file, together with what it extends."""
    if not validation.is_part(document):
        return validation.check(document, contract)
    found = sources.find(path)
    return whole(found.given(path), found, contract).faults


def read(source: Source) -> Document:
    """The document of a file; what was read to find its name is not read again, and a built-in one is read once.

    Raises: DescriptionError with every fault of its YAML.
    """
    if source.origin == BUILT_IN:
        return _built_in(source)
    if source.document is not None and not source.diagnostics:
        return source.document
    return reading.read(source.file, source.shown)


@functools.lru_cache(maxsize=16)
def _built_in(source: Source) -> Document:
    return reading.read(source.file, source.shown)


def extends(document: Document) -> str:
    """The name of the backend that a file extends; empty when it stands alone."""
    said = document.data.get("extends") if isinstance(document.data, dict) else None
    return said if isinstance(said, str) else ""


def lines(document: Document, shown: str) -> Callable[[tuple[str | int, ...]], int | str]:
    """What tells the line of a key, and the file with it where the key stands in a file that this one extends."""

    def line(path: tuple[str | int, ...]) -> int | str:
        place = document.place(path)
        return place.line if place.value.file == shown else f"{place.value.file}:{place.line}"

    return line


# The chain of files


def _chain(
    source: Source, document: Document, found: Found, contract: Contract
) -> tuple[list[Source], list[Document], list[Diagnostic]]:
    """The files and their documents, the base first; and what keeps them from being put together."""
    chain, documents = [source], [document]
    while extends(documents[0]):
        base = _base(chain[0], extends(documents[0]), found)
        if base is None:
            return chain, documents, [_unknown_base(chain[0], documents[0], found)]
        if any(base.shown == each.shown for each in chain):
            return chain, documents, [_cycle(chain, documents, base)]
        try:
            below = read(base)
            faults = base.diagnostics or (() if base.origin == BUILT_IN else validation.check(below, contract))
        except DescriptionError as error:
            faults = error.diagnostics
        if faults:
            return chain, documents, [_because(fault, documents) for fault in faults]
        chain.insert(0, base)
        documents.insert(0, below)
    return chain, documents, []


def _base(source: Source, name: str, found: Found) -> Source | None:
    """What a file means by a name that it extends: what is in force, and for its own name what it replaced."""
    if name == source.name:
        return source.replaced
    if name in found.sources:
        return found.sources[name]
    from nbxrt.catalogue import packages  # only for a name that nothing else has: it reads all metadata

    return packages.sources().get(name)


def _unknown_base(source: Source, document: Document, found: Found) -> Diagnostic:
    name = extends(document)
    known = [*found.sources]
    if name in found.sources and "name" not in document.data:  # this very file, which has the name of what it extends
        known.remove(name)
        message = f"there is no backend {quoted(name)} to extend"
    elif name == source.name and name in found.sources:
        known.remove(name)
        message = f"`{name}` extends itself, and there is no other backend of that name"
    else:
        message = f"{quoted(name)} is not a known backend"
    hint = did_you_mean(name, known)
    return document.diagnostic(("extends",), "unknown-base", message, label=f"known: {listed(known)}", hint=hint)


def _cycle(chain: list[Source], documents: list[Document], base: Source) -> Diagnostic:
    first = next(index for index, each in enumerate(chain) if each.shown == base.shown)
    round_trip = documents[: first + 1]
    names = " extends ".join(quoted(each.name) for each in (*reversed(chain[: first + 1]), base))
    related = tuple(each.related(("extends",), f"`extends: {extends(each)}`") for each in reversed(round_trip[:-1]))
    message = f"files extend each other: {names}"
    return round_trip[-1].diagnostic(("extends",), "extends-cycle", message, related=related)


def _because(fault: Diagnostic, documents: list[Document]) -> Diagnostic:
    """A fault of a file that is read only because another one extends it."""
    names = [each.name for each in documents]
    reader = documents[names.index(fault.file) + 1 if fault.file in names else 0]
    said = reader.related(("extends",), f"read because of `extends: {extends(reader)}`")
    return attrs.evolve(fault, related=(*fault.related, said))


def _with_places(form: tuple[Diagnostic, ...], documents: list[Document]) -> Iterator[Diagnostic]:
    """The faults of form; `null` where something is required says what it would have taken out."""
    for fault in form:
        related = _said_below(fault, documents[:-1]) if fault.reference == "required-key" else ()
        yield attrs.evolve(fault, related=(*fault.related, *related))


def _said_below(fault: Diagnostic, below: list[Document]) -> tuple[Related, ...]:
    for document in reversed(below):
        for path, _entry in document.nodes():
            if path_text(path) == fault.path:
                return (document.related(path, "what is extended says it"),)
    return ()


# What the files mean together


def _faults_of_meaning(merged: Merged, documents: list[Document], contract: Contract) -> Iterator[Diagnostic]:
    top = documents[-1]
    for fault in validation.check(merged.document, contract):
        changes = _changes(fault, merged, documents)
        if fault.file == top.name:
            yield attrs.evolve(fault, related=(*fault.related, *map(_told, changes)))
        elif not fault.reference.startswith(_LEFT_OVER):
            yield _at_the_change(fault, changes) if changes else _because(fault, documents)
    yield from _inherited_ranges(merged, documents, contract)


#: What is said of a base's own part that the files above have left without use: it need not be used to the last.
_LEFT_OVER = ("unused-", "unknown-named")


def _at_the_change(fault: Diagnostic, changes: list[Statement]) -> Diagnostic:
    """The fault of a base where a file above changed what it names: the base alone is right."""
    there = Related(f"{quoted(fault.path)} is", fault.file, fault.line, fault.column)
    related = (there, *map(_told, changes[1:]), *(each for each in fault.related if each.file == fault.file))
    facts: dict[str, Any] = {"label": fault.label, "hint": fault.hint, "notes": fault.notes}
    return changes[0].diagnostic(fault.reference, fault.message, related=related, **facts)


def _told(change: Statement) -> Related:
    return change.related(f"{quoted(path_text(change.path))} is {'taken out' if change.value is None else 'changed'}")


def _changes(fault: Diagnostic, merged: Merged, documents: list[Document]) -> list[Statement]:
    """What the files above say of what a fault names, what they take out first; of its own file only that."""
    last = {(each[-1].document.name, each[-1].path): each[-1] for each in merged.history.values()}.values()
    above = [
        each
        for each in last
        if each.document is not documents[0] and (each.document.name != fault.file or each.value is None)
    ]
    named = next(filter(None, (_named(above, said) for said in (fault.message, fault.hint))), [])
    holders = {each.path[:-1] for each in named}
    return sorted((each for each in named if each.path not in holders), key=lambda each: each.value is not None)


def _named(statements: list[Statement], said: str) -> list[Statement]:
    return [each for each in statements if quoted(str(each.path[-1])) in said or quoted(path_text(each.path)) in said]


def _inherited_ranges(merged: Merged, documents: list[Document], contract: Contract) -> Iterator[Diagnostic]:
    """A library that tells its version in a way of its own takes over nothing that differs by the other's version."""
    subject = Subject.of(merged.document, contract, ())
    for role in subject.mapping("libraries"):
        said = merged.history.get(("libraries", role, "version"), ())
        if len({repr(each.value) for each in said}) < 2 and (not said or said[0].document is documents[0]):
            continue
        own = max(index for index, document in enumerate(documents) if document is said[-1].document)
        below = documents[:own]
        inherited = [
            path
            for path in _ranged(subject, role)
            if merged.history[path][-1].document in below and _has_range(merged.document.at(path))
        ]
        if inherited:
            names = listed([path_text(path) for path in inherited])
            message = f"`{role}` tells its version in its own way, and inherits ranges of versions: {names}"
            related = tuple(merged.document.related(path, path_text(path)) for path in inherited[:3])
            hint = "state them here for this library's versions"
            yield said[-1].diagnostic("inherited-ranges", message, related=related, hint=hint)


def _has_range(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(e, dict) and ("since" in e or "before" in e) for e in value)


def _ranged(subject: Subject, role: str) -> Iterator[Path]:
    """The units whose ranges are of the version of a role's library."""
    used: dict[Path, None] = {}
    for variant in subject.variants():
        if subject.library(subject.role_of(variant))[0] != role:
            continue
        operation = variant.operation
        used[("operations", operation.name)] = None
        used.update(dict.fromkeys(("enums", each.type) for each in (*operation.takes, *operation.gives)))
        for _path, argument in variant.arguments():
            for each in names_in(argument):
                if each.role in ("struct", "flags"):
                    used["structs" if each.role == "struct" else "enums", each.name] = None
    yield from (path for path in used if subject.mapping(str(path[0])).get(str(path[1])) is not None)
