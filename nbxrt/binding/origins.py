"""Where libraries that belong together come from: one place, or not."""

import os

from nbxrt.binding.machine import realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbxrt.binding.candidates import Candidate


def is_same(one: "Candidate", other: "Candidate") -> bool:
    """Whether two chosen files come from one place: the system's loader, one folder, one prefix, one installation."""
    if one.step == other.step == "system":
        return True
    return _lies_below(one.path, other.base) or _lies_below(other.path, one.base)


def _lies_below(path: str, base: str) -> bool:
    if not base:
        return False
    inside = realpath(path), realpath(base)
    return inside[0].startswith(os.path.join(inside[1], ""))


def nearest_first(beside: "Candidate", candidates: "Iterable[Candidate | None]") -> "Iterator[Candidate | None]":
    """Candidates in their order, except that files from where the other library is come before all others.

    Of those, the ones whose distribution fits come first.
    """
    found = list(candidates)
    near = [each for each in found if each is not None and each.is_file and is_same(beside, each)]
    near.sort(key=lambda each: bool(each.reason))  # a reason before the choice: another distribution
    yield from near
    yield from (each for each in found if each not in near)
