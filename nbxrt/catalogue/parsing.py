"""From text to a document: YAML's events, put together without recursion and within limits.

PyYAML's C parser gives the events, because its marks are exact in characters and it is the fastest (the whole contract:
2.3 ms; PyYAML's Python parser, which stands in for it, 44; ruamel.yaml 60). Only its events are used: they stream, so
that limits on depth and aliases hold before anything is built, and its resolver, which is YAML 1.1's, is never asked.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import yaml

from nbxrt.catalogue import syntax_advice
from nbxrt.catalogue.diagnostics import Diagnostic, Related, quoted
from nbxrt.catalogue.document import At, Document, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A description is about 100 KB and 5,000 nodes; a file beyond these is an accident or an attack.
MAX_NODES = 50_000
MAX_DEPTH = 64
MAX_ALIASES = 1_000
MAX_NUMBER_LENGTH = 40
MAX_FAULTS = 100
MAX_DIRECTIVES = 8

_PARSER: Any = getattr(yaml, "CLoader", yaml.Loader)

# What YAML 1.2 calls a line break; reading.py refuses what only YAML 1.1 counts as one.
LINE_BREAK = re.compile(r"\r\n|\r|\n")

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), int),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), lambda text: float(text.replace(".", ""))),
)


class Refused(Exception):  # noqa: N818 - reading.py turns it into a value
    """Ends the reading of a file."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


def at_index(text: str, index: int, name: str, reference: str, message: str, **facts: Any) -> Diagnostic:
    """A fault at a character of the text."""
    lines = LINE_BREAK.split(text[:index])
    rest = LINE_BREAK.split(text[index : index + 1000])[0]
    column = len(lines[-1]) + 1
    return Diagnostic(name, len(lines), column, column + 1, reference, message, source=lines[-1] + rest, **facts)


def parse(text: str, name: str, faults: list[Diagnostic]) -> Document:
    """The document that the text holds; faults that do not end the reading are added to `faults`. Raises: Refused."""
    return _Builder(text, name, faults).document()


@attrs.define
class _Node:
    """A finished node; `weight` and `height` are those of its tree with all aliases unfolded."""

    value: Any
    at: At
    written: str | None = None
    is_plain: bool = False
    weight: int = 1
    height: int = 0


@attrs.define
class _Open:
    """A mapping or sequence whose end has not come yet; `key` is the one whose value comes next."""

    value: dict[str, Any] | list[Any]
    at: At
    anchor: str | None
    weight_before: int
    height: int = 0
    key: _Node | None = None
    is_skipped: bool = False
    keys: dict[tuple[type, Any], _Node] = attrs.field(factory=dict)
    entries: dict[str | int, Entry] = attrs.field(factory=dict)
    merges: dict[str | int, At] = attrs.field(factory=dict)


class _Builder:
    """Builds the document from the parser's events, on a stack of its own."""

    def __init__(self, text: str, name: str, faults: list[Diagnostic]) -> None:
        self.text = text
        self.name = name
        self.faults = faults
        self.lines = LINE_BREAK.split(text)
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Node | None] = {}
        self.entries: dict[int, dict[str | int, Entry]] = {}
        self.merges: dict[int, tuple[Any, dict[str | int, At]]] = {}
        self.root: _Node | None = None
        self.nodes = 0
        self.aliases = 0
        self.documents = 0
        self.scalar_starts: list[int] = []
        self.scalar_ends: list[int] = []

    def document(self) -> Document:
        self._read_events()
        self._find_tabs()
        if self.root is None or (self.root.written == "" and self.root.is_plain):
            self._refuse_empty()
        root = (self.root.at, None, self.root.written, self.root.is_plain)
        return Document(self.name, self.root.value, tuple(self.lines), root, self.entries, self.merges)

    def _read_events(self) -> None:
        # libyaml compares each %TAG with all before it: a megabyte of them would take a minute.
        if self.text.count("\n%") > MAX_DIRECTIVES:
            index = self.text.index("\n%") + 1
            self._refuse_at(index, "invalid-yaml", f"more than {MAX_DIRECTIVES} lines begin with `%`")
        try:
            for event in yaml.parse(self.text, Loader=_PARSER):
                _HANDLERS[type(event)](self, event)
        except yaml.YAMLError as error:
            self._refuse_syntax(error)

    def _ignore(self, event: Any) -> None:
        pass

    def _start_document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            line = event.start_mark.line + 1
            self._refuse(event, "several-documents", f"a second document starts at line {line}: a file holds one")
        if event.version not in (None, (1, 2)):
            version = ".".join(map(str, event.version))
            self._report(event, "yaml-version", f"the file says `%YAML {version}`, and is read as YAML 1.2")

    def _scalar(self, event: Any) -> None:
        self.scalar_starts.append(event.start_mark.index)
        self.scalar_ends.append(event.end_mark.index)
        is_plain = not event.style
        written = event.value if is_plain else self.text[event.start_mark.index : event.end_mark.index]
        value = _plain_value(event.value) if is_plain and event.tag != _TEXT_TAG else event.value
        self._finish(_Node(value, self._span(event), written, is_plain), event, event.anchor)

    def _alias(self, event: Any) -> None:
        shown = quoted("*" + event.anchor)
        if event.anchor not in self.anchors:
            self._refuse(event, "unknown-alias", f"the alias {shown} has no anchor before it")
        target = self.anchors[event.anchor]
        if target is None:
            self._refuse(event, "recursive-alias", f"the alias {shown} is recursive: it stands inside its own anchor")
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            self._refuse(event, "too-many-aliases", f"too many aliases: the file has more than {MAX_ALIASES}")
        if self.nodes + target.weight > MAX_NODES:
            self._refuse(
                event, "too-many-aliases", f"too many aliases: the file unfolds to more than {MAX_NODES} nodes"
            )
        self._check_depth(event, target.height)
        alias = attrs.evolve(target, at=self._span(event))
        self.nodes += target.weight - 1  # _finish counts one
        self._finish(alias, event, None)

    def _open(self, event: Any) -> None:
        self._check_depth(event, 1)
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(_Open(value, self._span(event), event.anchor, self.nodes))
        self._check_tag(event)

    def _close(self, event: yaml.Event) -> None:
        done = self.stack.pop()
        self.entries[id(done.value)] = done.entries
        if done.merges:
            self.merges[id(done.value)] = done.value, done.merges
        at = self._closed_span(done.at, event)
        node = _Node(done.value, at, weight=self.nodes - done.weight_before + 1, height=done.height + 1)
        self._finish(node, event, done.anchor)

    def _finish(self, node: _Node, event: Any, anchor: str | None) -> None:
        """Gives a node its place in the container that is open."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._refuse(event, "too-many-nodes", f"the file has more than {MAX_NODES} nodes")
        if anchor is not None:
            self.anchors[anchor] = node
        if isinstance(event, yaml.ScalarEvent):
            self._check_tag(event)
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        parent.height = max(parent.height, node.height)
        if isinstance(parent.value, list):
            parent.entries[len(parent.value)] = (node.at, None, node.written, node.is_plain)
            parent.value.append(node.value)
        elif parent.key is None:
            parent.key = node
            parent.is_skipped = not self._accept_key(node, parent)
        else:
            self._add_value(parent, parent.value, parent.key, node)

    def _add_value(self, parent: _Open, mapping: dict[str, Any], key: _Node, node: _Node) -> None:
        if _is_merge(key):
            self._merge(parent, mapping, key, node)
        elif not parent.is_skipped:
            name = key.value if isinstance(key.value, str) else str(key.written)
            mapping[name] = node.value
            parent.entries[name] = (node.at, key.at, node.written, node.is_plain)
            parent.merges.pop(name, None)
        parent.key = None

    def _merge(self, parent: _Open, mapping: dict[str, Any], key: _Node, node: _Node) -> None:
        """Takes over what a mapping does not say itself; of several mappings the first that says it counts."""
        if parent.is_skipped:
            return
        for each, at in self._merged(node):
            if not isinstance(each, dict):
                message = "a merge key `<<` takes a mapping or a list of mappings"
                self._report_at(at if at[2] > at[1] else key.at, "merge-key", message)
                continue
            for name in each:
                if name not in mapping:
                    mapping[name] = each[name]
                    parent.entries[name] = self.entries[id(each)][name]
                    parent.merges[name] = key.at

    def _merged(self, node: _Node) -> Iterator[tuple[Any, At]]:
        """What stands behind a merge key, one by one, and where."""
        if isinstance(node.value, list):
            places = self.entries[id(node.value)]
            yield from ((each, places[index][0]) for index, each in enumerate(node.value))
        else:
            yield node.value, node.at

    def _accept_key(self, key: _Node, parent: _Open) -> bool:
        """Whether the pair goes into the mapping; every fault of the key is reported here."""
        if key.written is None:
            line, column, _end = key.at
            hint = syntax_advice.for_mapping_as_key(self.lines[line - 1][column - 2 : column])
            self._report_at(key.at, "non-string-key", "a key is text, not a list or mapping", hint=hint)
            return False
        identity = (type(key.value), key.value)
        first = parent.keys.setdefault(identity, key)
        if first is not key:
            self._report_duplicate(key, first)
            return False
        if key.value == "<<" and not key.is_plain:
            hint = "without quotes it merges; no key of a description has this name"
            self._report_at(key.at, "merge-key", "a merge key `<<` stands in quotes, and merges nothing", hint=hint)
            return False
        if not isinstance(key.value, str):
            above = [each.key.value for each in self.stack[:-1] if each.key is not None]
            hint = syntax_advice.for_number_as_key(above, key.written)
            self._report_at(key.at, "non-string-key", f"a key is text, not {_kind(key)}", hint=hint)
            return bool(key.written)
        return True

    def _report_duplicate(self, key: _Node, first: _Node) -> None:
        line, column, _end = first.at
        same = "" if key.written == first.written else f", the same as {quoted(first.written)}"
        message = f"duplicate key {quoted(key.written)}{same}; first at line {line}"
        related = Related("first", self.name, line, column)
        self._report_at(key.at, "duplicate-key", message, related=(related,))

    def _check_tag(self, event: Any) -> None:
        if event.tag is None:
            return
        short = event.tag.replace("tag:yaml.org,2002:", "!!", 1)
        hint = "quote what is meant as text" if short == "!!str" else ""
        self._report(event, "yaml-tag", f"tags such as {quoted(short)} are not read", hint=hint)

    def _check_depth(self, event: Any, height: int) -> None:
        if len(self.stack) + height > MAX_DEPTH:
            self._refuse(event, "too-deep", f"nested deeper than {MAX_DEPTH}")

    def _find_tabs(self) -> None:
        """Reports tabs between tokens: YAML's readers disagree about them, PyYAML's own two parsers included."""
        for line in _LINE_WITH_TAB.finditer(self.text):
            for found in re.compile(r"\t+").finditer(self.text, line.start(), self._comment_start(line)):
                if not self._in_scalar(found.start()):
                    at = self._at(*found.span())
                    self._report_at(at, "tab", "a tab stands between words of YAML", hint=_TAB_HINT)

    def _comment_start(self, line: re.Match[str]) -> int:
        """Where a line's comment begins, or its end."""
        starts = (found.start() for found in _COMMENT.finditer(self.text, line.start(), line.end()))
        return next((start for start in starts if not self._in_scalar(start)), line.end())

    def _in_scalar(self, index: int) -> bool:
        before = bisect_right(self.scalar_starts, index) - 1
        return before >= 0 and index < self.scalar_ends[before]

    def _span(self, event: Any) -> At:
        start, end = event.start_mark, event.end_mark
        return self._stretch(start.line, start.column, end.line, end.column)

    def _closed_span(self, start: At, event: Any) -> At:
        line, column, _end = start
        return self._stretch(line - 1, column - 1, event.end_mark.line, event.end_mark.column)

    def _stretch(self, line: int, column: int, end_line: int, end_column: int) -> At:
        """Line, column and end column from 1; what goes on over several lines ends with its first."""
        end = end_column if end_line == line else len(self.lines[line]) if line < len(self.lines) else column
        return line + 1, column + 1, max(end, column) + 1

    def _at(self, start: int, end: int) -> At:
        before = LINE_BREAK.split(self.text[:start])
        column = len(before[-1]) + 1
        return len(before), column, column + end - start

    def _report_at(self, at: At, reference: str, message: str, **facts: Any) -> None:
        line, column, end_column = at
        source = self.lines[line - 1] if line <= len(self.lines) else ""
        diagnostic = Diagnostic(self.name, line, column, end_column, reference, message, source=source, **facts)
        if len(self.faults) >= MAX_FAULTS:
            raise Refused(diagnostic)
        self.faults.append(diagnostic)

    def _report(self, event: Any, reference: str, message: str, **facts: Any) -> None:
        self._report_at(self._span(event), reference, message, **facts)

    def _refuse(self, event: Any, reference: str, message: str, **facts: Any) -> NoReturn:
        line, column, end_column = self._span(event)
        source = self.lines[line - 1] if line <= len(self.lines) else ""
        raise Refused(Diagnostic(self.name, line, column, end_column, reference, message, source=source, **facts))

    def _refuse_at(self, index: int, reference: str, message: str, **facts: Any) -> NoReturn:
        raise Refused(at_index(self.text, index, self.name, reference, message, **facts))

    def _refuse_syntax(self, error: yaml.YAMLError) -> NoReturn:
        began, index = self._index(error, "context_mark"), self._index(error, "problem_mark")
        problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed")
        self._refuse_known(problem, index)
        # What is never closed is found at the end of the file, and mended where it begins; so is a key without a colon.
        end = len(self.text.rstrip())
        is_key = problem == "could not find expected ':'"
        where = index if index < end and not is_key else min(began, end)
        notes = _context(error) if began < end and not is_key else ()
        hint = syntax_advice.for_syntax(problem, is_begun=self.documents > 0)
        self._refuse_at(where, "invalid-yaml", f"not valid YAML: {problem}", notes=notes, hint=hint)

    def _refuse_known(self, problem: str, index: int) -> None:
        """Refuse what the parser has stumbled over, where that has a name of its own."""
        if self.text[index : index + 1] == "\t" or "tab character" in problem:
            self._refuse_at(index, "tab", "a tab stands where YAML wants spaces", hint=_TAB_HINT)
        if "nesting depth" in problem:  # libyaml looks ahead, and meets its own limit before we see an event
            self._refuse_at(index, "too-deep", f"nested deeper than {MAX_DEPTH}")
        if "incompatible YAML" in problem or "version number" in problem:
            begins = max(self.text.rfind(each, 0, index) for each in "\r\n") + 1
            version = " ".join(LINE_BREAK.split(self.text[begins:])[0].split()[:2])
            self._refuse_at(begins, "yaml-version", f"the file says {quoted(version)}, and is read as YAML 1.2")
        if _NOTHING.fullmatch(self.text):
            self._refuse_empty()
        for found, message, hint in syntax_advice.lookalikes(self.text, index):
            self._refuse_at(found, "invalid-yaml", f"not valid YAML: {message}", hint=hint)

    def _refuse_empty(self) -> NoReturn:
        raise Refused(Diagnostic(self.name, 1, 1, 1, "empty-document", "the file is empty"))

    def _index(self, error: yaml.YAMLError, name: str) -> int:
        mark = getattr(error, name, None)
        return min(mark.index, len(self.text)) if mark is not None else 0


_LINE_WITH_TAB = re.compile(r"(?<![^\r\n])[^\t\r\n]*\t[^\r\n]*")
_NOTHING = re.compile(r"(?:[ ]*(?:#[^\r\n]*)?(?:[\r\n]+|\Z)|(?:---|\.\.\.)[ ]*(?:[\r\n]+|\Z))*")
_COMMENT = re.compile(r"(?<![^ \t\r\n])#")
_TEXT_TAG = "tag:yaml.org,2002:str"
_TAB_HINT = "use spaces: YAML does not indent with tabs"

_HANDLERS: dict[type, Any] = {
    yaml.StreamStartEvent: _Builder._ignore,  # noqa: SLF001 - the table of this class
    yaml.StreamEndEvent: _Builder._ignore,  # noqa: SLF001
    yaml.DocumentStartEvent: _Builder._start_document,  # noqa: SLF001
    yaml.DocumentEndEvent: _Builder._ignore,  # noqa: SLF001
    yaml.ScalarEvent: _Builder._scalar,  # noqa: SLF001
    yaml.AliasEvent: _Builder._alias,  # noqa: SLF001
    yaml.MappingStartEvent: _Builder._open,  # noqa: SLF001
    yaml.MappingEndEvent: _Builder._close,  # noqa: SLF001
    yaml.SequenceStartEvent: _Builder._open,  # noqa: SLF001
    yaml.SequenceEndEvent: _Builder._close,  # noqa: SLF001
}


def _plain_value(text: str) -> Any:
    """What an unquoted scalar means in the core schema, less octal numbers and leading zeros, which stay text."""
    if text in _WORDS:
        return _WORDS[text]
    # No number of a description is longer, and int() refuses some that are.
    if text[0] not in "-+.0123456789" or len(text) > MAX_NUMBER_LENGTH:
        return text
    return next((convert(text) for spelling, convert in _NUMBERS if spelling.fullmatch(text)), text)


def _is_merge(key: _Node) -> bool:
    return key.is_plain and key.value == "<<"


def _context(error: yaml.YAMLError) -> tuple[str, ...]:
    """What libyaml was reading, and where that began."""
    context, mark = getattr(error, "context", None), getattr(error, "context_mark", None)
    if not context:
        return ()
    return (f"{context} that starts at line {mark.line + 1}" if mark is not None else str(context),)


def _kind(key: _Node) -> str:
    if key.value is None:
        return "null"
    return "true or false" if isinstance(key.value, bool) else f"the number {quoted(key.written)}"
