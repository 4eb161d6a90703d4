"""A file that was read: plain data, and the place of every node of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.diagnostics import Diagnostic, path_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Line, column and end column; and for a node: its value's, its key's, the text as written, whether that is unquoted.
# Tuples, because a file has thousands of nodes and a person asks for the places of a few.
At = tuple[int, int, int]
Path = tuple["str | int", ...]
Entry = tuple[At, "At | None", "str | None", bool]


@attrs.frozen
class Span:
    """A stretch of one line; lines and columns count from 1, `end_column` is just after the last character."""

    file: str
    line: int
    column: int
    end_column: int


@attrs.frozen
class Place:
    """Where a node stands: its value, its key if it has one, and for scalars the text as written."""

    value: Span
    key: Span | None = None
    written: str | None = None
    is_plain: bool = False

    @property
    def line(self) -> int:
        """The line that a person would name: the key's, or the value's where there is no key."""
        return (self.key or self.value).line

    @property
    def column(self) -> int:
        """The column of the key, or of the value where there is no key."""
        return (self.key or self.value).column


@attrs.frozen(eq=False, repr=False)
class Document:
    """One file as plain data (dict, list, str, int, float, bool, None) that knows where each node was written.

    Aliased containers are shared objects: a path through an alias leads to the place of the anchor's content.
    `entries` has the places by the identity of the container that holds the nodes.
    """

    name: str
    data: Any
    lines: tuple[str, ...]
    root: Entry
    entries: Mapping[int, Mapping[str | int, Entry]]

    def place(self, path: Sequence[str | int] = ()) -> Place:
        """The place of the node at a path of keys and indices. Raises: KeyError when there is none."""
        value, key, written, is_plain = self._entry(path)
        return Place(Span(self.name, *value), Span(self.name, *key) if key else None, written, is_plain)

    def at(self, path: Sequence[str | int]) -> Any:
        """The value at a path. Raises: KeyError or IndexError when there is none."""
        node = self.data
        for part in path:
            node = node[part]
        return node

    def nodes(self) -> Iterator[tuple[tuple[str | int, ...], Entry]]:
        """Path and entry of every node below the root; the content of an aliased container comes once."""
        pending: list[tuple[tuple[str | int, ...], Any]] = [((), self.data)]
        seen: set[int] = set()
        while pending:
            path, node = pending.pop()
            if id(node) in seen or not isinstance(node, (dict, list)):
                continue
            seen.add(id(node))
            for key, entry in self.entries[id(node)].items():
                yield (*path, key), entry
                pending.append(((*path, key), node[key]))  # type: ignore[index]

    def is_quoted(self, path: Sequence[str | int]) -> bool:
        """Whether the key of a node is written in quotes."""
        key = self.place(path).key
        return key is not None and self.lines[key.line - 1][key.column - 1 : key.column] in ("'", '"')

    def diagnostic(
        self, path: Sequence[str | int], reference: str, message: str, *, at: str = "value", **facts: Any
    ) -> Diagnostic:
        """A fault of the node at `path`, placed at its value or, with `at="key"`, at its key.

        A container's key is the better place than its first line, and so is the key of an empty value.
        """
        place = self.place(path)
        is_scalar = place.written is not None
        span = (
            place.key if place.key is not None and (at == "key" or not is_scalar or not place.written) else place.value
        )
        return Diagnostic(
            span.file,
            span.line,
            span.column,
            span.end_column,
            reference,
            message,
            path=path_text(path),
            source=self.lines[span.line - 1] if span.line <= len(self.lines) else "",
            **facts,
        )

    def _entry(self, path: Sequence[str | int]) -> Entry:
        node, entry = self.data, self.root
        for part in path:
            entry = self.entries[id(node)][part]
            node = node[part]
        return entry
