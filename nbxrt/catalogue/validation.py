"""Whether a backend file is right: its form by the JSON Schema, then its meaning; every fault at once.

Nothing is ever fetched: references in the schema are resolved before it is used, and a file's own `$ref` or `$schema`
is an unknown key. translation.py turns the schema's errors into sentences, meaning.py asks what no schema sees.
"""

from __future__ import annotations

import functools
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import meaning, reading, schema
from nbxrt.catalogue.subject import Subject
from nbxrt.catalogue.translation import MAX_ERRORS, translated

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Document

# What YAML 1.1 readers take for booleans, in the spellings that they do.
_BOOLEANS = frozenset(spelt for word in ("yes", "no", "on", "off") for spelt in (word, word.title(), word.upper()))


def validate_file(path: str | os.PathLike[str], contract: Contract | None = None) -> tuple[Diagnostic, ...]:
    """Every fault of a file, none when it is right; a file that is no YAML or cannot be read is a fault too."""
    scanned = reading.scan(Path(path), str(path))
    if scanned.document is None:
        return scanned.diagnostics
    told = {(fault.line, fault.column) for fault in scanned.diagnostics}
    found = _check_with_base(Path(path), scanned.document, contract or contracts.load())
    return _in_order([*scanned.diagnostics, *(each for each in found if (each.line, each.column) not in told)])


def check(document: Document, contract: Contract) -> tuple[Diagnostic, ...]:
    """Every fault of a document, in order of place.

    Meaning is asked only of what the schema accepts, so that one mistake gives one message. Of a file that extends
    another only the form is checked: what it means is asked of both together, in inheritance.py.
    """
    validator = _validator(contract)
    form = translated(validator.iter_errors(document.data), validator.schema, document, contract)
    subject = Subject.of(document, contract, form.broken)
    faults = [*form.diagnostics, *(meaning.check(subject) if form.is_complete and not is_part(document) else ())]
    misread = _misread_words(document, {(fault.line, fault.column) for fault in faults})
    return _in_order([*faults, *islice(misread, MAX_ERRORS)])


def is_part(document: Document) -> bool:
    """Whether a file says that it extends another."""
    return isinstance(document.data, dict) and "extends" in document.data


def _check_with_base(path: Path, document: Document, contract: Contract) -> tuple[Diagnostic, ...]:
    """Every fault of a file, together with what it extends."""
    if not is_part(document):
        return check(document, contract)
    from nbxrt.catalogue import inheritance, sources  # which check with this module

    found = sources.find(path)
    return inheritance.whole(found.given(path), found, contract).faults


def _in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by place; what was found twice, as happens in an aliased node, is said once."""
    once: dict[tuple[object, ...], Diagnostic] = {}
    for each in sorted(diagnostics):
        once.setdefault((each.file, each.line, each.column, each.reference, each.message), each)
    return tuple(once.values())


@functools.lru_cache(maxsize=4)
def _validator(contract: Contract) -> Any:
    """The schema's validator, made once a contract.

    References are replaced by what they refer to, which takes a third off the time and leaves nothing to look up.
    It answers the simplest conditions itself, which takes a fifth off the time.
    It differs from jsonschema's own in two points: 1.0 is no integer, and `$` is the end of a text, as in JavaScript,
    where Python also takes the place before a last line break.
    """
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    keywords = {"pattern": _check_pattern, "if": _check_if}
    strict = validators.extend(Draft202012Validator, keywords, type_checker=checker)  # type: ignore[no-untyped-call]
    whole = schema.generate(contract)
    return strict(_resolved(whole, whole["$defs"], {}), registry=Registry())


def _is_integer(_checker: object, instance: object) -> bool:
    return isinstance(instance, int) and not isinstance(instance, bool)


def _check_pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not _compiled(pattern).search(instance):
        yield ValidationError("the pattern does not match")


def _check_if(validator: Any, condition: dict[str, Any], instance: object, whole: dict[str, Any]) -> Iterator[Any]:
    branch = "then" if _holds(validator, condition, instance) else "else"
    if branch in whole:
        yield from validator.descend(instance, whole[branch], schema_path=branch)


def _holds(validator: Any, condition: dict[str, Any], instance: object) -> bool:
    """Whether a condition holds; a type or a list of keys, as most of ours are, need no validator of their own."""
    if condition.keys() == {"type"} and isinstance(condition["type"], str):
        return bool(validator.is_type(instance, condition["type"]))
    if condition.keys() == {"required"}:
        return not isinstance(instance, dict) or all(key in instance for key in condition["required"])
    return bool(validator.evolve(schema=condition).is_valid(instance))


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern)


def _resolved(node: Any, definitions: dict[str, Any], done: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_resolved(each, definitions, done) for each in node]
    if not isinstance(node, dict):
        return node
    own = {key: _resolved(value, definitions, done) for key, value in node.items() if key not in ("$ref", "$defs")}
    if "$ref" not in node:
        return own
    name = node["$ref"].rpartition("/")[2]
    if name not in done:
        done[name] = _resolved(definitions[name], definitions, done)
    return {**done[name], **own} if own else done[name]


def _misread_words(document: Document, told: set[tuple[int, int]]) -> Iterator[Diagnostic]:
    """Unquoted words that are text here and booleans to YAML 1.1 readers."""
    for path, (at, _key_at, written, is_plain) in document.nodes():
        key = path[-1] if path else ""
        if path and str(path[0]).startswith("x-"):
            continue
        if is_plain and written in _BOOLEANS and at[:2] not in told:
            yield _misread(document, path, str(written), "value")
        if key in _BOOLEANS and not document.is_quoted(path):
            yield _misread(document, path, str(key), "key")


def _misread(document: Document, path: tuple[str | int, ...], word: str, at: str) -> Diagnostic:
    message = f"`{word}` is text here, and a boolean to other YAML readers"
    return document.diagnostic(path, "misread-word", message, at=at, hint=f'quote it: `"{word}"`')
