"""A file that was read: plain data, and the place of every node of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.diagnostics import Diagnostic, Related, path_text

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

    Aliased containers are shared objects: a path through an alias leads to the place of the anchor's content, and so
    does that of a key that `<<` merged.
    `entries` has the places by the identity of the container that holds the nodes, and `merges` the container itself,
    which may be no part of the data, with the places of the merge keys that brought nodes into it; `joints` has the
    places, with the file, for containers that layers.py has put together from several files.
    """

    name: str
    data: Any
    lines: tuple[str, ...]
    root: Entry
    entries: Mapping[int, Mapping[str | int, Entry]]
    merges: Mapping[int, tuple[Any, Mapping[str | int, At]]] = attrs.field(factory=dict)
    joints: Mapping[int, Mapping[str | int, tuple[Document, Entry]]] = attrs.field(factory=dict)

    def place(self, path: Sequence[str | int] = ()) -> Place:
        """The place of the node at a path of keys and indices. Raises: KeyError when there is none."""
        document, (value, key, written, is_plain) = self.entry(path)
        return Place(Span(document.name, *value), Span(document.name, *key) if key else None, written, is_plain)

    def is_inherited(self, path: Sequence[str | int]) -> bool:
        """Whether a node stands in another file, which this one extends. Raises: KeyError when there is none."""
        return self.entry(path)[0].name != self.name

    def where(self, path: Sequence[str | int]) -> str:
        """File, line and column of the node at a path, as messages quote them."""
        place = self.place(path)
        return f"{place.value.file}:{place.line}:{place.column}"

    def related(self, path: Sequence[str | int], message: str) -> Related:
        """The place of the node at a path as what a fault elsewhere has to do with."""
        place = self.place(path)
        return Related(message, place.value.file, place.line, place.column)

    def nearest(self, path: Sequence[str | int]) -> tuple[Related, ...]:
        """The node at a path, or the nearest above it that is there; none where that is the file itself."""
        for end in range(len(path), 0, -1):
            try:
                return (self.related(path[:end], f"`{path_text(path[:end])}` is"),)
            except (KeyError, IndexError, TypeError):
                continue
        return ()

    def at(self, path: Sequence[str | int]) -> Any:
        """The value at a path. Raises: KeyError or IndexError when there is none."""
        node = self.data
        for part in path:
            node = node[part]
        return node

    def nodes(self) -> Iterator[tuple[tuple[str | int, ...], Entry]]:
        """Path and entry of every node below the root; the content of an aliased container comes once."""
        pending: list[tuple[tuple[str | int, ...], Any, Document]] = [((), self.data, self)]
        seen: set[int] = set()
        while pending:
            path, node, document = pending.pop()
            if id(node) in seen or not isinstance(node, (dict, list)):
                continue
            seen.add(id(node))
            for key, (owner, entry) in self._below(document, node).items():
                yield (*path, key), entry
                pending.append(((*path, key), node[key], owner))  # type: ignore[index]

    def is_quoted(self, path: Sequence[str | int]) -> bool:
        """Whether the key of a node is written in quotes."""
        document, (_value, key, _written, _is_plain) = self.entry(path)
        return key is not None and document.lines[key[0] - 1][key[1] - 1 : key[1]] in ("'", '"')

    def diagnostic(
        self, path: Sequence[str | int], reference: str, message: str, *, at: str = "value", **facts: Any
    ) -> Diagnostic:
        """A fault of the node at `path`, placed at its value or, with `at="key"`, at its key.

        A container's key is the better place than its first line, and so is the key of an empty value. A merge key that
        brought the node is related, since the fault may lie in the merging alone.
        """
        document, _entry = self.entry(path)
        place = self.place(path)
        is_scalar = place.written is not None
        span = (
            place.key if place.key is not None and (at == "key" or not is_scalar or not place.written) else place.value
        )
        related = (*facts.pop("related", ()), *self._merged_by(path))
        return Diagnostic(
            span.file,
            span.line,
            span.column,
            span.end_column,
            reference,
            message,
            path=path_text(path),
            source=document.lines[span.line - 1] if span.line <= len(document.lines) else "",
            related=related,
            **facts,
        )

    def entry(self, path: Sequence[str | int]) -> tuple[Document, Entry]:
        """The file that a node stands in, and its entry there. Raises: KeyError when there is none."""
        document, entry = self, self.root
        for _holder, document, entry in self._way(path):  # noqa: B007 - the last one counts
            pass
        return document, entry

    def _way(self, path: Sequence[str | int]) -> Iterator[tuple[Any, Document, Entry]]:
        """For each part of a path: what holds the node, the file that the node stands in, and its entry there."""
        document, holder = self, self.data
        for part in path:
            joined = self.joints.get(id(holder))
            document, entry = (document, document.entries[id(holder)][part]) if joined is None else joined[part]
            yield holder, document, entry
            holder = holder[part]

    def _merged_by(self, path: Sequence[str | int]) -> Iterator[Related]:
        """Where merge keys brought in what is on the way to a node."""
        for part, (holder, document, _entry) in zip(path, self._way(path), strict=True):
            _holder, places = document.merges.get(id(holder), (None, {}))
            merge = places.get(part)
            if merge is not None:
                yield Related("merged by `<<`", document.name, merge[0], merge[1])

    def _below(self, document: Document, node: Any) -> Mapping[str | int, tuple[Document, Entry]]:
        """File and entry of each node in a container of `document`."""
        joined = self.joints.get(id(node))
        if joined is not None:
            return joined
        return {key: (document, entry) for key, entry in document.entries[id(node)].items()}
