"""Comparing a backend file with headers and libraries: what is asked, and what becomes of each part of the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt import descriptions, errors, versions
from nbxrt.binding.machine import Machine
from nbxrt.verifying import headers as asking
from nbxrt.verifying import recording, symbols
from nbxrt.verifying.claims import Claims
from nbxrt.verifying.comparing import agrees, differences, said
from nbxrt.verifying.result import Result, Row, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nbxrt.catalogue.document import Document
    from nbxrt.verifying.claims import Constant, Field, Function, Layout, Passed

HEADER = "header"


@attrs.define
class _Finding:
    """What is known of a row while it is looked at: who agreed or not, and what was said."""

    by: list[str] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    declared: list[str] = attrs.field(factory=list)

    is_partial: bool = False

    def checked(self, by: str, faults: Iterable[str] = ()) -> None:
        self.by += [by] if by not in self.by else []
        self.faults += [fault for fault in faults if fault not in self.faults]

    def unknown(self, why: str) -> None:
        """A part of it cannot be told, so that the whole is not `ok`, whatever else agrees."""
        self.is_partial = True
        self.notes += [why] if why not in self.notes else []

    @property
    def state(self) -> State:
        if self.faults:
            return State.WRONG
        return State.OK if self.by and not self.is_partial else State.UNVERIFIED


Findings = dict[str, _Finding]


def verify(
    backend: str | os.PathLike[str],
    *,
    headers: Sequence[str | os.PathLike[str]] = (),
    include: Sequence[str | os.PathLike[str]] = (),
    libraries: Sequence[str | os.PathLike[str]] = (),
    version: str | Mapping[str, str] | None = None,
) -> Result:
    """Compare a backend, by name or file, with the vendor's headers and library files.

    `include` are folders for what the headers include. `version` is that of the runtime, or versions by role; else it
    is taken from the libraries' file names, else the best that the file knows. What neither tells is unverified.
    Raises: HeaderError for headers that do not compile or no compiler; SymbolsError for a library that cannot be read;
    ArgumentValueError; BackendNotFoundError; DescriptionError; CapabilityError for a backend without C functions.
    """
    description, document = _described(backend)
    exports = {Path(file): symbols.read(Path(file)) for file in libraries}
    wanted = {"runtime": version} if isinstance(version, str) else dict(version or {})
    by_role = versions.by_role(description, {**_versions_of_files(description, exports), **wanted})
    claims = Claims(description, descriptions.contract(), by_role, document.data.get("headers", {}), Machine().system)
    found: Findings = {}
    files = tuple(map(Path, headers))
    asked = asking.Headers(files, tuple(map(Path, include)), _macros(claims))
    signatures = _ask_headers(claims, asked, document, found)
    notes = [note for file, exported in exports.items() for note in _ask_library(claims, file, exported, found)]
    _leave_unverified(claims, found)
    result = _result(description, document, claims, found, notes)
    return attrs.evolve(result, headers=recording.hashes(files), signatures=signatures)


def _described(backend: str | os.PathLike[str]) -> tuple[Mapping[str, Any], Document]:
    """The description that the binder reads, and the file with the places and names in it."""
    from nbxrt.catalogue import loading

    description = descriptions.load(backend)
    if description["abi"] != "c":
        raise errors.CapabilityError(
            f"{description['title']} cannot be compared with C headers: its ABI is not C", backend=description["name"]
        )
    document = loading.whole(*descriptions.source(backend)).document
    assert document is not None  # noqa: S101  # it was loaded
    return description, document


def _macros(claims: Claims) -> tuple[str, ...]:
    return tuple(claims.names.get("define", ()))


def _versions_of_files(description: Mapping[str, Any], files: Iterable[Path]) -> dict[str, str]:
    """The major version of each role that a file's name tells."""
    found = {}
    for file in files:
        names = {file.name, os.path.basename(os.path.realpath(file))}
        for role, data in description["libraries"].items():
            for major, on in data.get("names", ()):
                if major is not None and any(_is_of(name, each) for name in names for each in on.values()):
                    found[role] = str(major)
    return found


def _is_of(name: str, file: str) -> bool:
    """Whether a file has a library's name, or that and more of the version: `libx.so.12.9` is of `libx.so.12`."""
    return name == file or name.startswith(file + ".")


# Headers


def _ask_headers(
    claims: Claims, headers: asking.Headers, document: Document, found: Findings
) -> dict[str, tuple[str, str]]:
    """Compare with what headers declare; the role and the signature of each function that they do."""
    if not headers.files:
        return {}
    functions, constants, layouts = [*claims.functions()], [*claims.constants()], [*claims.layouts()]
    named_numbers = claims.named_numbers()
    answers = asking.answers(headers, [*_questions(functions, constants, layouts, named_numbers)])
    _judge_functions(functions, answers, _covered(claims, functions, answers, headers), found)
    for subject in dict.fromkeys(each.subject for each in constants):
        _judge_constants([each for each in constants if each.subject == subject], answers, found)
    for layout in layouts:
        _judge_layout(layout, answers, _row(found, layout.subject))
    passed = [*claims.passed()]
    for of, of_numbers in named_numbers.items():
        values = {name: answers[f"value of {name}"].get("value") for name in of_numbers}
        is_inherited = document.is_inherited(("headers", "constants", of))
        _judge_passed(of, values, [each for each in passed if each.of == of], found, is_inherited=is_inherited)
    roles = {symbol: each.role for each in functions for symbol in each.symbols}
    return {
        symbol: (role, recording.written(answers[symbol]))
        for symbol, role in roles.items()
        if answers[symbol].get("kind") == "function"
    }


def _questions(
    functions: Iterable[Function],
    constants: Iterable[Constant],
    layouts: Iterable[Layout],
    named_numbers: Mapping[str, Iterable[str]],
) -> Iterator[asking.Question]:
    """What is asked of the headers, each once."""
    yield from map(asking.function, dict.fromkeys(symbol for each in functions for symbol in each.symbols))
    named = dict.fromkeys(each.name for each in constants if each.name)
    named |= dict.fromkeys(name for names in named_numbers.values() for name in names)
    yield from (asking.number(f"value of {name}", name) for name in named)
    for layout in layouts:
        yield asking.size(f"size of {layout.name}", layout.name)
        for field in layout.fields:
            for member in field.members:
                yield asking.field(f"{layout.name}.{member}", layout.name, member)


def _covered(
    claims: Claims, functions: Iterable[Function], answers: Mapping[str, Any], headers: asking.Headers
) -> set[str]:
    """The roles of which the headers declare anything. Raises: HeaderError where there is none."""
    covered = {each.role for each in functions if any("refused" not in answers[symbol] for symbol in each.symbols)}
    if not covered:
        names = ", ".join(file.name for file in headers.files)
        raise asking.HeaderError(
            f"{names} declares none of the functions of {claims.description['title']}",
            hint="name the headers that declare them, not one that belongs to another library",
        )
    return covered


def _row(found: Findings, subject: str) -> _Finding:
    return found.setdefault(subject, _Finding())


def _judge_functions(
    functions: Sequence[Function], answers: Mapping[str, Any], covered: set[str], found: Findings
) -> None:
    for (subject, _place), calls in _by_place(functions).items():
        row = _row(found, subject)
        here = [call for call in calls if call.role in covered]
        declared = [(call, symbol) for call in here for symbol in call.symbols if "refused" not in answers[symbol]]
        if not here:
            row.unknown(f"no header of `{calls[0].role}` was given")
        elif not declared and calls[0].may_lack:
            row.unknown(f"no header declares {_listed(calls[0].symbols)}, which is not of every version")
        elif not declared:
            row.checked(HEADER, [f"no header declares {_listed(symbol for call in here for symbol in call.symbols)}"])
        for call, symbol in declared:
            answer = answers[symbol]
            row.checked(HEADER, [f"`{symbol}` {each}" for each in differences(answer, [*call.takes], call.returns)])
            row.declared.append(f"{symbol}: {asking.spelled(answer)}")


def _by_place(functions: Iterable[Function]) -> dict[tuple[str, int], list[Function]]:
    grouped: dict[tuple[str, int], list[Function]] = {}
    for function in functions:
        grouped.setdefault((function.subject, function.place), []).append(function)
    return grouped


def _judge_constants(constants: Sequence[Constant], answers: Mapping[str, Any], found: Findings) -> None:
    """Numbers by their names; each that no header tells is a row of its own, unless none of them is told."""
    row = _row(found, constants[0].subject)
    told = {each: answers[f"value of {each.name}"] for each in constants if each.name}
    for each, answer in told.items():
        if "value" in answer:
            # a code is compared as the 32 bits that travel
            same = (answer["value"] - each.value) % (1 << 32) == 0
            said = f"`{each.word}` is {each.value} here, and `{each.name}` is {answer['value']}"
            row.checked(HEADER, [] if same else [said])
    if not row.by:
        row.notes.append("no header has these names" if told else "the file does not name them under `headers`")
        return
    for each in constants:
        if "value" not in told.get(each, {}):
            why = f"no header has `{each.name}`" if each.name else _UNNAMED.format(each.value)
            _row(found, f"{each.subject}.{each.word}").unknown(why)


def _judge_passed(
    of: str, values: Mapping[str, int | None], passed: Sequence[Passed], found: Findings, *, is_inherited: bool
) -> None:
    """Numbers in calls: each name is passed, and at the places of named numbers there are no others."""
    row = _row(found, f"headers.constants.{of}")
    if not passed:
        row.notes.append("nothing is given to it in this version")
        return
    given = {each.value % _WRAPS for each in passed}
    known = {value % _WRAPS for value in values.values() if value is not None}
    for name, value in values.items():
        if value is None:
            row.unknown(f"no header has `{name}`")
        elif value % _WRAPS in given:
            row.checked(HEADER)
        elif not is_inherited:  # else what is given it is another file's to say
            row.checked(HEADER, [f"nothing gives it `{name}`, which is {value}"])
    if None not in values.values():
        places = {each.place for each in passed if each.value % _WRAPS in known}
        for each in passed:
            if each.place in places and each.value % _WRAPS not in known:
                said = f"`{of}` is given {each.value}, which none of its names under `headers` is"
                _row(found, each.subject).checked(HEADER, [said])


_WRAPS = 1 << 64
_UNNAMED = "the file does not say under `headers` what {} is called"


def _judge_layout(layout: Layout, answers: Mapping[str, Any], row: _Finding) -> None:
    answer = answers[f"size of {layout.name}"]
    if "refused" in answer:
        row.notes.append(f"no header has a type `{layout.name}`")
        return
    nbytes = answer["value"]
    row.checked(
        HEADER, [] if nbytes == layout.nbytes else [f"has {layout.nbytes} bytes here, and {nbytes} in the header"]
    )
    for field in layout.fields:
        row.checked(HEADER, _field_faults(layout, answers, field))


def _field_faults(layout: Layout, answers: Mapping[str, Any], field: Field) -> Iterator[str]:
    told = [answers[f"{layout.name}.{member}"] for member in field.members]
    answer = next((each for each in told if "refused" not in each), None)
    if answer is None:
        named = _listed(field.members)
        yield f"`{layout.name}` has no member {named}: name the one of `{field.name}` under `headers.structs`"
        return
    if answer["offset"] != field.offset:
        yield f"`{field.name}` is at byte {field.offset} here, and at {answer['offset']} in the header"
    declared, stated = answer["type"], field.type
    is_same = declared["bytes"] == stated.nbytes if stated.kind == "bytes" else agrees(declared, stated)
    if not is_same:
        yield f"`{field.name}` is {stated} here, and {said(declared)} in the header"


# Libraries


def _ask_library(claims: Claims, file: Path, exported: symbols.Exports, found: Findings) -> Iterator[str]:
    """Compare with what a file exports; what is to be said of the file itself."""
    functions = [*claims.functions()]
    counts = {
        role: sum(bool(exported.functions & set(each.symbols)) for each in functions if each.role == role)
        for role in claims.versions
    }
    role = max(counts, key=lambda each: counts[each])
    if not counts[role]:
        raise symbols.SymbolsError(
            f"{file} exports none of the functions of {claims.description['title']}",
            hint="name the library that has them: this is another vendor's, or another part of this one's",
        )
    asked_for = claims.description["devices"] is not None and claims.description["devices"]["functions"] is not None
    for (subject, _place), calls in _by_place(each for each in functions if each.role == role).items():
        faults = [*_missing(calls, exported, file)]
        if faults and (asked_for or calls[0].may_lack):
            why = "it is asked for" if asked_for else "it is not of every version"
            _row(found, subject).notes.append(f"{faults[0]}: {why}")
        else:
            _row(found, subject).checked(file.name, faults)
    identity = claims.description["libraries"][role]["identity"]
    if identity:
        _row(found, f"libraries.{role}.identity").checked(file.name, _identity_faults(identity, exported, file))
    here = Machine().processor
    if exported.processor not in ("", here):
        yield (
            f"{file.name} is built for {exported.processor}, and this is {here}: it was read, but only the one "
            "for this machine can be tried"
        )


def _missing(calls: Sequence[Function], exported: symbols.Exports, file: Path) -> Iterator[str]:
    names = [symbol for call in calls for symbol in call.symbols]
    if exported.functions & set(names):
        return
    data = [symbol for symbol in names if symbol in exported.data]
    yield (
        f"{_listed(data)} is a data object in {file.name}, not a function: {_NO_FUNCTION}"
        if data
        else f"{file.name} does not export {_listed(names)}"
    )


_NO_FUNCTION = "name the function's own symbol, or give the operation a reason under `absent`"


def _identity_faults(identity: Mapping[str, Any], exported: symbols.Exports, file: Path) -> Iterator[str]:
    everything = exported.functions | exported.data
    yield from (f"{file.name} does not export `{name}`" for name in identity["exports"] if name not in everything)
    yield from (f"{file.name} exports `{name}`" for name in identity["lacks"] if name in everything)


# The result


def _leave_unverified(claims: Claims, found: Findings) -> None:
    """Every part of the file has a row, also where nothing was asked about it."""
    kinds: tuple[Callable[[], Iterable[Any]], ...] = (claims.functions, claims.constants, claims.layouts)
    named = (f"headers.constants.{of}" for of in claims.named_numbers())
    for subject in dict.fromkeys((*(each.subject for kind in kinds for each in kind()), *named)):
        row = _row(found, subject)
        if not row.by and not row.notes:
            row.notes.append("nothing was given that tells")


def _result(
    description: Mapping[str, Any], document: Document, claims: Claims, found: Findings, notes: Sequence[str]
) -> Result:
    order = ["operations", "devices", "state", "policies", "launch", "libraries", "enums", "structs", "headers"]
    subjects = sorted(found, key=lambda subject: order.index(subject.partition(".")[0]))
    rows = [
        Row(
            subject, _line(document, subject), found[subject].state, tuple(found[subject].by),
            tuple(found[subject].faults), tuple(found[subject].notes), tuple(found[subject].declared),
        )
        for subject in subjects
    ]  # fmt: skip
    said_versions = {role: ".".join(map(str, version)) for role, version in claims.versions.items()}
    return Result(
        description["name"], description["title"], description["file"], said_versions, tuple(rows), tuple(notes)
    )


def _line(document: Document, subject: str) -> int:
    """The line of a part, or of the nearest that holds it: words of an enum may stand in a list by version."""
    path = tuple(subject.split("."))
    while True:
        try:
            return document.place(path).line
        except (KeyError, TypeError):
            path = path[:-1]


def _listed(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in dict.fromkeys(names))
