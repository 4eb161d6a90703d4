"""What headers declare, kept in a file: one signature a function, with the releases and the headers that say so.

A signature is written as the binary interface has it, `e4(p(p), u8)`: kind and bytes of the result, then those of each
parameter, and what pointers point to. It holds no text of the header.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nbxrt.verifying.result import Result

    Version = tuple[int, ...]

_LETTERS = {"integer": "u", "enum": "e", "float": "f", "struct": "s", "array": "a", "void": "v", "function": "c"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()} | {"i": "integer"}
_TYPE = re.compile(r"(?P<letter>[uiefsavcp])(?P<bytes>\d*)")


class RecordError(errors.NbxrtError):
    """A file of signatures that cannot be read."""

    reference = "record"


@attrs.frozen
class Release:
    """What was read: the versions by role, the SHA-256 of each header by its file name."""

    versions: Mapping[str, str]
    headers: Mapping[str, str]


@attrs.frozen
class Record:
    """The functions of a backend as the headers of some releases declare them.

    `functions` has the role of each function, and its signatures with the releases that have them.
    """

    backend: str
    releases: Mapping[str, Release]
    functions: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]]

    def nearest(self, version: Version) -> str:
        """The release for a version: of its major, else an older one, else the oldest."""
        numbers = {name: _numbers(name) for name in self.releases}
        of_major = [name for name, each in numbers.items() if version and each[:1] == version[:1]]
        among = of_major or list(numbers)
        older = [name for name in among if not version or numbers[name] <= version]
        return max(older, key=numbers.__getitem__) if older else min(among, key=numbers.__getitem__)

    def declared(self, symbol: str, release: str) -> Mapping[str, Any] | None:
        """The declaration in a release, as the compiler told it; None where its headers have no such function."""
        _role, signatures = self.functions.get(symbol, ("", {}))
        return next((parsed(text) for text, releases in signatures.items() if release in releases), None)


def written(declared: Mapping[str, Any]) -> str:
    """A declaration as text: of a function, or of a type."""
    if "takes" in declared:
        return f"{written(declared['returns'])}({', '.join(map(written, declared['takes']))})"
    kind = declared["kind"]
    if kind == "pointer":
        return f"p({written(declared['to'])})"
    letter = "i" if kind == "integer" and declared["signed"] else _LETTERS[kind]
    return letter if kind in ("void", "function") else f"{letter}{declared['bytes']}"


@functools.cache
def parsed(text: str) -> Mapping[str, Any]:
    """The declaration of a function, from its text. Raises: ValueError."""
    returns, rest = _type(text)
    takes = []
    rest = rest.removeprefix("(")
    while not rest.startswith(")"):
        one, rest = _type(rest.removeprefix(", "))
        takes.append(one)
    return {"kind": "function", "returns": returns, "takes": takes}


def _type(text: str) -> tuple[dict[str, Any], str]:
    """The type at the beginning of a text, and what follows it."""
    found = _TYPE.match(text)
    if found is None:
        raise ValueError(text)
    rest = text[found.end() :]
    if found["letter"] == "p":
        to, rest = _type(rest.removeprefix("("))
        return {"kind": "pointer", "bytes": 8, "signed": False, "to": to}, rest.removeprefix(")")
    nbytes = int(found["bytes"] or 0)
    return {"kind": _KINDS[found["letter"]], "bytes": nbytes, "signed": found["letter"] == "i"}, rest


def _numbers(release: str) -> Version:
    return tuple(int(part) for part in release.split(".") if part.isdigit())


# The file


def load(file: Any) -> Record:
    """The record in a file. Raises: RecordError."""
    try:
        data = json.loads(file.read_text("utf-8"))
        releases = {
            name: Release(dict(each["versions"]), dict(each["headers"])) for name, each in data["releases"].items()
        }
        functions = {
            symbol: (str(each["role"]), {text: tuple(of) for text, of in each["is"].items()})
            for symbol, each in data["functions"].items()
        }
        for _role, signatures in functions.values():
            for text in signatures:
                parsed(text)
        return Record(data["backend"], releases, functions)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{file} is no record of signatures: {error!r}", hint="write it anew with `nbxrt verify --record`"
        ) from error


def hashes(files: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of each file by its name."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def with_result(record: Record | None, result: Result) -> Record:
    """The record with the release that a comparison was made with, which replaces one of its name."""
    release = result.versions["runtime"] or "0"
    functions: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {}
    for symbol, (role, signatures) in (record.functions if record else {}).items():
        without = {text: tuple(name for name in of if name != release) for text, of in signatures.items()}
        functions[symbol] = (role, {text: of for text, of in without.items() if of})
    for symbol, (role, text) in result.signatures.items():
        kept = functions.get(symbol, (role, {}))[1]
        of = tuple(sorted((*kept.get(text, ()), release), key=_numbers))
        functions[symbol] = (role, {**kept, text: of})
    releases = {**(record.releases if record else {}), release: Release(result.versions, result.headers)}
    return Record(
        result.backend,
        {name: releases[name] for name in sorted(releases, key=_numbers)},
        {symbol: functions[symbol] for symbol in sorted(functions) if functions[symbol][1]},
    )


def keep(file: Path, result: Result) -> None:
    """Write a comparison's release into a file; releases of other versions stay. Raises: RecordError, OSError."""
    record = with_result(load(file) if file.exists() else None, result)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text_of(record), "utf-8")


def text_of(record: Record) -> str:
    """The file's text: JSON with a line for each function, so that a change is a line."""
    functions = ",\n".join(
        f"  {json.dumps(symbol)}: {json.dumps({'role': role, 'is': signatures})}"
        for symbol, (role, signatures) in record.functions.items()
    )
    releases = json.dumps({name: attrs.asdict(each) for name, each in record.releases.items()}, indent=1)
    return (
        f'{{\n "backend": {json.dumps(record.backend)},\n "releases": {releases.replace(chr(10), chr(10) + " ")},\n'
        f' "functions": {{\n{functions}\n }}\n}}\n'
    )
