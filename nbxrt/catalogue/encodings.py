"""Type encodings of Objective-C, the text by which its compiler writes down what a method takes and gives.

A type becomes a plain value: a word (the values of WORDS), or for a structure the tuple of its fields' types. What a
pointer points to does not travel, so it is parsed and forgotten. The binder makes C types of these values.
"""

from __future__ import annotations

from typing import Any

#: A word, or a structure as the tuple of its fields' types.
Type = Any
#: What a method returns, and the types of its arguments.
Signature = tuple[Type, tuple[Type, ...]]

#: The letter of each type that is one letter. `l` is an int: compilers write a 64-bit long as `q`.
WORDS = {
    "v": "void", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int", "I": "uint", "l": "int",
    "L": "uint", "q": "int64", "Q": "uint64", "f": "float", "d": "double", "D": "longdouble", "B": "bool",
    "*": "text", "@": "object", "#": "class", ":": "selector",
}  # fmt: skip

#: `const`, `in`, `inout`, `out`, `bycopy`, `byref`, `oneway`, `_Complex`'s kin: they change nothing about the call.
_QUALIFIERS = "rnNoORVA"
_MAX_DEPTH = 16


class EncodingError(ValueError):
    """An encoding that does not parse; `position` is where in its text."""

    def __init__(self, says: str, position: int) -> None:
        super().__init__(says)
        self.position = position


def parse(text: str) -> Signature:
    """What a method returns and takes, of an encoding without the receiver, the selector and stack offsets.

    Raises: EncodingError.
    """
    reader = _Reader(text, offsets=False)
    types = reader.types()
    if not types:
        raise EncodingError("is empty: a method that returns nothing and takes nothing is `v`", 0)
    returns, *arguments = types
    for at, argument in zip(reader.starts[1:], arguments, strict=True):
        if argument == "void":
            raise EncodingError("has an argument of type `v`, which is no value", at)
    return returns, tuple(arguments)


def parse_method(text: str) -> Signature:
    """What a method returns and takes, of the whole encoding that the Objective-C runtime gives for it.

    Raises: EncodingError.
    """
    types = _Reader(text, offsets=True).types()
    if len(types) < 3 or types[1:3] != ["object", "selector"]:
        raise EncodingError("does not have a receiver and a selector", 0)
    return types[0], tuple(types[3:])


def same(one: Signature, other: Signature) -> bool:
    """Whether two signatures are one to a caller: how compilers write a BOOL, and a block, differs."""
    return bool(_plain(one) == _plain(other))


def arguments_of(selector: str) -> int:
    """The number of arguments that a selector takes."""
    return selector.count(":")


def gives_ownership(selector: str, returns: Type) -> bool:
    """Whether the caller owns the object that a message gives, by the rule of names: alloc, new, copy, mutableCopy."""
    if returns != "object":
        return False
    name = selector.lstrip("_")
    families = (name[len(family) :] for family in ("alloc", "new", "copy", "mutableCopy") if name.startswith(family))
    return any(not rest[:1].islower() for rest in families)


def _plain(value: Type) -> Type:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return {"bool": "byte", "int8": "byte", "uint8": "byte", "block": "object"}.get(value, value)


class _Reader:
    """Reads types one after the other; `starts` are where those at the top begin."""

    def __init__(self, text: str, *, offsets: bool) -> None:
        self._text = text
        self._offsets = offsets
        self._at = 0
        self.starts: list[int] = []

    def types(self) -> list[Type]:
        found = []
        while self._at < len(self._text):
            self.starts.append(self._at)
            found.append(self._type(0, by_value=True))
            if self._offsets:
                self._number()
        return found

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _type(self, depth: int, *, by_value: bool) -> Type:
        if depth > _MAX_DEPTH:
            raise EncodingError(f"is nested deeper than {_MAX_DEPTH}", self._at)
        while self._peek() and self._peek() in _QUALIFIERS:
            self._at += 1
        letter, start = self._peek(), self._at
        self._at += 1
        if letter == "@":
            return self._object()
        if letter in WORDS:
            return WORDS[letter]
        if letter == "^":
            return self._pointer(depth)
        if letter == "{":
            return self._structure(depth, start, by_value=by_value)
        if not by_value and letter in _HIDDEN:
            return _HIDDEN[letter](self, depth)
        raise EncodingError(_why_not(letter), start)

    def _object(self) -> Type:
        """`@`, a block `@?`, or an object whose class is named, `@"NSString"`."""
        if self._peek() == "?":
            self._at += 1
            return "block"
        if self._peek() == '"':
            end = self._text.find('"', self._at + 1)
            if end < 0:
                raise EncodingError("has a class name that does not end", self._at)
            self._at = end + 1
        return "object"

    def _pointer(self, depth: int) -> Type:
        if self._peek() == "?":  # to a function
            self._at += 1
        else:
            self._type(depth + 1, by_value=False)
        return "pointer"

    def _structure(self, depth: int, start: int, *, by_value: bool) -> Type:
        fields = self._members(depth, "}", by_value=by_value)
        if by_value and not fields:
            raise EncodingError("passes a structure whose fields it does not name", start)
        if by_value and "void" in fields:
            raise EncodingError("has a structure with a field of type `v`, which is no value", start)
        return fields

    def _members(self, depth: int, end: str, *, by_value: bool) -> tuple[Type, ...]:
        """The fields up to the closing bracket, after a name and `=`, which may both be left out."""
        start = self._at - 1
        stops = [at for at in (self._text.find(each, self._at) for each in ("=", end, "{", "(")) if at >= 0]
        stop = min(stops, default=-1)
        if stop < 0 or self._text[stop] not in ("=", end):
            raise EncodingError(f"has a `{self._text[start]}` without a name and its `=`", start)
        self._at = stop
        members = []
        if self._peek() == "=":
            self._at += 1
            while self._peek() not in ("", end):
                if self._peek() == '"':  # the name of a field
                    self._object()
                else:
                    members.append(self._type(depth + 1, by_value=by_value))
        if self._peek() != end:
            raise EncodingError(f"has a `{self._text[start]}` that is never closed", start)
        self._at += 1
        return tuple(members)

    def _array(self, depth: int) -> Type:
        start = self._at - 1
        self._number()
        self._type(depth + 1, by_value=False)
        if self._peek() != "]":
            raise EncodingError("has a `[` that is never closed", start)
        self._at += 1
        return "pointer"

    def _union(self, depth: int) -> Type:
        self._members(depth, ")", by_value=False)
        return "pointer"

    def _bits(self, _depth: int) -> Type:
        self._number()
        return "pointer"

    def _unknown(self, _depth: int) -> Type:
        return "pointer"

    def _number(self) -> None:
        while self._peek().isdigit() or (self._offsets and self._peek() in ("+", "-")):
            self._at += 1


#: What may stand behind a pointer, and cannot be passed.
_HIDDEN = {"[": _Reader._array, "(": _Reader._union, "b": _Reader._bits, "?": _Reader._unknown}  # noqa: SLF001


def _why_not(letter: str) -> str:
    if not letter:
        return "ends where a type should stand"
    if letter.isdigit():
        return "has stack offsets, which are left out"
    named = {"[": "an array", "(": "a union", "b": "a bit field", "?": "a function"}.get(letter)
    return f"passes {named}, which does not travel by value" if named else f"has `{letter}`, which is no type"
