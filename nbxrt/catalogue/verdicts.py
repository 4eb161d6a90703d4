"""The schema as functions that only say whether a value is right: many times as fast as finding out what is wrong.

jsonschema finds out, of the values that are refused here. A test holds the two together.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Verdict = Callable[[Any], bool]
    Schema = dict[str, Any]

#: Keywords that say nothing of a value.
_SILENT = {"$schema", "$id", "$defs", "title", "description", "examples", "then", "else"}
#: Keywords that are read together with another: additionalProperties with these two, items with the third.
_TOGETHER = {"properties", "patternProperties", "prefixItems"}


def without_references(schema: Schema) -> Schema:
    """The schema in which each reference is replaced by what it refers to; what is used twice stays one object."""
    found: Schema = _resolved(schema, schema["$defs"], {})
    return found


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


class Verdicts:
    """Makes the function of each schema once, however many others use it."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Schema, Verdict]] = {}  # the schema is kept, so that its id stays its own

    def of(self, schema: Schema | bool) -> Verdict:
        """The function of a schema. Raises: KeyError for a keyword that is not known here."""
        if isinstance(schema, bool):
            return lambda _value: schema
        if id(schema) not in self._made:
            self._made[id(schema)] = schema, _all_of(list(self._parts(schema)))
        return self._made[id(schema)][1]

    def _parts(self, schema: Schema) -> Iterable[Verdict]:
        if "type" in schema:
            yield _type(schema["type"])
        if any(key in schema for key in ("properties", "patternProperties", "additionalProperties")):
            yield self._properties(schema)
        if any(key in schema for key in ("items", "prefixItems")):
            yield self._items(schema)
        for key, value in schema.items():
            if key in _SCHEMAS:
                yield _SCHEMAS[key](self, value, schema)
            elif key in _PLAIN:
                yield _PLAIN[key](value)
            elif key not in _SILENT | _TOGETHER | {"type", "items", "additionalProperties"}:
                raise KeyError(key)

    def _properties(self, schema: Schema) -> Verdict:
        named = {key: self.of(inner) for key, inner in schema.get("properties", {}).items()}
        matching = [(searched(key), self.of(inner)) for key, inner in schema.get("patternProperties", {}).items()]
        other = self.of(schema.get("additionalProperties", True))

        def check(value: Any) -> bool:
            if not isinstance(value, dict):
                return True
            for key, inner in value.items():
                own = named.get(key)
                verdicts = [verdict for pattern, verdict in matching if pattern.search(key)] if matching else []
                if own is not None:
                    verdicts.append(own)
                if not all(verdict(inner) for verdict in verdicts or (other,)):
                    return False
            return True

        return check

    def _items(self, schema: Schema) -> Verdict:
        first = [self.of(inner) for inner in schema.get("prefixItems", ())]
        rest = self.of(schema.get("items", True))
        count = len(first)

        def check(value: Any) -> bool:
            if not isinstance(value, list):
                return True
            starts = all(verdict(item) for verdict, item in zip(first, value, strict=False))
            return starts and all(map(rest, value[count:] if count else value))

        return check

    def _all_of(self, schemas: list[Schema], _whole: Schema) -> Verdict:
        return _all_of([self.of(each) for each in schemas])

    def _condition(self, condition: Schema, whole: Schema) -> Verdict:
        holds, then, otherwise = self.of(condition), self.of(whole.get("then", True)), self.of(whole.get("else", True))
        return lambda value: then(value) if holds(value) else otherwise(value)

    def _contains(self, schema: Schema, _whole: Schema) -> Verdict:
        is_one = self.of(schema)
        return lambda value: not isinstance(value, list) or any(map(is_one, value))

    def _names(self, schema: Schema, _whole: Schema) -> Verdict:
        is_right = self.of(schema)
        return lambda value: not isinstance(value, dict) or all(map(is_right, value))


def _all_of(verdicts: list[Verdict]) -> Verdict:
    if len(verdicts) == 1:
        return verdicts[0]
    if len(verdicts) == 2:
        one, other = verdicts
        return lambda value: one(value) and other(value)
    return lambda value: all(verdict(value) for verdict in verdicts)


def is_integer(value: object) -> bool:
    """Whether a value is an integer here; 1.0 is none, and neither is true."""
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, Verdict] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": is_integer,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _type(names: str | list[str]) -> Verdict:
    if isinstance(names, str):
        return _TYPES[names]
    checks = [_TYPES[name] for name in names]
    return lambda value: any(check(value) for check in checks)


def _scalar(value: Any) -> tuple[bool, Any]:
    """What is equal as JSON is: true is not 1."""
    return isinstance(value, bool), value


def _enum(words: list[Any]) -> Verdict:
    known = {_scalar(word) for word in words}
    return lambda value: not isinstance(value, (dict, list)) and _scalar(value) in known


def _unique(wanted: bool) -> Verdict:
    return lambda value: not wanted or not isinstance(value, list) or next(repeated(value), None) is None


def repeated(items: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The places in a list of what it has held before, and where that was first.

    Comparing every pair takes minutes where there are thousands.
    """
    seen: dict[Any, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(_comparable(item), index)
        if first != index:
            yield index, first


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((key, _comparable(each)) for key, each in value.items())
    return tuple(map(_comparable, value)) if isinstance(value, list) else _scalar(value)


def _pattern(pattern: str) -> Verdict:
    search = searched(pattern).search
    return lambda value: not isinstance(value, str) or search(value) is not None


@functools.cache
def searched(pattern: str) -> re.Pattern[str]:
    """A pattern in which `$` is the end of a text, as in JavaScript: Python also stops before a last break."""
    return re.compile(f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _required(keys: list[str]) -> Verdict:
    return lambda value: not isinstance(value, dict) or all(key in value for key in keys)


_PLAIN: dict[str, Callable[[Any], Verdict]] = {
    "enum": _enum,
    "const": lambda word: _enum([word]),
    "pattern": _pattern,
    "required": _required,
    "uniqueItems": _unique,
    "minimum": lambda bound: lambda value: not _is_number(value) or value >= bound,
    "maximum": lambda bound: lambda value: not _is_number(value) or value <= bound,
    "minItems": lambda bound: lambda value: not isinstance(value, list) or len(value) >= bound,
    "maxItems": lambda bound: lambda value: not isinstance(value, list) or len(value) <= bound,
    "minProperties": lambda bound: lambda value: not isinstance(value, dict) or len(value) >= bound,
    "maxProperties": lambda bound: lambda value: not isinstance(value, dict) or len(value) <= bound,
}

_SCHEMAS: dict[str, Callable[[Verdicts, Any, Schema], Verdict]] = {
    "allOf": Verdicts._all_of,  # noqa: SLF001
    "if": Verdicts._condition,  # noqa: SLF001
    "contains": Verdicts._contains,  # noqa: SLF001
    "propertyNames": Verdicts._names,  # noqa: SLF001
}
