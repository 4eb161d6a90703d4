"""Whether a document is right: its form by the JSON Schema, then its meaning; every fault at once.

Nothing is ever fetched: references in the schema are resolved before it is used, and a file's own `$ref` or `$schema`
is an unknown key. translation.py turns the schema's errors into sentences, meaning.py asks what no schema sees.
"""

from __future__ import annotations

import functools
from itertools import islice
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import meaning, schema, verdicts
from nbxrt.catalogue.misreading import misread_words
from nbxrt.catalogue.subject import Subject
from nbxrt.catalogue.translation import MAX_ERRORS, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Document


def check(document: Document, contract: Contract) -> tuple[Diagnostic, ...]:
    """Every fault of a document, in order of place.

    Meaning is asked only of what the schema accepts, so that one mistake gives one message. Of a file that extends
    another only the form is checked: what it means is asked of both together, in inheritance.py.
    """
    validator, is_right = _validator(contract)
    errors = () if is_right(document.data) else validator.iter_errors(document.data)
    form = translated(errors, validator.schema, document, contract)
    subject = Subject.of(document, contract, form.broken)
    faults = [*form.diagnostics, *(meaning.check(subject) if form.is_complete and not is_part(document) else ())]
    misread = misread_words(document, {(fault.line, fault.column) for fault in faults})
    return in_order([*faults, *islice(misread, MAX_ERRORS)])


def is_part(document: Document) -> bool:
    """Whether a file says that it extends another."""
    return isinstance(document.data, dict) and "extends" in document.data


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by place; what was found twice, as happens in an aliased node, is said once."""
    once: dict[tuple[object, ...], Diagnostic] = {}
    for each in sorted(diagnostics):
        once.setdefault((each.file, each.line, each.column, each.reference, each.message), each)
    return tuple(once.values())


@functools.lru_cache(maxsize=4)
def _validator(contract: Contract) -> tuple[Any, Callable[[Any], bool]]:
    """The schema's validator, and what says whether it has anything to find; made once a contract.

    References are replaced by what they refer to, which takes a third off the time and leaves nothing to look up. Most
    of a file is right: only what is not is left to the validator.
    It differs from jsonschema's own in two points: 1.0 is no integer, and `$` is the end of a text, as in JavaScript.
    """
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    resolved = verdicts.without_references(schema.generate(contract))
    made = verdicts.Verdicts()

    def check_if(validator: Any, condition: Any, instance: object, around: dict[str, Any]) -> Iterator[Any]:
        branch = "then" if made.of(condition)(instance) else "else"
        if branch in around:
            yield from validator.descend(instance, around[branch], schema_path=branch)

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _checker, value: verdicts.is_integer(value))
    keywords = {"pattern": _check_pattern, "if": check_if, "uniqueItems": _check_unique}
    strict: Any = validators.extend(Draft202012Validator, keywords, type_checker=checker)  # type: ignore[no-untyped-call]
    find_all = strict.descend

    def descend(self: Any, instance: Any, schema: Any, *where: Any, **named: Any) -> Iterator[Any]:
        if not made.of(schema)(instance):
            yield from find_all(self, instance, schema, *where, **named)

    strict.descend = descend
    return strict(resolved, registry=Registry()), made.of(resolved)


def _check_pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not verdicts.searched(pattern).search(instance):
        yield ValidationError("the pattern does not match")


def _check_unique(_validator: object, wanted: bool, instance: object, _schema: object) -> Iterator[Any]:
    from jsonschema import ValidationError

    if wanted and isinstance(instance, list) and any(True for _index in verdicts.repeated(instance)):
        yield ValidationError("an item is repeated")
