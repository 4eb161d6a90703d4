"""Whether the launch by a configuration in memory holds together: what is written there lies inside, each part once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.diagnostics import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.subject import Subject

#: How many bytes each part has.
_CONFIGURATION = {"grid": 12, "block": 12, "shared_memory": 4, "stream": 8, "attributes": 8, "attribute_count": 4}


def check_layouts(subject: Subject) -> Iterator[Diagnostic]:
    """Every part lies inside its structure, and no two of them in one place: a launch writes all of them."""
    is_cluster = "cluster" in subject.mapping("launch", "attributes")  # whose value is three extents
    attribute = {"id": 4, "value": 12 if is_cluster else 4}
    for structure, sizes in (("configuration", _CONFIGURATION), ("attribute", attribute)):
        written = subject.value("launch", structure)
        if not isinstance(written, dict):
            continue
        path = ("launch", structure)
        taken: dict[int, str] = {}
        for part, size in sizes.items():
            begins, ends = written[part], written[part] + size
            if ends > written["bytes"]:
                message = f"`{part}` ends at byte {ends}, and the {structure} has {written['bytes']} bytes"
                related = (subject.related((*path, "bytes"), "the size stands"),)
                yield subject.diagnostic((*path, part), "field-outside-struct", message, related=related)
            other = next((taken[byte] for byte in range(begins, ends) if byte in taken), None)
            if other is not None:
                message = f"`{part}`, from byte {begins}, lies over `{other}`, from byte {written[other]}"
                related = (subject.related((*path, other), f"`{other}` is"),)
                yield subject.diagnostic((*path, part), "duplicate-number", message, related=related)
            taken.update(dict.fromkeys(range(begins, ends), part))


def check_attributes(subject: Subject) -> Iterator[Diagnostic]:
    """Two things that a launch can ask for are two numbers."""
    seen: dict[int, str] = {}
    for word, attribute in subject.section("launch", "attributes").items():
        first = seen.setdefault(attribute["id"], word)
        if first != word:
            message = f"the number {attribute['id']} is {quoted(first)} already"
            path = ("launch", "attributes", word, "id")
            related = (subject.related(("launch", "attributes", first, "id"), "there"),)
            yield subject.diagnostic(path, "duplicate-number", message, related=related)


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (check_layouts, check_attributes)
